//! The backend that executes each run in a machine of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{KernelError, Machine, Task, Work, limits};
use crate::emu::Emulator;
use crate::scenario::{Backend, BackendKind, Job, Outcome, RunError, Source, Value};

/// The time of every run's clock at its start, since 1970: 2026-01-01.
pub const START: Duration = Duration::from_secs(1_767_225_600);

/// Executes jobs of one experiment, each in a machine of its own, in which the [emulator](Emulator) executes it.
#[derive(Clone, Debug)]
pub struct VirtualTime<'a> {
    machine: Machine,
    source: Arc<Source>,
    stop: Option<&'a AtomicBool>,
}

impl<'a> VirtualTime<'a> {
    /// Executes jobs of the experiment that is read from `source`, until `stop` is set, which ends the runs in
    /// progress.
    pub const fn new(machine: Machine, source: Arc<Source>, stop: Option<&'a AtomicBool>) -> Self {
        Self {
            machine,
            source,
            stop,
        }
    }

    fn task(&self, job: &Job) -> std::io::Result<Task> {
        let written = WrittenJob {
            source: Source::clone(&self.source),
            variant: job.variant.to_string(),
            parameters: BTreeMap::clone(&job.parameters),
            repeat: job.repeat,
            seed: job.seed,
            qlog: job.qlog.clone(),
            pcap: job.pcap.clone(),
            har: job.har.clone(),
            watch: job.watch,
        };
        Ok(Task {
            work: Work::Job(serde_json::to_vec(&written)?),
            directory: std::env::current_dir()?,
            seed: format!("{:016x}", job.seed),
            start: START,
            limit: Some(limits::RUN),
        })
    }
}

impl Backend for VirtualTime<'_> {
    fn run(&self, job: &Job) -> Result<Outcome, RunError> {
        if !job.settings.stress.is_empty() {
            let why = "in virtual time hosts have no processor to stress: use the emulator";
            return Err(RunError::Unsupported(why.to_owned()));
        }
        let failed = |error: &dyn std::fmt::Display| RunError::Failed(error.to_string());
        let task = self.task(job).map_err(|error| failed(&error))?;
        let finished = self.machine.run(&task, self.stop)?;
        if finished.status != 0 {
            let errors = String::from_utf8_lossy(&finished.errors);
            return Err(RunError::Failed(format!(
                "in virtual time: {}",
                errors.trim()
            )));
        }
        let answer: Answer =
            serde_json::from_slice(&finished.output).map_err(|error| failed(&error))?;
        match answer {
            Answer::Done(outcome) => Ok(outcome),
            Answer::Failed(error) => Err(error),
        }
    }
}

impl From<KernelError> for RunError {
    /// A missing kernel fails every run.
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Interrupted => Self::Interrupted,
            KernelError::NotBuilt { .. } | KernelError::NoCache => {
                Self::Unsupported(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// A job, as a machine reads it.
#[derive(Debug, Serialize, Deserialize)]
struct WrittenJob {
    source: Source,
    variant: String,
    parameters: BTreeMap<String, Value>,
    repeat: u32,
    seed: u64,
    qlog: Option<PathBuf>,
    pcap: Option<PathBuf>,
    har: Option<PathBuf>,
    watch: bool,
}

/// The outcome of a job, as a machine writes it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Done(Outcome),
    Failed(RunError),
}

/// Executes a job inside a machine. `written` is a job as it is written for machines; returns the answer to it.
///
/// # Errors
/// It is not a job.
pub(super) fn execute_job(written: &[u8]) -> Result<Vec<u8>, RunError> {
    let failed = |error: &dyn std::fmt::Display| RunError::Failed(error.to_string());
    let written: WrittenJob = serde_json::from_slice(written).map_err(|error| failed(&error))?;
    let settings = written
        .source
        .settings(&written.variant, &written.parameters);
    let mut settings = settings.map_err(|error| failed(&error))?;
    settings.run_in(BackendKind::Kernel);
    let job = Job {
        experiment: written.source.id().into(),
        variant: written.variant.into(),
        parameters: Arc::new(written.parameters),
        repeat: written.repeat,
        seed: written.seed,
        settings: Arc::new(settings),
        qlog: written.qlog,
        pcap: written.pcap,
        har: written.har,
        watch: written.watch,
    };
    let answer = match Emulator::default().run(&job) {
        Ok(outcome) => Answer::Done(outcome),
        Err(error) => Answer::Failed(error),
    };
    serde_json::to_vec(&answer).map_err(|error| failed(&error))
}
