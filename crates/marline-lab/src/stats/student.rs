//! Student's t distribution, which takes the place of the normal one where few values are known.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// The probability that a standard normal variable is larger than `z`.
pub(crate) fn normal_beyond(z: f64) -> f64 {
    0.5 * libm::erfc(z * FRAC_1_SQRT_2)
}

/// Degrees of freedom from which the normal distribution is as good: it differs by less than 1 % of a standard error.
const MANY: usize = 300;

/// The probability that a variable of Student's t distribution is larger than `t` (Abramowitz and Stegun, 26.7.3 and 26.7.4).
pub(crate) fn t_beyond(t: f64, freedom: usize) -> f64 {
    if freedom >= MANY {
        return normal_beyond(t);
    }
    let angle = libm::atan(t / (freedom as f64).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let square = cosine * cosine;
    // Terms in steps of two powers of the cosine, each a product of the one before.
    let is_odd = freedom % 2 == 1;
    let mut power = if is_odd { 1 } else { 0 };
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    while power + 2 <= freedom {
        sum += term;
        power += 2;
        term *= square * f64::from(power as u32 - 1) / f64::from(power as u32);
    }
    let within = match is_odd {
        true => FRAC_2_PI * (angle + sine * sum),
        false => sine * sum,
    };
    (0.5 * (1.0 - within)).clamp(0.0, 1.0)
}

/// The value that a variable of this distribution exceeds in 2.5 % of the cases.
pub(crate) fn critical(freedom: usize) -> f64 {
    let (mut low, mut high) = (1.9, 13.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match t_beyond(middle, freedom) > 0.025 {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abramowitz and Stegun, table 26.10.
    #[test]
    fn critical_values_are_those_of_the_table() {
        for (freedom, expected) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (29, 2.045),
            (120, 1.980),
            (1_000_000, 1.960),
        ] {
            let found = critical(freedom);
            assert!((found - expected).abs() < 6e-4, "{freedom}: {found}");
        }
    }

    #[test]
    fn tails_are_symmetric_and_thicker_than_normal() {
        for freedom in [1, 2, 5, 8, 29] {
            assert!((t_beyond(0.0, freedom) - 0.5).abs() < 1e-12);
            let both = t_beyond(1.5, freedom) + t_beyond(-1.5, freedom);
            assert!((both - 1.0).abs() < 1e-12, "{freedom}: {both}");
            assert!(t_beyond(4.0, freedom) > normal_beyond(4.0));
        }
        // 7 degrees of freedom: 0.1 % are beyond 4.785.
        assert!((t_beyond(4.785, 7) - 0.001).abs() < 1e-6);
    }
}
