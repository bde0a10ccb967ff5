//! Correlations of two metrics.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::choose::Points;
use super::error::Problem;
use super::published::look_up_any;
use super::read::CorrelationEntry;

/// Two metrics of one variant at one point, to be correlated over its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Correlation {
    /// The variant.
    pub variant: String,
    /// The point, as an index into [`Experiment::points`](super::Experiment::points).
    pub point: usize,
    /// One metric.
    pub x: String,
    /// The other.
    pub y: String,
    /// The published coefficient, from -1 to 1.
    pub published: Option<f64>,
    /// Its source.
    pub source: Option<String>,
}

/// Expands `entry`: each of its variants at each of its points.
pub(super) fn expand(
    entry: &CorrelationEntry,
    directory: Option<&Path>,
    points: &Points,
) -> Result<Vec<Correlation>, Problem> {
    let chosen = points.choose(&entry.condition)?;
    let mut correlations = Vec::new();
    for variant in &entry.variants {
        let published = match &entry.published {
            None => vec![None; points.all().len()],
            Some(lookup) => look_up_any(lookup, directory, &[("variant", variant)], points.all())?,
        };
        correlations.extend(chosen.iter().map(|&point| {
            Correlation {
                variant: variant.clone(),
                point,
                x: entry.x.clone(),
                y: entry.y.clone(),
                published: published[point],
                source: published[point]
                    .and(entry.published.as_ref())
                    .map(|lookup| lookup.source.clone()),
            }
        }));
    }
    match &entry.published {
        // Not every variant needs a published value, but at least one.
        Some(lookup) if correlations.iter().all(|one| one.published.is_none()) => {
            Err(lookup.unmatched())
        }
        _ => Ok(correlations),
    }
}
