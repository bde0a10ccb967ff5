//! What results must show.

use serde::{Deserialize, Serialize};

use super::Comparison;
use super::choose::{Point, choose};
use super::error::Problem;
use super::read::{Filter, MustEntry};
use crate::stats::Statistic;

/// What comparisons must show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Must {
    /// In words.
    pub text: String,
    /// Why it does not hold, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// In numbers.
    pub claim: Claim,
    /// About what: one at least.
    pub checks: Vec<Check>,
}

/// A comparison at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// An index into [`Experiment::comparisons`](super::Experiment::comparisons).
    pub comparison: usize,
    /// An index into [`Experiment::points`](super::Experiment::points).
    pub point: usize,
}

/// What is claimed of improvements. It is the improvement that was measured which counts, not its
/// interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Each is above 0, and so many percent at least.
    AtLeastPercent(f64),
    /// At least this part of them, above 0 and up to 1, is no smaller than what was published.
    ReachesPublishedIn(f64),
    /// At least this part of them, above 0 and up to 1, is above 0.
    BetterIn(f64),
    /// None is a loss of more than so many percent.
    NeverWorseThanPercent(f64),
}

impl Claim {
    /// Whether an improvement, in percent, is as claimed, beside the `published` one.
    pub fn is_met(self, improvement: f64, published: Option<f64>) -> bool {
        match self {
            Self::AtLeastPercent(least) => improvement > 0.0 && improvement >= least,
            Self::ReachesPublishedIn(_) => published.is_some_and(|other| improvement >= other),
            Self::BetterIn(_) => improvement > 0.0,
            Self::NeverWorseThanPercent(most) => improvement >= -most,
        }
    }

    /// Of `count` improvements, how many must be as claimed.
    pub fn needed(self, count: usize) -> usize {
        match self {
            Self::ReachesPublishedIn(part) | Self::BetterIn(part) => {
                // 7 of 100 are 0.07, but 0.07 times 100 is more than 7.
                let is_enough = |met: &usize| *met as f64 / count as f64 >= part;
                (0..count).find(is_enough).unwrap_or(count)
            }
            Self::AtLeastPercent(_) | Self::NeverWorseThanPercent(_) => count,
        }
    }
}

/// What `entry` claims about which of `comparisons` at which of `points`.
pub(super) fn expand(
    entry: &MustEntry,
    comparisons: &[Comparison],
    points: &[Point],
) -> Result<Must, Problem> {
    let (condition, place) = &entry.condition;
    let chosen = choose(condition, place, points)?;
    let mut checks = Vec::new();
    for (a, b) in &entry.pairs {
        for &statistic in &entry.statistics {
            let found = find(entry, (a, b), statistic, comparisons)?;
            for &point in &chosen {
                checks.extend(checks_at(&found, comparisons, point));
            }
        }
    }
    let published = |check: &Check| comparisons[check.comparison].published[check.point];
    if let Some((filter, place)) = &entry.filter {
        checks.retain(|check| {
            published(check).is_some_and(|percent| match filter {
                Filter::Above(low) => percent > *low,
                Filter::AtLeast(low) => percent >= *low,
            })
        });
        if checks.is_empty() {
            let text = "no published improvement is so large; change this, or `where`";
            return Err(Problem::new(place, text));
        }
    }
    if let Claim::ReachesPublishedIn(_) = entry.claim {
        checks.retain(|check| published(check).is_some());
        if checks.is_empty() {
            let text =
                "there is no published improvement to reach; add `published` to the [[comparison]]";
            return Err(Problem::new(&entry.place, text));
        }
    }
    Ok(Must {
        explanation: entry.explanation.clone(),
        text: entry.text.clone(),
        claim: entry.claim,
        checks,
    })
}

/// The comparisons of a pair in a statistic; there must be one.
fn find(
    entry: &MustEntry,
    (a, b): (&str, &str),
    statistic: Statistic,
    comparisons: &[Comparison],
) -> Result<Vec<usize>, Problem> {
    let metric = entry.metric.as_str();
    let wanted = |index: &usize| {
        let one = &comparisons[*index];
        (one.a.as_str(), one.b.as_str(), one.metric.as_str()) == (a, b, metric)
            && one.statistic == statistic
    };
    let found: Vec<_> = (0..comparisons.len()).filter(wanted).collect();
    match found.is_empty() {
        true => Err(Problem::new(
            &entry.place,
            format_args!(
                "{a} is not compared with {b} in the {statistic} of {metric}; add [[comparison]] \
                 with a = \"{a}\", b = \"{b}\", metric = \"{metric}\", statistic = \"{statistic}\""
            ),
        )),
        false => Ok(found),
    }
}

/// Of comparisons that differ in nothing but what others found, those at `point` that others made, or
/// any.
fn checks_at(found: &[usize], comparisons: &[Comparison], point: usize) -> Vec<Check> {
    let check = |&comparison: &usize| Check { comparison, point };
    let is_there = |index: &&usize| comparisons[**index].points.contains(&point);
    let found: Vec<_> = found
        .iter()
        .copied()
        .filter(|index| is_there(&index))
        .collect();
    let is_published = |index: &&usize| comparisons[**index].published[point].is_some();
    let published: Vec<_> = found.iter().filter(is_published).map(check).collect();
    match published.is_empty() {
        true => found.first().map(check).into_iter().collect(),
        false => published,
    }
}

#[cfg(test)]
mod tests;
