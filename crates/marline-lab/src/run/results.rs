//! The results of an experiment, as in `results.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{RESULTS, read_json};
use super::must::at;
use super::{Inputs, MustResult, RunFailure};
use crate::scenario::Value;
use crate::stats::{Interval, Statistic, Summary};

/// The results of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Results {
    /// The experiment's ID.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// The paper it repeats, by number.
    pub paper: Option<String>,
    /// Section, table or figure of the paper.
    pub section: Option<String>,
    /// The subject of its demonstration.
    pub shows: Option<String>,
    /// The backend that it ran on.
    pub backend: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// Repeats of each variant at each point.
    pub repeats: u32,
    /// The duration of the last start, in seconds.
    pub wall_s: f64,
    /// Runs that an earlier start had done.
    pub resumed: usize,
    /// The total duration of all runs, in seconds of their own clocks.
    pub virtual_s: f64,
    /// Packets that all runs sent.
    pub packets: u64,
    /// Metrics shown in reports; the first is the main one.
    pub metrics: Vec<String>,
    /// The scenario, and each variant's settings at the first point, defaults included.
    pub settings: Value,
    /// Every variant at every point.
    pub cells: Vec<CellResult>,
    /// Comparisons of two variants.
    pub comparisons: Vec<ComparisonResult>,
    /// Published values.
    pub published: Vec<PublishedResult>,
    /// Correlations of two metrics.
    pub correlations: Vec<CorrelationResult>,
    /// The verdicts on the claims.
    #[serde(default)]
    pub must: Vec<MustResult>,
    /// A hash over the metrics of all runs, in hex.
    pub digest: String,
    /// The version of the program that ran them.
    #[serde(default)]
    pub version: String,
    /// The commit that it was built of, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Properties of the machine.
    #[serde(default)]
    pub machine: BTreeMap<String, String>,
    /// A hash of each file and program that the runs read.
    #[serde(default)]
    pub inputs: Inputs,
}

/// With fewer repeats, bootstrap intervals are unreliable: resamples contain only values that were drawn.
const MIN_REPEATS: u32 = 30;

/// Largest number of points in a message.
const NAMED_POINTS: usize = 8;

/// The reason for which most runs of `cells` do not count.
fn most_frequent_reason(cells: &[&CellResult]) -> String {
    let mut reasons = BTreeMap::<&str, usize>::new();
    let all = cells
        .iter()
        .flat_map(|cell| cell.failed.iter().chain(&cell.invalid));
    for (reason, count) in all {
        *reasons.entry(reason).or_default() += count;
    }
    let most = reasons.into_iter().max_by_key(|(_, count)| *count);
    most.map_or_else(String::new, |(reason, _)| reason.to_owned())
}

impl Results {
    /// A note on the intervals if the repeats are so few that they are approximate.
    pub fn caution(&self) -> Option<String> {
        (self.repeats < MIN_REPEATS)
            .then(|| format!("Fewer than {MIN_REPEATS} repeats: the intervals are approximate."))
    }

    /// Checks that runs count.
    ///
    /// # Errors
    /// A variant has no run that counts, or no value of the main metric, at all points; or no run that counts at some of them.
    pub fn require_runs(&self) -> Result<(), RunFailure> {
        let mut variants = BTreeMap::<&str, Vec<&CellResult>>::new();
        for cell in &self.cells {
            variants.entry(&cell.variant).or_default().push(cell);
        }
        for (variant, cells) in variants {
            if cells.iter().all(|cell| cell.is_empty()) {
                return Err(RunFailure::NothingCounts {
                    variant: variant.to_owned(),
                    reason: most_frequent_reason(&cells),
                });
            }
            let has = |metric: &String| cells.iter().any(|cell| cell.metrics.contains_key(metric));
            if let Some(metric) = self.metrics.first().filter(|metric| !has(metric)) {
                return Err(RunFailure::NotMeasured {
                    variant: variant.to_owned(),
                    metric: metric.clone(),
                });
            }
        }
        let empty: Vec<_> = self.cells.iter().filter(|cell| cell.is_empty()).collect();
        if empty.is_empty() {
            return Ok(());
        }
        let name = |cell: &&CellResult| format!("{} at {}", cell.variant, at(&cell.parameters));
        let mut points: Vec<_> = empty.iter().take(NAMED_POINTS).map(name).collect();
        if let Some(more) = empty
            .len()
            .checked_sub(NAMED_POINTS)
            .filter(|more| *more > 0)
        {
            points.push(format!("{more} more"));
        }
        Err(RunFailure::NothingCountsAt {
            points: points.join("; "),
            reason: most_frequent_reason(&empty),
        })
    }

