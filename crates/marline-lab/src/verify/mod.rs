//! Checks that presets and link models have the properties they specify.
//!
//! A preset models a link that was measured or described. Its specification is data: expected values, their
//! bounds, and their sources. It is checked on the network that experiments would build, in virtual time,
//! with packets that belong to no transport. Models are checked the same way, with values that formulas give for their
//! settings, and so are workloads of experiments, in runs of the simulator.

#[cfg(test)]
mod equations;
mod experiment;
mod line;
mod models;
mod probe;
mod promises;
mod quantity;
#[cfg(test)]
mod tests;
mod workloads;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use marline_link::Seed;
use marline_link::preset::{PRESETS, Preset};
use serde::Serialize;
use tempfile::TempDir;

use crate::run::Progress;
use models::{MODELS, Model};
use probe::{Extent, Measured, Probe};
use promises::{PROMISES, Promise};
use quantity::Quantity;
use workloads::{WORKLOADS, WorkloadModel};

/// The extent of measurements of links: long enough that values are rarely out of bounds by chance.
const EXTENT: Extent = Extent {
    pings: 40_000,
    cell: Duration::from_secs(2000),
    channel: Duration::from_secs(240),
    steady: Duration::from_secs(30),
    lossy: 600_000,
    lossless: 40_000,
};

/// The result of checking one property of a preset, a model or a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// The preset, the model or the workload.
    pub preset: &'static str,
    /// The measured property.
    pub quantity: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The expected value.
    pub expected: String,
    /// The measured value; `None` if no packet arrived.
    pub measured: Option<f64>,
    /// Whether the measured value is within the bounds.
    pub passed: bool,
    /// The source of the expected value; `chosen` if it follows from settings without a publication.
    pub source: &'static str,
}

/// There is no preset, model or workload of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preset, model or workload {name:?}; there are {}", known().collect::<Vec<_>>().join(", "))]
pub struct UnknownPreset {
    /// The name.
    pub name: String,
}

fn known() -> impl Iterator<Item = &'static str> {
    let presets = PRESETS.iter().map(|preset| preset.name);
    let models = MODELS.iter().map(|model| model.name);
    let workloads = WORKLOADS.iter().map(|workload| workload.name);
    presets.chain(models).chain(workloads)
}

/// Checks the specified properties of the named presets, models and workloads, or of all if no name is given: presets in
/// the order of [`PRESETS`], then models, then workloads. Equal seeds give equal results on any number of threads. `progress` is called on this thread
/// after each measurement.
///
/// # Errors
/// A name is not that of a preset, a model or a workload.
pub fn verify(
    names: &[impl AsRef<str>],
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Verified>, UnknownPreset> {
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    if let Some(name) = names
        .iter()
        .find(|name| known().all(|known| known != **name))
    {
        let name = (*name).to_owned();
        return Err(UnknownPreset { name });
    }
    let presets = PRESETS.iter().map(Subject::of);
    let mut subjects: Vec<_> = presets
        .chain(MODELS.iter().map(Subject::of_model))
        .chain(WORKLOADS.iter().map(Subject::of_workload))
        .filter(|subject| names.is_empty() || names.contains(&subject.name))
        .collect();
    let files = write_traces(&mut subjects);
    let verified = check(&subjects, Seed::new(seed), &EXTENT, progress);
    drop(files);
    Ok(verified)
}

/// Writes the traces of models into a directory, from which their links read them. If that fails, so do their checks.
fn write_traces(subjects: &mut [Subject]) -> Option<TempDir> {
    let directory = TempDir::with_prefix("marline-verify-").ok()?;
    for subject in subjects {
        if let Some(trace) = subject.trace {
            let path = directory.path().join(subject.name);
            std::fs::write(&path, trace).ok()?;
            subject.link = subject.link.replace("TRACE", &path.to_string_lossy());
        }
    }
    Some(directory)
}

/// A link and its specified properties.
#[derive(Clone, Debug)]
struct Subject {
    name: &'static str,
    link: String,
    /// The content of the file that `link` calls `TRACE`.
    trace: Option<&'static str>,
    /// The keys of an experiment beside its link.
    workload: Option<&'static str>,
    promises: Vec<Promise>,
}

impl Subject {
    fn of(preset: &Preset) -> Self {
        let found = PROMISES.iter().find(|(name, _)| *name == preset.name);
        Self {
            name: preset.name,
            link: preset.text.to_owned(),
            trace: None,
            workload: None,
            promises: found.map_or_else(Vec::new, |(_, promises)| promises.to_vec()),
        }
    }

    fn of_model(model: &Model) -> Self {
        Self {
            name: model.name,
            link: model.link.to_owned(),
            trace: model.trace,
            workload: None,
            promises: model.promises.to_vec(),
        }
    }

    fn of_workload(model: &WorkloadModel) -> Self {
        Self {
            name: model.name,
            link: model.link.to_owned(),
            trace: None,
            workload: Some(model.workload),
            promises: model.promises.to_vec(),
        }
    }

    fn seed(&self, seed: Seed) -> Seed {
        seed.of("verify").of(self.name)
    }
}

/// Checks `subjects` on all cores.
fn check(
    subjects: &[Subject],
    seed: Seed,
    extent: &Extent,
    progress: &mut dyn FnMut(Progress),
) -> Vec<Verified> {
    let probes = subjects.iter().enumerate().flat_map(|(index, subject)| {
        let probes = subject
            .promises
            .iter()
            .map(|promise| promise.quantity.probe());
        probes.map(move |probe| (probe, index))
    });
    // Measurements of one kind take about as long: run together, they keep all cores busy to the end.
    let tasks: Vec<_> = probes.collect::<BTreeSet<_>>().into_iter().collect();
    let measure = |(probe, index): (Probe, usize)| {
        let subject = &subjects[index];
        probe.measure(subject, subject.seed(seed), extent)
    };
    let mut found = vec![Measured::new(); subjects.len()];
    spread(&tasks, &measure, &mut |(_, index), measured, done| {
        // A link that cannot be built, or an experiment that fails, fails all checks.
        found[index].extend(measured.into_iter().flatten());
        progress(Progress {
            done,
            total: tasks.len(),
            failed: 0,
            left: None,
        });
    });
    let verified = subjects.iter().zip(&found).flat_map(|(subject, found)| {
        let promises = subject.promises.iter();
        promises.map(|promise| promise.compare(subject.name, found))
    });
    verified.collect()
}

impl Promise {
    fn compare(&self, preset: &'static str, found: &Measured) -> Verified {
        let value = found
            .iter()
            .find(|(quantity, _)| *quantity == self.quantity);
        let measured = value
            .map(|(_, value)| *value)
            .filter(|value| value.is_finite());
        Verified {
            preset,
            quantity: self.quantity.name(),
            unit: self.quantity.unit(),
            expected: self.expected.to_string(),
            measured,
            passed: measured.is_some_and(|value| self.expected.holds(value)),
            source: self.source,
        }
    }
}

/// Executes `tasks` on all cores. Each result is passed to `ended` on this thread, with the number of results
/// so far.
fn spread<T: Copy + Send + Sync, R: Send>(
    tasks: &[T],
    work: &(dyn Fn(T) -> R + Sync),
    ended: &mut dyn FnMut(T, R, usize),
) {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.min(tasks.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(&task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send((task, work(task))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for ((task, result), done) in receiver.into_iter().zip(1..) {
            ended(task, result, done);
        }
    });
}
