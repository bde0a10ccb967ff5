//! The plan of an experiment: all inputs of its results except the runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use marline_link::Seed;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::RunFailure;
use super::digest::Digest;
use super::inputs::{self, Inputs};
use crate::scenario::{
    Comparison, Correlation, Experiment, Job, Must, Published, Settings, Value, file_name,
};

/// The plan of an experiment.
///
/// Runs have numbers from 0: the first repeat at the first point in all variants, the second repeat, and
/// so on; then the next point. Every other repeat has the variants in reverse order, so that a drift of
/// the machine in real time favors no variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
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
    /// The backend that it runs on.
    pub backend: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// Repeats of each variant at each point.
    pub repeats: u32,
    /// Bootstrap resamples of each interval.
    pub resamples: usize,
    /// Metrics shown in reports; the first is the main one.
    pub metrics: Vec<String>,
    /// Names of the variants.
    pub variants: Vec<String>,
    /// Points of the sweep.
    pub points: Vec<BTreeMap<String, Value>>,
    /// Pairs of variants to compare.
    pub comparisons: Vec<Comparison>,
    /// Published values.
    pub published: Vec<Published>,
    /// Metrics to correlate.
    pub correlations: Vec<Correlation>,
    /// The claims that the comparisons are checked against.
    #[serde(default)]
    pub musts: Vec<Must>,
    /// Overrides of the scenario's settings, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// The command that repeats all runs, if it is not `marline lab run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The scenario as read, and each variant's settings at the first point, defaults included.
    pub settings: Value,
    /// Equal for equal settings of all runs.
    pub settings_hash: String,
    /// Files and programs that the runs read.
    #[serde(default)]
    pub inputs: Inputs,
    /// The version of this program.
    #[serde(default)]
    pub version: String,
    /// The commit that it was built of, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Properties of the machine: its system, architecture, kernel and number of processors.
    #[serde(default)]
    pub machine: BTreeMap<String, String>,
    /// Equal for one build of this program.
    pub program: String,
}

/// Resamples of intervals, by default.
const RESAMPLES: usize = 10_000;
/// Resamples of intervals of quick runs.
const QUICK_RESAMPLES: usize = 1_000;

/// The position of a run in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunPosition {
    pub(super) point: usize,
    pub(super) repeat: u32,
    pub(super) variant: usize,
}

impl Plan {
    /// The largest number of runs: each takes some hundred bytes of memory.
    pub const MAX_RUNS: usize = 10_000_000;

    /// Every variant of `experiment` at every point; a `quick` plan has fewer repeats and fewer resamples.
    ///
    /// # Errors
    /// A file that the runs need cannot be read, or they are more than [`MAX_RUNS`](Self::MAX_RUNS).
    pub fn new(experiment: &Experiment, quick: bool) -> Result<Self, RunFailure> {
        let (repeats, resamples) = if quick {
            (experiment.quick_repeats, QUICK_RESAMPLES)
        } else {
            (experiment.repeats, RESAMPLES)
        };
        let runs = experiment.cells.len().saturating_mul(repeats as usize);
        if runs > Self::MAX_RUNS {
            return Err(RunFailure::TooManyRuns { runs });
        }
        // The place of the experiment is not one of its settings: machines have others.
        let directory = experiment.source.directory().unwrap_or(Path::new(""));
        let named = |settings: &Settings| settings.named_from(directory);
        let mut digest = Digest::default();
        digest.text(env!("CARGO_PKG_VERSION"));
        digest.text(&experiment.id);
        digest.text(experiment.backend.name());
        digest.number(experiment.seed);
        digest.number(repeats.into());
        for cell in &experiment.cells {
            digest.text(&cell.variant);
            digest.text(&json_text(&*cell.parameters));
            digest.text(&json_text(&named(&cell.settings)));
        }
        let first = experiment.cells.iter().take(experiment.variants.len());
        let variants: serde_json::Map<_, _> = first
            .map(|cell| (cell.variant.to_string(), json!(named(&cell.settings))))
            .collect();
        Ok(Self {
            experiment: experiment.id.clone(),
            title: experiment.title.clone(),
            paper: experiment.paper.clone(),
            section: experiment.section.clone(),
            shows: experiment.shows.clone(),
            backend: experiment.backends(),
            seed: experiment.seed,
            repeats,
            resamples,
            metrics: experiment.metrics.clone(),
            variants: experiment
                .variants
                .iter()
                .map(|name| name.to_string())
                .collect(),
            points: experiment
                .points
                .iter()
                .map(|point| (**point).clone())
                .collect(),
            comparisons: experiment.comparisons.clone(),
            published: experiment.published.clone(),
            correlations: experiment.correlations.clone(),
            musts: experiment.musts.clone(),
            sets: experiment.sets.clone(),
            command: experiment.command.clone(),
            settings: json!({ "scenario": experiment.document, "variants": variants }),
            settings_hash: digest.hex(),
            inputs: inputs::read(experiment)?,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: None,
            machine: inputs::machine(),
            program: program(),
        })
    }

