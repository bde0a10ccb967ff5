//! Variants to compare.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::choose::{Point, Points};
use super::error::Problem;
use super::published::look_up_any;
use super::read::{ComparisonEntry, VariantPair};
use crate::stats::Statistic;

/// Two variants to compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The variant that should be better.
    pub a: String,
    /// The variant it should be better than.
    pub b: String,
    /// The metric compared; smaller is better, except for rates, shares and fairness.
    pub metric: String,
    /// The statistic of the metric.
    pub statistic: Statistic,
    /// The points of comparison, as indices into [`Experiment::points`](super::Experiment::points).
    pub points: Vec<usize>,
    /// The published improvement in percent at each point of the experiment, if any.
    pub published: Vec<Option<f64>>,
    /// The source of the published values.
    pub source: Option<String>,
}

impl Comparison {
    /// Whether one of `others` is of the same values, with the same published ones.
    pub(super) fn is_among(&self, others: &[Self]) -> bool {
        let own: HashSet<_> = self.points.iter().collect();
        others.iter().any(|other| {
            (&self.a, &self.b, &self.metric) == (&other.a, &other.b, &other.metric)
                && (self.statistic, &self.source) == (other.statistic, &other.source)
                && other.points.iter().any(|point| own.contains(point))
        })
    }
}

/// Expands `entry`: each of its pairs of variants, for each of its statistics.
pub(super) fn expand(
    entry: &ComparisonEntry,
    directory: Option<&Path>,
    points: &Points,
) -> Result<Vec<Comparison>, Problem> {
    let chosen = points.choose(&entry.condition)?;
    let mut comparisons = Vec::new();
    for &statistic in &entry.statistics {
        for VariantPair { a, b } in &entry.pairs() {
            let published = match &entry.published {
                None => vec![None; points.all().len()],
                Some(lookup) => {
                    let names = [
                        ("variant", a.as_str()),
                        ("a", a),
                        ("b", b),
                        ("statistic", statistic.name()),
                    ];
                    let there: Vec<_> = chosen
                        .iter()
                        .map(|&point| Point::clone(&points.all()[point]))
                        .collect();
                    let found = look_up_any(lookup, directory, &names, &there)?;
                    let mut published = vec![None; points.all().len()];
                    for (&point, value) in chosen.iter().zip(found) {
                        published[point] = value;
                    }
                    published
                }
            };
            let source = entry.published.as_ref();
            let source = source.filter(|_| published.iter().any(Option::is_some));
            comparisons.push(Comparison {
                a: a.to_owned(),
                b: b.to_owned(),
                metric: entry.metric.clone(),
                statistic,
                points: chosen.clone(),
                source: source.map(|lookup| lookup.source.clone()),
                published,
            });
        }
    }
    match &entry.published {
        // Not every pair needs a published value, but at least one.
        Some(lookup) if comparisons.iter().all(|one| one.source.is_none()) => {
            Err(lookup.unmatched())
        }
        _ => Ok(comparisons),
    }
}
