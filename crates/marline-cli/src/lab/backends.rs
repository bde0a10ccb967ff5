//! Each run in the backend of its variant.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use marline_lab::emu::Emulator;
use marline_lab::kernel::VirtualTime;
use marline_lab::scenario::{Backend, BackendKind, Experiment, Job, Outcome, RunError};
use marline_lab::sim::Simulator;

use super::virtual_time;
use crate::failure::Failure;

/// The backends that execute the runs of an experiment.
pub(crate) struct Backends<'a> {
    emulator: Emulator,
    /// `None` if no run needs it.
    virtual_time: Option<VirtualTime<'a>>,
}

impl<'a> Backends<'a> {
    /// The backends that `experiment` needs; `stop` ends what runs in virtual time on a kernel.
    ///
    /// # Errors
    /// The experiment needs the kernel of `make kernel`, which was not found.
    pub(crate) fn of(experiment: &Experiment, stop: &'a AtomicBool) -> Result<Self, Failure> {
        let virtual_time = if experiment.uses(BackendKind::Kernel) {
            let source = Arc::clone(&experiment.source);
            let machine = virtual_time::machine()?;
            Some(VirtualTime::new(machine, source, Some(stop)))
        } else {
            None
        };
        Ok(Self {
            emulator: Emulator::default(),
            virtual_time,
        })
    }
}

impl Backend for Backends<'_> {
    fn run(&self, job: &Job) -> Result<Outcome, RunError> {
        match (job.settings.backend, &self.virtual_time) {
            (BackendKind::Kernel, Some(virtual_time)) => virtual_time.run(job),
            (BackendKind::Emu, _) => self.emulator.run(job),
            (BackendKind::Sim | BackendKind::Kernel, _) => Simulator.run(job),
        }
    }
}
