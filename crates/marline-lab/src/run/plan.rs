//! What is to be done: all that results depend on but the runs themselves.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use marline_link::Seed;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::digest::Digest;
use crate::scenario::{Comparison, Correlation, Experiment, Job, Must, Published, Value};

/// What is to be done.
///
/// Runs have numbers from 0: the first repeat at the first point in all variants, the second repeat,
/// and so on; then the next point. Every other repeat has the variants in reverse, so that what
/// drifts in real time favors none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The experiment's ID.
    pub experiment: String,
    /// In a few words.
    pub title: String,
    /// The paper it repeats, by number.
    pub paper: Option<String>,
    /// Section, table or figure of the paper.
    pub section: Option<String>,
    /// What is to be seen.
    pub shows: Option<String>,
    /// Where it runs.
    pub backend: String,
    /// What all randomness derives from.
    pub seed: u64,
    /// Repeats of each variant at each point.
    pub repeats: u32,
    /// Draws of which intervals are made.
    pub resamples: usize,
    /// Metrics that reports show; the first is the one of most interest.
    pub metrics: Vec<String>,
    /// Names of the variants.
    pub variants: Vec<String>,
    /// Points of the sweep.
    pub points: Vec<BTreeMap<String, Value>>,
    /// Pairs of variants to compare.
    pub comparisons: Vec<Comparison>,
    /// What others found.
    pub published: Vec<Published>,
    /// Metrics to correlate.
    pub correlations: Vec<Correlation>,
    /// What the comparisons must show.
    #[serde(default)]
    pub musts: Vec<Must>,
    /// Overrides that were given beside the scenario, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// The scenario as it was read, and each variant's settings at the first point, defaults
    /// included.
    pub settings: Value,
    /// Equal for equal settings of all runs.
    pub settings_hash: String,
    /// Equal for one build of this program.
    pub program: String,
}

/// Draws of intervals that are to be published.
const RESAMPLES: usize = 10_000;
/// Draws of intervals that are to be looked at.
const QUICK_RESAMPLES: usize = 1_000;

/// The place of a run in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) point: usize,
    pub(super) repeat: u32,
    pub(super) variant: usize,
}

impl Plan {
    /// Every variant of `experiment` at every point; a `quick` one has fewer repeats, and intervals of
    /// fewer draws.
    pub fn new(experiment: &Experiment, quick: bool) -> Self {
        let (repeats, resamples) = if quick {
            (experiment.quick_repeats, QUICK_RESAMPLES)
        } else {
            (experiment.repeats, RESAMPLES)
        };
        let mut digest = Digest::default();
        digest.text(env!("CARGO_PKG_VERSION"));
        digest.text(&experiment.id);
        digest.text(experiment.backend.name());
        digest.number(experiment.seed);
        digest.number(repeats.into());
        for cell in &experiment.cells {
            digest.text(&cell.variant);
            digest.text(&words(&*cell.parameters));
            digest.text(&words(&*cell.settings));
        }
        let first = experiment.cells.iter().take(experiment.variants.len());
        let variants: serde_json::Map<_, _> = first
            .map(|cell| (cell.variant.to_string(), json!(&*cell.settings)))
            .collect();
        Self {
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
            settings: json!({ "scenario": experiment.document, "variants": variants }),
            settings_hash: digest.hex(),
            program: program(),
        }
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.points.len() * self.repeats as usize * self.variants.len()
    }

    /// The place of run `index`.
    pub(super) fn slot(&self, index: usize) -> Slot {
        let variants = self.variants.len().max(1);
        let repeats = (self.repeats as usize).max(1);
        let repeat = (index / variants) % repeats;
        let place = index % variants;
        Slot {
            point: index / variants / repeats,
            repeat: repeat as u32,
            variant: if repeat.is_multiple_of(2) {
                place
            } else {
                variants - 1 - place
            },
        }
    }

    /// What run `repeat` at `point` draws from, whatever the variant.
    pub(super) fn seed_of(&self, point: usize, repeat: u32) -> u64 {
        let point = self.points.get(point).map(words).unwrap_or_default();
        Seed::new(self.seed).of(&point).nth(repeat.into()).value()
    }

    /// Run `index`. Logs and captures go below `directory`, where they are asked for.
    pub(super) fn job(
        &self,
        experiment: &Experiment,
        index: usize,
        logs: Option<&Path>,
        captures: Option<&Path>,
        watch: bool,
    ) -> Job {
        let slot = self.slot(index);
        let cell = &experiment.cells[slot.point * self.variants.len() + slot.variant];
        let variant = cell.variant.replace(|c: char| !c.is_alphanumeric(), "-");
        let name = format!("{variant}-{}-{}", slot.point, slot.repeat);
        Job {
            experiment: Arc::from(experiment.id.as_str()),
            variant: Arc::clone(&cell.variant),
            parameters: Arc::clone(&cell.parameters),
            repeat: slot.repeat,
            seed: self.seed_of(slot.point, slot.repeat),
            settings: Arc::clone(&cell.settings),
            qlog: logs.map(|directory| directory.join(&name)),
            pcap: captures.map(|directory| directory.join(&name)),
            watch: watch && slot.repeat == 0,
        }
    }
}

/// A hash of the file that is running, or nothing if it cannot be read.
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

/// As JSON, with the keys of tables in order.
pub(super) fn words(value: &impl Serialize) -> String {
    // Through a tree, whose tables are ordered; what is serialized here has no keys but text.
    serde_json::to_value(value).map_or_else(|error| error.to_string(), |value| value.to_string())
}
