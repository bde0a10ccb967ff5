//! Random numbers, equal on every machine.

use rand::Rng;

/// From 0 up to, not including, 1.
pub(super) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// From 0 up to, not including, `end`, which is above 0.
pub(super) fn below(rng: &mut impl Rng, end: usize) -> usize {
    // The product may round up to the end.
    ((unit(rng) * end as f64) as usize).min(end - 1)
}

/// Log-normal of median 1, `sigma` being the standard deviation of its logarithm (Box and Muller).
pub(super) fn log_normal(rng: &mut impl Rng, sigma: f64) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - unit(rng))).sqrt();
    let normal = radius * libm::cos(std::f64::consts::TAU * unit(rng));
    libm::exp(sigma * normal)
}
