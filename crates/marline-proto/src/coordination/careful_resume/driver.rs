//! Drives the engine of one path, and keeps what it reports until somebody takes it.

use marline_wire::PathId;

use super::Capacity;
use super::{CarefulResume, CarefulResumeConfig, Phase, Step, Transition, Trigger};
use crate::congestion::Controller;
use crate::coordination::history::PathSample;
use crate::observe::events::CarefulResumePhaseUpdated;

/// The return of a path to a capacity that was saved.
#[derive(Debug)]
pub(crate) struct Resumption {
    engine: CarefulResume,
    path: PathId,
    events: Vec<CarefulResumePhaseUpdated>,
    forget: bool,
}

/// What a resumption has reported.
#[derive(Debug)]
pub(crate) struct ResumptionReport {
    pub(crate) events: Vec<CarefulResumePhaseUpdated>,
    /// What is remembered of the path is wrong.
    pub(crate) forget: bool,
    /// Nothing more will come of it.
    pub(crate) is_over: bool,
}

impl Resumption {
    /// Begins on `path` with `controller`, whose first window had `initial_window` bytes.
    pub(crate) fn new(
        path: PathId,
        saved: Capacity,
        config: CarefulResumeConfig,
        initial_window: u64,
        controller: &dyn Controller,
    ) -> Self {
        let engine = CarefulResume::new(saved, config, initial_window);
        let began = Transition {
            old: engine.phase(),
            new: engine.phase(),
            trigger: None,
        };
        let event = CarefulResumePhaseUpdated {
            old: None,
            ..engine.event(path.0, &began, controller.window(), controller.ssthresh())
        };
        Self {
            engine,
            path,
            events: vec![event],
            forget: false,
        }
    }

    pub(crate) fn engine(&self) -> &CarefulResume {
        &self.engine
    }

    /// The pacing rate of a jump that nothing has confirmed yet, in bytes per second.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        self.engine.pacing_rate()
    }

    /// Has the engine learn of an event, and the controller do what it answers.
    pub(crate) fn drive(
        &mut self,
        controller: &mut dyn Controller,
        event: impl FnOnce(&mut CarefulResume) -> Step,
    ) {
        let step = event(&mut self.engine);
        step.apply(controller);
        self.forget |= step.forget;
        if let Some(transition) = &step.phase {
            // A path that cannot take its first window is not the one that is remembered.
            self.forget |= transition.old == Phase::Reconnaissance
                && matches!(
                    transition.trigger,
                    Some(Trigger::PacketLoss | Trigger::EcnCe)
                );
            self.report(transition, controller);
        }
    }

    /// The path is another one from now on: its controller is nobody's any more.
    pub(crate) fn abandon(&mut self, controller: &dyn Controller) {
        let step = self.engine.on_path_changed();
        if let Some(transition) = &step.phase {
            self.report(transition, controller);
        }
    }

    fn report(&mut self, transition: &Transition, controller: &dyn Controller) {
        let (window, ssthresh) = (controller.window(), controller.ssthresh());
        let event = self.engine.event(self.path.0, transition, window, ssthresh);
        self.events.push(event);
    }

    /// Takes what was reported since it was last asked.
    pub(crate) fn take_report(&mut self) -> ResumptionReport {
        ResumptionReport {
            events: std::mem::take(&mut self.events),
            forget: std::mem::take(&mut self.forget),
            is_over: self.engine.is_over(),
        }
    }

    /// Bounds what a path has shown: a jump that nothing has confirmed is no capacity.
    pub(crate) fn bound(&self, sample: &mut PathSample) {
        if self.engine.phase() != Phase::Reconnaissance {
            sample.window = sample.window.min(self.engine.pipe_size());
        }
    }
}
