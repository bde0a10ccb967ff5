//! The usual statistics of a sample.

use marline_link::Seed;
use serde::{Deserialize, Serialize};

use super::{Interval, MIN_SURE, Statistic, interval, quantile, sorted};

/// The usual statistics of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values.
    pub n: usize,
    /// The 50th percentile.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation, by n - 1; 0 for a single value.
    pub std: f64,
    /// The standard deviation as a part of the mean; `None` if that is 0.
    pub cov: Option<f64>,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The 95 % confidence interval of the median; `None` for less than 2 values.
    pub ci95: Option<Interval>,
}

impl Summary {
    /// The 95 % confidence interval of the median, if there are enough values to rely on it.
    pub fn sure_interval(&self) -> Option<Interval> {
        self.ci95.filter(|_| self.n >= MIN_SURE)
    }

    /// Summarizes `values`, at least one. The interval takes `resamples` draws
    /// from `seed`.
    pub fn of(values: &[f64], resamples: usize, seed: Seed) -> Option<Self> {
        let sorted = sorted(values);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        let mean = mean(&sorted);
        let squares: f64 = sorted.iter().map(|x| (x - mean) * (x - mean)).sum();
        let std = (squares / (n - 1).max(1) as f64).sqrt();
        Some(Self {
            n,
            median: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
            mean,
            std,
            cov: (mean != 0.0).then(|| std / mean),
            min,
            max,
            ci95: interval(&sorted, Statistic::Median, resamples, seed),
        })
    }
}

/// The mean of `values`, which are summed in their order; never outside of them.
pub(super) fn mean(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low <= high {
        mean.clamp(low, high)
    } else {
        mean
    }
}