    /// Reads the results in `directory`.
    ///
    /// # Errors
    /// There are none yet, or the file is damaged.
    pub fn read(directory: &Path) -> Result<Self, RunFailure> {
        read_json(directory, RESULTS)?.ok_or_else(|| RunFailure::no_results(directory, RESULTS))
    }
}

/// A variant at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellResult {
    /// The variant.
    pub variant: String,
    /// The point.
    pub parameters: BTreeMap<String, Value>,
    /// Runs, including those without an outcome.
    pub runs: usize,
    /// Runs that exceeded their time limit; they are among the `failed` ones.
    #[serde(default)]
    pub timed_out: usize,
    /// Runs without an outcome, by reason.
    pub failed: BTreeMap<String, usize>,
    /// Runs that do not count, by reason.
    pub invalid: BTreeMap<String, usize>,
    /// The statistics of all others, by metric.
    pub metrics: BTreeMap<String, Summary>,
    /// The median ratio of the first metric to the ideal of the links, if it is a time and the ideal is known.
    pub ideal_ratio: Option<f64>,
    /// The 95 % confidence interval of that median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ideal_ratio_ci95: Option<Interval>,
    /// Whether all repeats, at least two, gave the same values of all metrics: nothing in it is random, so that its values
    /// have no intervals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
}

impl CellResult {
    /// Whether none of its runs counts.
    fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }
}

/// Two variants at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonResult {
    /// The point.
    pub parameters: BTreeMap<String, Value>,
    /// The compared metric.
    pub metric: String,
    /// The variant that should be better.
    pub a: String,
    /// The other one.
    pub b: String,
    /// The statistic of the metric.
    pub statistic: Statistic,
    /// Repeats in which both were measured.
    pub pairs: usize,
    /// The reduction of the statistic from `b` to `a`, in percent of that of `b`.
    pub improvement_percent: Option<f64>,
    /// The 95 % confidence interval of the improvement.
    pub ci95: Option<Interval>,
    /// Whether both variants are [deterministic](CellResult::deterministic): the improvement is exact, and has no interval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
    /// The published improvement.
    pub published_percent: Option<f64>,
    /// The source of the published value.
    pub source: Option<String>,
}

impl ComparisonResult {
    /// The 95 % confidence interval of the improvement, if there are enough pairs for it to be reliable. That of an exact
    /// improvement is that value alone.
    pub fn sure_interval(&self) -> Option<Interval> {
        match self.deterministic {
            true => self.improvement_percent.map(|exact| [exact; 2]),
            false => self
                .ci95
                .filter(|_| self.pairs >= self.statistic.fewest_values()),
        }
    }
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedResult {
    /// The variant.
    pub variant: String,
    /// The point.
    pub parameters: BTreeMap<String, Value>,
    /// The metric.
    pub metric: String,
    /// The statistic of the metric.
    pub statistic: Statistic,
    /// The value, in the metric's unit.
    pub value: f64,
    /// The source of the published value.
    pub source: String,
}

/// Two metrics over the runs of a variant at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CorrelationResult {
    /// The variant.
    pub variant: String,
    /// The point.
    pub parameters: BTreeMap<String, Value>,
    /// One metric.
    pub x: String,
    /// The other.
    pub y: String,
    /// Runs in which both were measured.
    pub n: usize,
    /// Pearson's correlation, from -1 to 1; missing where one of the two does not vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r: Option<f64>,
    /// The published coefficient.
    pub published: Option<f64>,
    /// The source of the published value.
    pub source: Option<String>,
}
