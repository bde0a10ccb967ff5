//! Samples of common distributions, identical on every platform.

use rand::Rng;

/// Uniform in [0, 1), with 53 random bits.
pub(crate) fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Uniform in (0, 1], a valid argument for a logarithm.
pub(crate) fn uniform_above_zero(rng: &mut impl Rng) -> f64 {
    1.0 - uniform(rng)
}

/// True with probability `share`. Always takes one draw.
pub(crate) fn bernoulli(rng: &mut impl Rng, share: f64) -> bool {
    uniform(rng) < share
}

/// Two values uniform in [0, 1), of 32 random bits each, from one draw.
pub(crate) fn two_uniforms(rng: &mut impl Rng) -> [f64; 2] {
    let bits = rng.next_u64();
    [bits >> 32, bits & 0xffff_ffff].map(|half| half as f64 * (1.0 / (1_u64 << 32) as f64))
}

/// Standard normal. Takes two draws (Box-Muller transform).
pub(crate) fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * libm::log(uniform_above_zero(rng))).sqrt();
    radius * libm::cos(std::f64::consts::TAU * uniform(rng))
}

/// Exponential with mean 1.
pub(crate) fn exponential(rng: &mut impl Rng) -> f64 {
    -libm::log(uniform_above_zero(rng))
}

/// Poisson with mean `mean`, which should be small: the number of draws grows with the result.
pub(crate) fn poisson(rng: &mut impl Rng, mean: f64) -> u32 {
    let limit = libm::exp(-mean);
    let mut product = uniform_above_zero(rng);
    let mut count = 0;
    while product > limit && count < 1000 {
        product *= uniform_above_zero(rng);
        count += 1;
    }
    count
}
