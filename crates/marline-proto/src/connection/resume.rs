//! Careful resume (RFC 9959): drives the engine of a path, and does what it says.

use super::Connection;
use super::path::Recovery;
use super::slots::Slot;
use crate::congestion::Capacity;
use crate::coordination::careful_resume::{
    CarefulResume, CarefulResumeConfig, Limited, Phase, Step, Transition, Trigger, Window,
};
use crate::observe::Event;
use crate::observe::events::CarefulResumePhaseUpdated;
use crate::time::Instant;

/// The engine of a path, and what it has said that nobody has heard yet.
#[derive(Debug)]
pub(super) struct Resume {
    engine: CarefulResume,
    events: Vec<CarefulResumePhaseUpdated>,
    forget: bool,
}

impl Resume {
    fn new(saved: Capacity, config: CarefulResumeConfig, recovery: &Recovery) -> Self {
        let engine = CarefulResume::new(saved, config, recovery.first_flight.window());
        let began = Transition {
            old: engine.phase(),
            new: engine.phase(),
            trigger: None,
        };
        let controller = &recovery.controller;
        let event = CarefulResumePhaseUpdated {
            old: None,
            ..engine.event(0, &began, controller.window(), controller.ssthresh())
        };
        Self {
            engine,
            events: vec![event],
            forget: false,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.engine.phase()
    }

    pub(super) fn pipe_size(&self) -> u64 {
        self.engine.pipe_size()
    }

    pub(super) fn pacing_rate(&self) -> Option<u64> {
        self.engine.pacing_rate()
    }
}

impl Recovery {
    /// Tells the engine, if there is one, and has the controller do what it says.
    pub(super) fn drive_resume(&mut self, tell: impl FnOnce(&mut CarefulResume) -> Step) {
        let Some(resume) = &mut self.resume else {
            return;
        };
        let step = tell(&mut resume.engine);
        step.apply(&mut *self.controller);
        resume.forget |= step.forget;
        if let Some(transition) = &step.phase {
            // A path that cannot take its first window is not the one that is remembered.
            resume.forget |= transition.old == Phase::Reconnaissance
                && matches!(
                    transition.trigger,
                    Some(Trigger::PacketLoss | Trigger::EcnCe)
                );
            let (window, ssthresh) = (self.controller.window(), self.controller.ssthresh());
            let event = resume.engine.event(0, transition, window, ssthresh);
            resume.events.push(event);
        }
    }

    fn limited(&self) -> Limited {
        Limited {
            bytes_in_flight: self.in_flight,
            window: self.controller.window(),
            in_slow_start: self.controller.in_slow_start(),
        }
    }
}

impl Connection {
    /// The path may return to what is remembered of it. Not in a bundle: there the engine owns the windows.
    pub(super) fn begin_resume(&mut self, now: Instant, moved: bool) {
        if self.belongs_to_bundle() || self.coordinates_paths() || self.main().recovery.suffered {
            return;
        }
        let policy = &self.config.initial_window;
        let remembered = policy.resumption(&self.kind(now, moved));
        let saved = newest(self.brought(now), remembered);
        let main = self.paths.main();
        let recovery = &mut self.paths[main].recovery;
        recovery.resume =
            saved.map(|saved| Box::new(Resume::new(saved, self.config.careful_resume, recovery)));
        self.settle_resume(now);
    }

    /// The path is another one from now on.
    pub(super) fn abandon_resume(&mut self, now: Instant) {
        self.leave_carry();
        let main = self.paths.main();
        let recovery = &mut self.paths[main].recovery;
        if let Some(resume) = &mut recovery.resume {
            // Nothing of the old path's controller is used any more.
            let step = resume.engine.on_path_changed();
            let (window, ssthresh) = (recovery.controller.window(), recovery.controller.ssthresh());
            if let Some(transition) = &step.phase {
                let event = resume.engine.event(0, transition, window, ssthresh);
                resume.events.push(event);
            }
            self.settle_resume(now);
            self.paths[main].recovery.resume = None;
        }
    }

    /// Data waits that the window, or a controller that works with rates, does not let leave: notes so.
    /// Returns whether careful resume has made room.
    pub(super) fn on_window_limited(&mut self, now: Instant, at: Slot, bytes: u64) -> bool {
        let recovery = &self.paths[at].recovery;
        let may_jump = recovery
            .resume
            .as_ref()
            .is_some_and(|resume| resume.engine.is_confirmed());
        if recovery.window_limited && !may_jump {
            return false;
        }
        let is_limit = !recovery.has_window(bytes) || recovery.controller.is_rate_based();
        if !is_limit || !self.has_waiting(at) {
            return false;
        }
        self.paths[at].recovery.window_limited = true;
        may_jump && self.jump(now)
    }

    /// Takes the confirmed path to what is remembered of it, unless another connection was faster.
    fn jump(&mut self, now: Instant) -> bool {
        let path = self.main();
        if !path.tuples.active.amplification.is_validated() {
            return false;
        }
        let limited = path.recovery.limited();
        let Some(resume) = &path.recovery.resume else {
            return false;
        };
        let would = resume.engine.clone().on_window_limited(now, &limited);
        let claimed = match would.window {
            Some(Window::To(_)) => Some(self.claim_capacity(now)),
            _ => None,
        };
        let main = self.paths.main();
        self.paths[main]
            .recovery
            .drive_resume(|engine| match claimed {
                Some(None) => engine.abandon(),
                Some(Some(capacity)) => {
                    engine.replace_saved(capacity);
                    engine.on_window_limited(now, &limited)
                }
                None => engine.on_window_limited(now, &limited),
            });
        let resume = &self.main().recovery.resume;
        resume
            .as_ref()
            .is_some_and(|resume| resume.phase() == Phase::Unvalidated)
    }

    /// Takes what is remembered of the path, here and by the client, from all others.
    fn claim_capacity(&mut self, now: Instant) -> Option<Capacity> {
        let kind = self.kind(now, self.moved);
        let remembered = self.config.initial_window.claim(&kind);
        newest(self.claim_brought(now), remembered)
    }

    /// Passes on what the engine has said, and lets it go when nothing more will come of it.
    pub(super) fn settle_resume(&mut self, now: Instant) {
        let main = self.paths.main();
        let Some(resume) = &mut self.paths[main].recovery.resume else {
            return;
        };
        let events = std::mem::take(&mut resume.events);
        let forget = std::mem::take(&mut resume.forget);
        if resume.engine.is_over() {
            self.paths[main].recovery.resume = None;
        }
        if forget {
            let kind = self.kind(now, self.moved);
            self.config.initial_window.forget(&kind);
            self.claim_brought(now);
        }
        for event in events {
            self.tell(now, &Event::CarefulResumePhaseUpdated(event));
        }
    }
}

fn newest(brought: Option<Capacity>, remembered: Option<Capacity>) -> Option<Capacity> {
    let both = brought.into_iter().chain(remembered);
    both.max_by_key(|capacity| capacity.at)
}
