//! Random numbers, equal on every machine.

use rand::Rng;

/// Uniformly distributed in [0, 1).
pub(super) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Uniformly distributed in [0, `end`); `end` is above 0.
pub(super) fn below(rng: &mut impl Rng, end: usize) -> usize {
    // Rounding may give `end` itself.
    ((unit(rng) * end as f64) as usize).min(end - 1)
}

/// Log-normal with median 1; `sigma` is the standard deviation of the logarithm (Box and Muller).
pub(super) fn log_normal(rng: &mut impl Rng, sigma: f64) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - unit(rng))).sqrt();
    let normal = radius * libm::cos(std::f64::consts::TAU * unit(rng));
    libm::exp(sigma * normal)
}
