//! Words for improvements.

use crate::run::ComparisonResult;
use crate::stats::{Interval, MIN_SURE, is_better_larger};

use super::super::verdict::{is_equal, rounded};

/// The reason why the result is undecided.
pub(super) fn chance(result: &ComparisonResult) -> String {
    match result.pairs {
        few @ 0..MIN_SURE => too_few(few),
        enough => format!("and no interval can be given from {} each", runs(enough)),
    }
}

fn too_few(pairs: usize) -> String {
    format!("in {} each, too few to be sure", runs(pairs))
}

/// `1 run`, `2 runs`.
pub(super) fn runs(count: usize) -> String {
    match count {
        1 => "1 run".to_owned(),
        _ => format!("{count} runs"),
    }
}

/// The words for an improvement and for its opposite.
pub(super) struct Words {
    pub(super) better: &'static str,
    pub(super) worse: &'static str,
    pub(super) best: &'static str,
}

impl Words {
    pub(super) fn of(metric: &str) -> Self {
        match is_better_larger(metric) {
            true => Self {
                better: "larger",
                worse: "smaller",
                best: "largest",
            },
            false => Self {
                better: "smaller",
                worse: "larger",
                best: "smallest",
            },
        }
    }

    const fn word(&self, percent: f64) -> &'static str {
        if percent < 0.0 {
            self.worse
        } else {
            self.better
        }
    }

    /// `20 % smaller`, or `equal`.
    pub(super) fn change(&self, percent: f64) -> String {
        match is_equal(percent) {
            true => "equal".to_owned(),
            false => format!("{}\u{a0}% {}", rounded(percent), self.word(percent)),
        }
    }

    /// `(95 % interval 12 to 25 %)`, or `(deterministic)` if both ends are the same.
    pub(super) fn interval(&self, interval: Interval) -> String {
        if interval[0] == interval[1] {
            return "(deterministic)".to_owned();
        }
        format!("(95\u{a0}% interval {})", self.span(interval))
    }

    /// `12 to 25 %`, or with words where both ends have different ones.
    pub(super) fn span(&self, [low, high]: Interval) -> String {
        let [first, last] = [low, high].map(rounded);
        if first == last && (low < 0.0) == (high < 0.0) {
            return format!("{last}\u{a0}%");
        }
        match (low < 0.0, high <= 0.0) {
            (false, _) => format!("{first} to {last}\u{a0}%"),
            (true, true) => format!("{last} to {first}\u{a0}%"),
            (true, false) => format!("{} to {}", self.change(low), self.change(high)),
        }
    }
}
