//! The usual statistics of a sample.

use marline_link::Seed;
use serde::{Deserialize, Serialize};

use super::{Interval, MIN_SURE, Statistic, interval, quantile, sorted};

/// The usual statistics of a sample. Those that depend on a [censored](censored_value) value are `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Number of values, censored ones included.
    pub n: usize,
    /// Number of censored values.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub censored: usize,
    /// The 50th percentile.
    pub median: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The standard deviation, by n - 1; 0 for a single value.
    pub std: Option<f64>,
    /// The standard deviation as a part of the mean; `None` if that is 0.
    pub cov: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// The 95 % confidence interval of the median; `None` for less than 2 values.
    pub ci95: Option<Interval>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The value that stands for `metric` in a run that exceeded its time limit, which censors the observation: an infinite
/// time, or a rate that is smaller than any other. NaN for metrics of which such a run reveals no bound.
pub fn censored_value(metric: &str) -> f64 {
    if metric.ends_with("_s") {
        f64::INFINITY
    } else if metric.ends_with("bps") {
        f64::NEG_INFINITY
    } else {
        f64::NAN
    }
}

impl Summary {
    /// The 95 % confidence interval of the median, if there are enough values to rely on it.
    pub fn sure_interval(&self) -> Option<Interval> {
        self.ci95.filter(|_| self.n >= MIN_SURE)
    }

    /// Summarizes `values`, at least one; those that are not finite are censored. The interval takes `resamples` draws
    /// from `seed`.
    pub fn of(values: &[f64], resamples: usize, seed: Seed) -> Option<Self> {
        let sorted = sorted(values);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        let censored = sorted.iter().filter(|value| !value.is_finite()).count();
        if sorted.iter().any(|value| value.is_nan()) {
            return Some(Self::unknown(n, censored));
        }
        let known = |value: f64| value.is_finite().then_some(value);
        let mean = mean(&sorted);
        let squares: f64 = sorted.iter().map(|x| (x - mean) * (x - mean)).sum();
        let std = (squares / (n - 1).max(1) as f64).sqrt();
        Some(Self {
            n,
            censored,
            median: known(quantile(&sorted, 0.5)),
            p95: known(quantile(&sorted, 0.95)),
            mean: known(mean),
            std: known(std),
            cov: (mean != 0.0).then(|| std / mean).and_then(known),
            min: known(min),
            max: known(max),
            ci95: interval(&sorted, Statistic::Median, resamples, seed),
        })
    }
}

impl Summary {
    /// Of `n` values, of `censored` of which not even a bound is known.
    const fn unknown(n: usize, censored: usize) -> Self {
        Self {
            n,
            censored,
            median: None,
            p95: None,
            mean: None,
            std: None,
            cov: None,
            min: None,
            max: None,
            ci95: None,
        }
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
