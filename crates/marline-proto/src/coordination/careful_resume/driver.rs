//! Drives the engine of one path, and keeps its reports until they are taken.

use super::{
    Capacity, CarefulResume, CarefulResumeConfig, Reconnaissance, ResumePhase, ResumeStep,
    ResumeTransition, ResumeTrigger,
};
use crate::congestion::{CongestionEvent, Controller};
use crate::coordination::history::PathSample;
use crate::level::SpaceId;
use crate::samples::RttView;
use crate::time::Instant;

/// Careful Resume on a path (RFC 9959).
#[derive(Debug)]
pub(crate) struct CarefulResumeDriver {
    engine: CarefulResume,
    events: Vec<CarefulResumeEvent>,
    forget: bool,
}

/// The engine has entered a phase.
#[derive(Clone, Debug)]
pub(crate) struct CarefulResumeEvent {
    /// The engine as it was then.
    pub(crate) engine: CarefulResume,
    pub(crate) transition: ResumeTransition,
    /// Whether this is the first phase, which follows none.
    pub(crate) is_first: bool,
    /// The controller's window and slow-start threshold, in bytes.
    pub(crate) window: u64,
    pub(crate) ssthresh: Option<u64>,
}

/// The report of Careful Resume on a path.
#[derive(Debug)]
pub(crate) struct CarefulResumeReport {
    pub(crate) events: Vec<CarefulResumeEvent>,
    /// Whether the remembered capacity is wrong.
    pub(crate) forget: bool,
    /// Whether Careful Resume has ended.
    pub(crate) is_over: bool,
}

impl CarefulResumeDriver {
    /// Begins on a path with `controller`, whose initial window had `initial_window` bytes; `handshake` has the round-trip time
    /// of a handshake without congestion.
    pub(crate) fn new(
        saved: Capacity,
        config: CarefulResumeConfig,
        initial_window: u64,
        controller: &dyn Controller,
        handshake: Option<RttView>,
    ) -> Self {
        let mut engine = CarefulResume::new(saved, config, initial_window);
        if controller.is_rate_based() {
            engine = engine.judging_losses();
            if let (Some(rtt), Reconnaissance::Handshake) = (handshake, config.reconnaissance) {
                engine = engine.after_handshake(rtt);
            }
        }
        let transition = ResumeTransition {
            old: engine.phase(),
            new: engine.phase(),
            trigger: None,
        };
        let first = CarefulResumeEvent {
            engine: engine.clone(),
            transition,
            is_first: true,
            window: controller.window(),
            ssthresh: controller.ssthresh(),
        };
        Self {
            engine,
            events: vec![first],
            forget: false,
        }
    }

    pub(crate) fn engine(&self) -> &CarefulResume {
        &self.engine
    }

    /// The pacing rate of a jump that is not confirmed yet, in bytes per second.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        self.engine.pacing_rate()
    }

    /// Passes an event to the engine, and its step to the controller.
    pub(crate) fn drive(
        &mut self,
        controller: &mut dyn Controller,
        event: impl FnOnce(&mut CarefulResume) -> ResumeStep,
    ) {
        let step = event(&mut self.engine);
        step.apply(controller);
        self.forget |= step.forget;
        if let Some(transition) = &step.phase {
            // A path that cannot take its initial window is not the one that is remembered.
            self.forget |= transition.old == ResumePhase::Reconnaissance
                && matches!(
                    transition.trigger,
                    Some(ResumeTrigger::PacketLoss | ResumeTrigger::EcnCe)
                );
            self.report(transition, controller);
        }
    }

    /// Passes an event of the path's recovery to the engine, after `controller` has handled it.
    pub(crate) fn on_congestion(
        &mut self,
        now: Instant,
        event: &CongestionEvent,
        controller: &mut dyn Controller,
    ) {
        match event {
            CongestionEvent::Ce(_) => self.drive(controller, |engine| engine.on_ce()),
            CongestionEvent::Lost(sample, _) => {
                self.drive(controller, |engine| engine.on_loss(sample));
            }
            CongestionEvent::Acked(SpaceId::Data, sample, _) => {
                self.drive(controller, |engine| engine.on_ack(now, sample));
            }
            CongestionEvent::Acked(..) => {}
        }
    }

    /// The path has changed: its controller is no longer used.
    pub(crate) fn abandon(&mut self, controller: &dyn Controller) {
        let step = self.engine.on_path_changed();
        if let Some(transition) = &step.phase {
            self.report(transition, controller);
        }
    }

    fn report(&mut self, transition: &ResumeTransition, controller: &dyn Controller) {
        self.events.push(CarefulResumeEvent {
            engine: self.engine.clone(),
            transition: *transition,
            is_first: false,
            window: controller.window(),
            ssthresh: controller.ssthresh(),
        });
    }

    /// Takes the report since the previous call.
    pub(crate) fn take_report(&mut self) -> CarefulResumeReport {
        CarefulResumeReport {
            events: std::mem::take(&mut self.events),
            forget: std::mem::take(&mut self.forget),
            is_over: self.engine.is_over(),
        }
    }

    /// Bounds a sample of the path: an unconfirmed jump is not capacity.
    pub(crate) fn bound(&self, sample: &mut PathSample) {
        if self.engine.phase() != ResumePhase::Reconnaissance {
            sample.window = sample.window.min(self.engine.pipe_size());
        }
    }
}
