//! Burstiness of packets.

/// The index of dispersion for intervals: of sums of `window` intervals in a row, the variance over `window` times the
/// squared mean of an interval. 0 for equal intervals, 1 for a Poisson process, more for bursts.
///
/// R. Gusella, "Characterizing the variability of arrival processes with indexes of dispersion", 1991.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispersion {
    /// Intervals in a sum, at least 1.
    pub window: usize,
    /// Whether sums overlap: one begins with each interval.
    pub overlapping: bool,
    /// Whether the variance is that of a sample (divided by one less); otherwise of a population.
    pub of_sample: bool,
}

impl Dispersion {
    /// Over all sums of `window` intervals, with the variance of a population.
    pub const fn over(window: usize) -> Self {
        Self {
            window,
            overlapping: true,
            of_sample: false,
        }
    }

    /// The index; `None` for fewer than two sums, or intervals without duration.
    pub fn of(self, intervals: &[f64]) -> Option<f64> {
        if self.window == 0 {
            return None;
        }
        let step = match self.overlapping {
            true => 1,
            false => self.window,
        };
        let sum = |window: &[f64]| window.iter().sum::<f64>();
        let sums = intervals.windows(self.window).step_by(step).map(sum);
        let sums: Vec<f64> = sums.collect();
        let mean = sum(intervals) / intervals.len() as f64;
        let squared = self.window as f64 * mean * mean;
        if sums.len() < 2 || squared <= 0.0 {
            return None;
        }
        let count = sums.len() as f64;
        let middle = sum(&sums) / count;
        let squares: f64 = sums.iter().map(|sum| (sum - middle).powi(2)).sum();
        let over = if self.of_sample { count - 1.0 } else { count };
        Some(squares / over / squared)
    }
}

#[cfg(test)]
mod tests {
    use super::Dispersion;

    #[test]
    fn equal_intervals_have_no_dispersion_and_bursts_much() {
        assert_eq!(Dispersion::over(3).of(&[2.0; 10]), Some(0.0));
        // Nine packets at once, then a pause: the mean is 1, and the variance 9.
        let bursts = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0].repeat(20);
        let burstiness = Dispersion::over(1).of(&bursts).unwrap();
        assert!((burstiness - 9.0).abs() < 1e-9, "{burstiness}");
        let of_tens = Dispersion {
            overlapping: false,
            ..Dispersion::over(10)
        };
        assert_eq!(of_tens.of(&bursts), Some(0.0));
    }

    #[test]
    fn dispersion_of_too_few_or_empty_intervals_is_undefined() {
        for intervals in [&[][..], &[1.0], &[0.0, 0.0, 0.0]] {
            assert_eq!(Dispersion::over(1).of(intervals), None);
        }
        assert_eq!(Dispersion::over(0).of(&[1.0, 2.0]), None);
        assert_eq!(Dispersion::over(2).of(&[1.0, 2.0]), None);
    }
}
