//! The evidence that a comparison meets a condition, or does not, by its 95 % interval.

use crate::run::ComparisonResult;
use crate::scenario::Claim;
use crate::stats::{critical, t_beyond};

/// The probability that a 95 % interval lies beyond the true value on one side, and so the share of comparisons that
/// meet a condition, or violate it, by chance alone.
pub(super) const ONE_SIDE: f64 = 0.025;

/// The answer of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Its interval lies where the condition is met.
    Met,
    /// Its interval lies where the condition is not met.
    NotMet,
    /// Its interval has values of both kinds, or there is none that can be relied on.
    Open,
}

/// An answer, and the probabilities of results at least as far from the condition by chance alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    pub(super) answer: Answer,
    /// If the condition is not met in truth.
    pub(super) p_met: f64,
    /// If it is met in truth.
    pub(super) p_not_met: f64,
}

impl Evidence {
    const NONE: Self = Self {
        answer: Answer::Open,
        p_met: 1.0,
        p_not_met: 1.0,
    };

    /// Whether `claim` is met by `result`. `reference` is the improvement that it is measured by, if that has an interval
    /// too.
    pub(super) fn of(
        claim: Claim,
        margin: f64,
        result: &ComparisonResult,
        reference: Option<&ComparisonResult>,
    ) -> Self {
        let Some(measured) = Estimate::of(result) else {
            return Self::NONE;
        };
        let reference = reference.map(Estimate::of);
        let (distance, bound) = match (claim, reference) {
            (Claim::RanksAs, Some(Some(other))) => return Self::of_equal_signs(measured, other),
            (Claim::KeepsPartOfGain(part), Some(Some(gain))) => {
                (measured.minus(gain.times(part)), Bound::Included)
            }
            (_, Some(None)) | (Claim::RanksAs | Claim::KeepsPartOfGain(_), None) => {
                return Self::NONE;
            }
            (Claim::AtLeastPercent(least) | Claim::MedianAtLeastPercent(least), _)
                if least > 0.0 =>
            {
                (measured.above(least), Bound::Included)
            }
            (Claim::AtLeastPercent(_) | Claim::MedianAtLeastPercent(_) | Claim::BetterIn(_), _) => {
                (measured, Bound::Excluded)
            }
            (Claim::ReachesPublishedIn(_), _) => match result.published_percent {
                Some(published) => (measured.above(published), Bound::Included),
                None => return Self::NONE,
            },
            (Claim::NeverWorseThanPercent(most), _) => (measured.above(-most), Bound::Included),
            (Claim::IdealRatioAtMost(most), _) => {
                (measured.above(100.0 * (1.0 - most)), Bound::Included)
            }
            (Claim::ReachesValue(_), _) => (measured, Bound::Included),
        };
        let bound = if margin > 0.0 { Bound::Included } else { bound };
        distance.above(-margin).evidence(bound)
    }

    /// Whether the true difference of `result` is above 0.
    pub(super) fn of_better(result: &ComparisonResult) -> Self {
        Estimate::of(result).map_or(Self::NONE, |estimate| estimate.evidence(Bound::Excluded))
    }

    /// Whether both are above 0, or neither is.
    fn of_equal_signs(one: Estimate, other: Estimate) -> Self {
        let [one, other] = [one, other].map(|estimate| estimate.evidence(Bound::Excluded));
        let both = |a: f64, b: f64| a.max(b);
        let answer = match (one.answer, other.answer) {
            (Answer::Open, _) | (_, Answer::Open) => Answer::Open,
            (a, b) if a == b => Answer::Met,
            _ => Answer::NotMet,
        };
        Self {
            answer,
            p_met: both(one.p_met, other.p_met).min(both(one.p_not_met, other.p_not_met)),
            p_not_met: both(one.p_met, other.p_not_met).min(both(one.p_not_met, other.p_met)),
        }
    }
}

/// Whether 0 meets the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Included,
    Excluded,
}

/// A value with its uncertainty.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    value: f64,
    /// From the lower end of its 95 % interval to the value.
    below: f64,
    /// From the value to the upper end.
    over: f64,
    /// Degrees of freedom of the distribution behind it: one less than the pairs.
    freedom: usize,
}

