//! The claims of an experiment.

use serde::{Deserialize, Serialize};

use super::Comparison;
use super::choose::Points;
use super::error::Problem;
use super::read::{Filter, MustEntry, PublishedFilter, VariantPair};
use crate::stats::Statistic;

/// A claim about comparisons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Must {
    /// The claim, as text.
    pub text: String,
    /// The known reason why it does not hold, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The claim, as a condition.
    pub claim: Claim,
    /// The difference that does not count against it, in percent.
    #[serde(default)]
    pub margin_percent: f64,
    /// The comparisons that it covers, at least one; none if the claim is [about single variants](Claim::is_of_one).
    pub checks: Vec<Check>,
    /// The covered variants, if the claim is about single ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<Alone>,
}

/// A variant at a point, without a variant to compare with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alone {
    /// The variant's name.
    pub variant: String,
    /// An index into [`Experiment::points`](super::Experiment::points).
    pub point: usize,
    /// The metric.
    pub metric: String,
    /// The statistic of the metric.
    pub statistic: Statistic,
}

/// A comparison at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// An index into [`Experiment::comparisons`](super::Experiment::comparisons).
    pub comparison: usize,
    /// An index into [`Experiment::points`](super::Experiment::points).
    pub point: usize,
    /// Another comparison, at the same point, to which this one's improvement refers: it is to be kept, or to have the same
    /// sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<usize>,
}

/// A condition on improvements: over another variant, over the ideal, or over a value. A comparison meets it if its whole
/// 95 % interval does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Each is above 0, and at least this many percent.
    AtLeastPercent(f64),
    /// At least half of them are above 0, and at least this many percent: the median is.
    MedianAtLeastPercent(f64),
    /// At least this share of them, above 0 and up to 1, reaches the published improvement.
    ReachesPublishedIn(f64),
    /// At least this share of them, above 0 and up to 1, is above 0.
    BetterIn(f64),
    /// None is a degradation of more than this many percent.
    NeverWorseThanPercent(f64),
    /// Each is at least this share of the improvement of another variant, above 0 and up to 1, wherever that
    /// improvement is above 0 with 95 % confidence.
    KeepsPartOfGain(f64),
    /// Each is above 0 where the improvement in another pair of variants is, and only there: both pairs have the same order.
    RanksAs,
    /// At the median of the points, the first metric is at most this multiple (1 or more) of the ideal.
    IdealRatioAtMost(f64),
    /// Each value of the metric is at least this much, above 0; or at most, if smaller ones are better.
    ReachesValue(f64),
}

/// Half of the points are at or below the median.
const HALF: f64 = 0.5;

impl Claim {
    /// Whether it is about single variants.
    pub const fn is_of_one(self) -> bool {
        matches!(self, Self::IdealRatioAtMost(_) | Self::ReachesValue(_))
    }

    /// Whether an improvement in percent meets the condition, given its `measure`: the published improvement, that of the
    /// other variant, or that in the other pair.
    pub fn is_met(self, improvement: f64, measure: Option<f64>) -> bool {
        match self {
            Self::AtLeastPercent(least) | Self::MedianAtLeastPercent(least) => {
                improvement > 0.0 && improvement >= least
            }
            Self::ReachesPublishedIn(_) => measure.is_some_and(|other| improvement >= other),
            Self::KeepsPartOfGain(part) => measure.is_some_and(|other| improvement >= part * other),
            Self::BetterIn(_) => improvement > 0.0,
            Self::RanksAs => measure.is_some_and(|other| (improvement > 0.0) == (other > 0.0)),
            Self::NeverWorseThanPercent(most) => improvement >= -most,
            Self::IdealRatioAtMost(most) => 1.0 - improvement / 100.0 <= most,
            Self::ReachesValue(_) => improvement >= 0.0,
        }
    }

    /// The number of improvements out of `count` that must meet the condition.
    pub fn needed(self, count: usize) -> usize {
        // 0.07 times 100 is more than 7 in floating point, but 7 of 100 suffice.
        let in_part = |part: f64| {
            let is_enough = |met: &usize| *met as f64 / count as f64 >= part;
            (0..count).find(is_enough).unwrap_or(count)
        };
        match self {
            Self::ReachesPublishedIn(part) | Self::BetterIn(part) => in_part(part),
            Self::MedianAtLeastPercent(_) | Self::IdealRatioAtMost(_) => in_part(HALF),
            Self::AtLeastPercent(_)
            | Self::NeverWorseThanPercent(_)
            | Self::KeepsPartOfGain(_)
            | Self::RanksAs
            | Self::ReachesValue(_) => count,
        }
    }
}

/// Expands `entry`: its condition, and the `comparisons` and `points` that it applies to.
pub(super) fn expand(
    entry: &MustEntry,
    comparisons: &[Comparison],
    points: &Points,
) -> Result<Must, Problem> {
    let chosen = points.choose(&entry.condition)?;
    if entry.claim.is_of_one() {
        let alone = entry.pairs.iter().flat_map(|VariantPair { a, .. }| {
            let chosen = &chosen;
            entry.statistics.iter().flat_map(move |&statistic| {
                chosen.iter().map(move |&point| Alone {
                    variant: a.clone(),
                    point,
                    metric: entry.metric.clone(),
                    statistic,
                })
            })
        });
        return Ok(Must {
            explanation: entry.explanation.clone(),
            text: entry.text.clone(),
            claim: entry.claim,
            margin_percent: entry.margin_percent,
            checks: Vec::new(),
            alone: alone.collect(),
        });
    }
    let mut checks = Vec::new();
    for (number, pair) in entry.pairs.iter().enumerate() {
        let VariantPair { a, b } = pair;
        let measure = match (&entry.gain_of, entry.order_of.get(number)) {
            (Some(other), _) => Some((other, b)),
            (None, Some(other)) => Some((&other.a, &other.b)),
            (None, None) => None,
        };
        for &statistic in &entry.statistics {
            let found = find(entry, (a, b), statistic, comparisons)?;
            let gains = measure.map(|(a, b)| find(entry, (a, b), statistic, comparisons));
            let gains = gains.transpose()?;
            for &point in &chosen {
                let covered = checks_at(&found, comparisons, point);
                match &gains {
                    None => checks.extend(covered),
                    // If the other variant is not compared, there is no reference.
                    Some(gains) => {
                        let gain = checks_at(gains, comparisons, point).first().copied();
                        checks.extend(gain.into_iter().flat_map(|gain| {
                            covered.iter().map(move |check| Check {
                                gain: Some(gain.comparison),
                                ..*check
                            })
                        }));
                    }
                }
            }
        }
    }
    if checks.is_empty() {
        let text =
            "no comparison has any of these points; change `where` here, or of the [[comparison]]";
        return Err(Problem::new(&entry.condition.place, text));
    }
    let published = |check: &Check| comparisons[check.comparison].published[check.point];
    if let Some(PublishedFilter { range, place }) = &entry.filter {
        checks.retain(|check| {
            published(check).is_some_and(|percent| match range {
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
        margin_percent: entry.margin_percent,
        checks,
        alone: Vec::new(),
    })
}

/// The comparisons of a pair of variants in a statistic; at least one.
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

/// Of comparisons that differ only in their published values, those with a value at `point`, or any.
fn checks_at(found: &[usize], comparisons: &[Comparison], point: usize) -> Vec<Check> {
    let check = |&comparison: &usize| Check {
        comparison,
        point,
        gain: None,
    };
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