    /// The build of this program, as text: `marline 0.1.0, commit 1234567, program 89abcdef`.
    pub(crate) fn build(&self) -> String {
        let version = match self.version.as_str() {
            "" => "of an unknown version",
            version => version,
        };
        let commit = self
            .commit
            .iter()
            .map(|commit| format!(", commit {commit}"));
        let program = self.program.get(..12).unwrap_or(&self.program);
        format!(
            "marline {version}{}, program {program}",
            commit.collect::<String>()
        )
    }

    /// The main metric: the first one of the scenario.
    pub(crate) fn main_metric(&self) -> &str {
        self.metrics.first().map_or("completion_s", String::as_str)
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.points.len() * self.repeats as usize * self.variants.len()
    }

    /// The position of run `index`.
    pub(super) fn position(&self, index: usize) -> RunPosition {
        let variants = self.variants.len().max(1);
        let repeats = (self.repeats as usize).max(1);
        let repeat = (index / variants) % repeats;
        let column = index % variants;
        RunPosition {
            point: index / variants / repeats,
            repeat: repeat as u32,
            variant: if repeat.is_multiple_of(2) {
                column
            } else {
                variants - 1 - column
            },
        }
    }

    /// The seed of run `repeat` at `point`, which is the same for all variants.
    pub(super) fn seed_of(&self, point: usize, repeat: u32) -> u64 {
        let point = self.points.get(point).map(json_text).unwrap_or_default();
        Seed::new(self.seed).of(&point).nth(repeat.into()).value()
    }

    /// The job of run `index`, with these files.
    pub(super) fn job(
        &self,
        experiment: &Experiment,
        index: usize,
        files: &Files,
        watch: bool,
    ) -> Job {
        let position = self.position(index);
        let cell = &experiment.cells[position.point * self.variants.len() + position.variant];
        let variant = file_name(&cell.variant);
        let name = format!("{variant}-{}-{}", position.point, position.repeat);
        Job {
            experiment: Arc::from(experiment.id.as_str()),
            variant: Arc::clone(&cell.variant),
            parameters: Arc::clone(&cell.parameters),
            repeat: position.repeat,
            seed: self.seed_of(position.point, position.repeat),
            settings: Arc::clone(&cell.settings),
            qlog: below(&files.qlog, &name),
            pcap: below(&files.pcap, &format!("{name}.pcapng")),
            har: below(&files.har, &format!("{name}.har")),
            watch,
        }
    }
}

/// The directories of the files that runs write in addition to their outcomes, if enabled.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    pub(super) qlog: Option<PathBuf>,
    pub(super) pcap: Option<PathBuf>,
    pub(super) har: Option<PathBuf>,
}

#[expect(clippy::ref_option, reason = "a field")]
fn below(directory: &Option<PathBuf>, name: &str) -> Option<PathBuf> {
    directory.as_ref().map(|directory| directory.join(name))
}

/// A hash of the running executable, or of nothing if it cannot be read.
fn program() -> String {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    let hash = || {
        let mut digest = Digest::default();
        let file = std::env::current_exe().and_then(std::fs::read);
        digest.bytes(&file.unwrap_or_default());
        digest.hex()
    };
    PROGRAM.get_or_init(hash).clone()
}

/// JSON with the keys of tables in order.
pub(super) fn json_text(value: &impl Serialize) -> String {
    // Through `serde_json::Value`, whose tables are ordered; all keys here are strings.
    serde_json::to_value(value).map_or_else(|error| error.to_string(), |value| value.to_string())
}