impl Estimate {
    /// The improvement of `result`; `None` if it is not known, or has no interval that can be relied on.
    fn of(result: &ComparisonResult) -> Option<Self> {
        let value = result.improvement_percent?;
        let [low, high] = result.sure_interval()?;
        Some(Self {
            value,
            below: (value - low).max(0.0),
            over: (high - value).max(0.0),
            freedom: result.pairs.saturating_sub(1).max(1),
        })
    }

    fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            below: self.below * factor,
            over: self.over * factor,
            ..self
        }
    }

    fn above(self, threshold: f64) -> Self {
        Self {
            value: self.value - threshold,
            ..self
        }
    }

    /// The difference, as if both were independent (Zou and Donner, Statistics in Medicine 27, 2008, equation 3). Values of
    /// the same repeats are rather alike, which makes the interval wider than it has to be.
    fn minus(self, other: Self) -> Self {
        Self {
            value: self.value - other.value,
            below: self.below.hypot(other.over),
            over: self.over.hypot(other.below),
            freedom: self.freedom.min(other.freedom),
        }
    }

    /// Whether it is above 0. Probabilities are those of Student's t distribution with the same interval, on the side that is
    /// towards 0 (as Altman and Bland, BMJ 343, 2011, d2304, have it for a normal distribution, whose tails are too thin for
    /// few pairs).
    fn evidence(self, bound: Bound) -> Evidence {
        let (low, high) = (self.value - self.below, self.value + self.over);
        let answer = match bound {
            Bound::Included if low >= 0.0 => Answer::Met,
            Bound::Included if high < 0.0 => Answer::NotMet,
            Bound::Excluded if low > 0.0 => Answer::Met,
            Bound::Excluded if high <= 0.0 => Answer::NotMet,
            _ => Answer::Open,
        };
        let width = if self.value > 0.0 {
            self.below
        } else {
            self.over
        };
        let p_met = match (width > 0.0, answer) {
            (true, _) => {
                let errors = critical(self.freedom) * self.value / width;
                t_beyond(errors, self.freedom)
            }
            (false, Answer::Met) => 0.0,
            (false, Answer::NotMet) => 1.0,
            (false, Answer::Open) => 0.5,
        };
        Evidence {
            answer,
            p_met,
            p_not_met: 1.0 - p_met,
        }
    }
}

/// The number of `p` that remain if at most `level` of those that are taken for effects are so by chance (Benjamini and
/// Hochberg, Journal of the Royal Statistical Society B 57, 1995): the largest k of which the k smallest are at most
/// k / n times `level`.
pub(super) fn remaining(mut p: Vec<f64>, level: f64) -> usize {
    p.sort_by(f64::total_cmp);
    let count = p.len() as f64;
    let is_small = |index: &usize| p[*index] <= (*index + 1) as f64 / count * level;
    (0..p.len()).rev().find(is_small).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_discoveries_are_bounded_as_in_the_paper() {
        // The example of the paper's section 3.2 (15 hypotheses, of which 4 remain at 0.05).
        let p = vec![
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        assert_eq!(remaining(p, 0.05), 4);
        assert_eq!(
            remaining(vec![0.04; 3], 0.05),
            3,
            "all of them, if each is below"
        );
        assert_eq!(remaining(Vec::new(), 0.05), 0);
    }

    #[test]
    fn probabilities_agree_with_the_interval() {
        let at = |value: f64| {
            let estimate = Estimate {
                value,
                below: 2.0,
                over: 4.0,
                freedom: 7,
            };
            estimate.evidence(Bound::Excluded)
        };
        assert!((at(2.0).p_met - ONE_SIDE).abs() < 1e-9);
        assert!((at(-4.0).p_not_met - ONE_SIDE).abs() < 1e-9);
        assert_eq!(at(2.1).answer, Answer::Met);
        assert_eq!(at(-4.1).answer, Answer::NotMet);
        assert_eq!(at(1.9).answer, Answer::Open);
        assert_eq!(at(0.0).p_met, 0.5);
    }
}
