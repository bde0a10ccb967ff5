//! Whether an improvement is sure.

use marline_report::units;

use crate::run::ComparisonResult;

/// The verdict on which of two variants is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The first, with 95 % confidence.
    Better,
    /// The second, with 95 % confidence.
    Worse,
    /// Either, or both are equal.
    Undecided,
}

impl Verdict {
    pub(super) fn of(result: &ComparisonResult) -> Self {
        if result.improvement_percent.is_none_or(is_equal) {
            return Self::Undecided;
        }
        match result.sure_interval() {
            Some([low, _]) if low > 0.0 => Self::Better,
            Some([_, high]) if high < 0.0 => Self::Worse,
            _ => Self::Undecided,
        }
    }
}

/// Whether an improvement is 0 % after rounding.
pub(super) fn is_equal(percent: f64) -> bool {
    rounded(percent) == "0"
}

/// The size of a percentage, with as many digits as one says: 82, 3.3, 0.3.
pub(super) fn rounded(percent: f64) -> String {
    let decimals = if percent.abs() < 9.95 { 10.0 } else { 1.0 };
    units::number((percent.abs() * decimals).round() / decimals)
}
