//! The statistics of a sample by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{MIN_SURE, Summary};

/// A statistic of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The 50th percentile.
    Median,
    /// The 95th percentile.
    P95,
    /// The arithmetic mean.
    Mean,
    /// The standard deviation of a sample.
    Std,
    /// The standard deviation as a part of the mean.
    Cov,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Statistic {
    /// Every statistic, with its name in scenarios and results.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("median", Self::Median),
        ("p95", Self::P95),
        ("mean", Self::Mean),
        ("std", Self::Std),
        ("cov", Self::Cov),
        ("min", Self::Min),
        ("max", Self::Max),
    ];

    /// The statistics by which variants can be compared.
    pub const COMPARED: [(&'static str, Self); 3] = [
        ("median", Self::Median),
        ("p95", Self::P95),
        ("mean", Self::Mean),
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::P95 => "p95",
            Self::Mean => "mean",
            Self::Std => "std",
            Self::Cov => "cov",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// The fewest values, or pairs, whose interval can be relied on. One value in twenty is beyond the 95th percentile: of fewer,
    /// it is between the largest two, about which resamples say little.
    pub const fn fewest_values(self) -> usize {
        match self {
            Self::P95 => 20,
            _ => MIN_SURE,
        }
    }

    /// The value of the statistic in `summary`.
    pub fn of(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::Median => summary.median,
            Self::P95 => summary.p95,
            Self::Mean => summary.mean,
            Self::Std => summary.std,
            Self::Cov => summary.cov,
            Self::Min => summary.min,
            Self::Max => summary.max,
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
