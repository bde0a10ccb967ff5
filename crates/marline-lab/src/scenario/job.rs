//! A run: its input, its outcome, and the trait of backends.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Settings;

/// The value of a parameter: text, a number, a switch, or a list of them.
pub type Value = serde_json::Value;

/// The input of a run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The experiment's ID.
    pub experiment: Arc<str>,
    /// The variant.
    pub variant: Arc<str>,
    /// The point of the sweep, by the names in the scenario.
    pub parameters: Arc<BTreeMap<String, Value>>,
    /// The repeat, from 0.
    pub repeat: u32,
    /// The seed of all randomness of the run. It is the same for all variants of one repeat at one point, so
    /// that they have the same random losses.
    pub seed: u64,
    /// The settings of the run.
    pub settings: Arc<Settings>,
    /// The directory for qlog files, if they are enabled; it is created with the first file.
    pub qlog: Option<PathBuf>,
    /// The directory for captures of the links, if they are enabled; it is created with the first file.
    pub pcap: Option<PathBuf>,
    /// The file for an archive (HAR) of a page load, if it is enabled.
    pub har: Option<PathBuf>,
    /// Whether to record time series.
    pub watch: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The measurements by name, which ends with the unit: `completion_s`, `largest_window_bytes`. `ideal_s`
    /// is the time that the links would allow. In comparisons smaller values are better, except for rates,
    /// shares and fairness.
    pub metrics: BTreeMap<String, f64>,
    /// The duration of the run, in seconds of its own clock.
    pub virtual_s: f64,
    /// Packets sent on all links.
    pub packets: u64,
    /// The reason why the run is invalid, if it is: the emulator was late.
    pub invalid: Option<String>,
    /// The recorded time series, if enabled.
    pub series: Option<Watched>,
}

/// The time series of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Watched {
    /// When the measured part began, in seconds of the run's clock; all other times count from there.
    pub start_s: f64,
    /// Series of (seconds, value) by name, in order of time.
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
    /// Times of events in seconds, by name: losses, ends of slow start.
    pub moments: BTreeMap<String, Vec<f64>>,
    /// The objects of a page, in the order in which they were discovered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<WatchedObject>,
}

impl Watched {
    /// Reduces long series: of each of many equal time spans, the smallest and the largest value are kept.
    pub fn thin(&mut self) {
        for points in self.series.values_mut() {
            if points.len() > MAX_POINTS {
                *points = thinned(points);
            }
        }
    }
}

/// Largest number of points of a series that is not thinned.
const MAX_POINTS: usize = 4000;

fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    let spans = (MAX_POINTS / 2) as f64;
    let span =
        |point: &(f64, f64)| ((point.0 - first.0) / (last.0 - first.0) * (spans - 1.0)) as usize;
    let mut kept = Vec::with_capacity(MAX_POINTS);
    for points in points.chunk_by(|a, b| span(a) == span(b)) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (low, high) = (
            points.iter().min_by(by_value),
            points.iter().max_by(by_value),
        );
        let (Some(low), Some(high)) = (low, high) else {
            continue;
        };
        match low.0.total_cmp(&high.0) {
            Ordering::Less => kept.extend([*low, *high]),
            Ordering::Greater => kept.extend([*high, *low]),
            Ordering::Equal => kept.push(*high),
        }
    }
    kept
}

/// The times of an object of a page, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedObject {
    /// Its name.
    pub name: String,
    /// When it was discovered.
    pub discovered_s: f64,
    /// When it was requested.
    pub requested_s: f64,
    /// When its connection was open: before that, the request waited for the handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_s: Option<f64>,
    /// When the response's header had arrived.
    pub first_byte_s: Option<f64>,
    /// When all of it had arrived.
    pub finished_s: Option<f64>,
}

/// Executes runs.
pub trait Backend: Sync {
    /// Executes a run. In virtual time, equal jobs have equal outcomes.
    fn run(&self, job: &Job) -> Result<Outcome, RunError>;
}

impl<F: Fn(&Job) -> Result<Outcome, RunError> + Sync> Backend for F {
    fn run(&self, job: &Job) -> Result<Outcome, RunError> {
        self(job)
    }
}

/// The reason why a run has no outcome.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunError {
    /// It exceeded [`Settings::time_limit`].
    #[error("not done after {seconds} s; raise time_limit if it may take longer")]
    TimeLimit {
        /// The limit.
        seconds: f64,
    },
    /// No event can ever occur again.
    #[error("stalled: {0}")]
    Stalled(String),
    /// The workload failed.
    #[error("{0}")]
    Failed(String),
    /// The user stopped it, which is not a result.
    #[error("interrupted")]
    Interrupted,
    /// The backend supports neither this run nor any other of its variant.
    #[error("{0}")]
    Unsupported(String),
}
