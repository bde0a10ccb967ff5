//! Random numbers of the usual shapes, equal on every machine.

use rand::Rng;

/// From 0 up to, not including, 1; all 53 bits of the mantissa are drawn.
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Above 0, up to and including 1: what a logarithm can take.
pub(crate) fn unit_above_zero(rng: &mut impl Rng) -> f64 {
    1.0 - unit(rng)
}

/// True with probability `share`, for one draw whatever the share is.
pub(crate) fn happens(rng: &mut impl Rng, share: f64) -> bool {
    unit(rng) < share
}

/// Two of 32 bits each, from 0 up to, not including, 1, for one draw.
pub(crate) fn two_units(rng: &mut impl Rng) -> [f64; 2] {
    let bits = rng.next_u64();
    [bits >> 32, bits & 0xffff_ffff].map(|half| half as f64 * (1.0 / (1_u64 << 32) as f64))
}

/// Of mean 0 and standard deviation 1, for two draws (Box and Muller).
pub(crate) fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * libm::log(unit_above_zero(rng))).sqrt();
    radius * libm::cos(std::f64::consts::TAU * unit(rng))
}

/// Of mean 1.
pub(crate) fn exponential(rng: &mut impl Rng) -> f64 {
    -libm::log(unit_above_zero(rng))
}

/// A count of mean `mean`, which has to be small: it takes as many draws as it counts.
pub(crate) fn poisson(rng: &mut impl Rng, mean: f64) -> u32 {
    let floor = libm::exp(-mean);
    let mut product = unit_above_zero(rng);
    let mut count = 0;
    while product > floor && count < 1000 {
        product *= unit_above_zero(rng);
        count += 1;
    }
    count
}
