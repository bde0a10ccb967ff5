//! Careful resume (RFC 9959): drives the engine of the main path and applies its decisions.

use super::Connection;
use crate::coordination::careful_resume::{
    Capacity, CarefulResumeDriver, CarefulResumeEvent, ResumePhase, ResumeWindow, WindowLimited,
};
use crate::observe::Event;
use crate::observe::events::CarefulResumePhaseUpdated;
use crate::paths::Slot;
use crate::time::Instant;

impl Connection {
    /// Begins careful resume if a capacity of the path is saved. Not in a bundle, whose engine owns the windows.
    pub(super) fn begin_careful_resume(&mut self, now: Instant, moved: bool) {
        if self.belongs_to_bundle()
            || self.paths.is_coordinating()
            || self.paths.main().recovery.had_congestion()
        {
            return;
        }
        let history = self.config.history.as_ref();
        let remembered = history.and_then(|history| history.saved(&self.kind(now, moved)));
        let saved = newest(self.client_capacity(now), remembered);
        let main = self.paths.main_slot();
        let path = &mut self.paths[main];
        let rtt = path.recovery.rtt();
        let handshake = (rtt.has_sample() && !moved).then(|| rtt.view());
        path.careful_resume = saved.map(|saved| {
            Box::new(CarefulResumeDriver::new(
                saved,
                self.config.careful_resume,
                path.recovery.initial_window().bytes,
                path.recovery.controller(),
                handshake,
            ))
        });
        path.pace_careful_resume();
        self.report_careful_resume(now);
    }

    /// Ends careful resume: the connection takes another path.
    pub(super) fn abandon_careful_resume(&mut self, now: Instant) {
        self.forget_client_capacity();
        let main = self.paths.main_slot();
        let path = &mut self.paths[main];
        if let Some(careful_resume) = &mut path.careful_resume {
            careful_resume.abandon(path.recovery.controller());
            self.report_careful_resume(now);
            self.paths[main].careful_resume = None;
            self.paths[main].pace_careful_resume();
        }
    }

    /// Records that data waits which the window, or a rate-based controller, does not allow to be sent. Returns
    /// whether careful resume has enlarged the window.
    pub(super) fn on_window_limited(&mut self, now: Instant, at: Slot, bytes: u64) -> bool {
        let path = &self.paths[at];
        let recovery = &path.recovery;
        let may_jump = path
            .careful_resume
            .as_ref()
            .is_some_and(|careful_resume| careful_resume.engine().is_confirmed());
        if recovery.was_window_limited() && !may_jump {
            return false;
        }
        let is_limit = !recovery.has_window(bytes) || recovery.controller().is_rate_based();
        if !is_limit || !self.has_waiting(at) {
            return false;
        }
        self.paths[at].recovery.on_window_limited();
        may_jump && self.jump(now)
    }

    /// Raises the window of a confirmed path to the saved capacity, unless another connection has claimed it.
    fn jump(&mut self, now: Instant) -> bool {
        let path = self.paths.main();
        if !path.tuples.active.amplification.is_validated() {
            return false;
        }
        let limited = WindowLimited {
            bytes_in_flight: path.recovery.in_flight(),
            window: path.recovery.controller().window(),
            in_slow_start: path.recovery.controller().in_slow_start(),
        };
        let Some(careful_resume) = &path.careful_resume else {
            return false;
        };
        let would = careful_resume
            .engine()
            .clone()
            .on_window_limited(now, &limited);
        let claimed = match would.window {
            Some(ResumeWindow::To(_)) => Some(self.claim_capacity(now)),
            _ => None,
        };
        let main = self.paths.main_slot();
        self.paths[main].drive_careful_resume(|engine| match claimed {
            Some(None) => engine.abandon(),
            Some(Some(capacity)) => {
                engine.replace_saved(capacity);
                engine.on_window_limited(now, &limited)
            }
            None => engine.on_window_limited(now, &limited),
        });
        let careful_resume = &self.paths.main().careful_resume;
        careful_resume.as_ref().is_some_and(|careful_resume| {
            careful_resume.engine().phase() == ResumePhase::Unvalidated
        })
    }

    /// Claims the capacity saved by the history and by the client's token.
    fn claim_capacity(&mut self, now: Instant) -> Option<Capacity> {
        let history = self.config.history.as_ref();
        let remembered =
            history.and_then(|history| history.claim(&self.kind(now, self.paths.has_moved())));
        newest(self.claim_client_capacity(now), remembered)
    }

    /// Reports what the engine has done, and removes it when it is done.
    pub(super) fn report_careful_resume(&mut self, now: Instant) {
        let main = self.paths.main_slot();
        let Some(careful_resume) = &mut self.paths[main].careful_resume else {
            return;
        };
        let report = careful_resume.take_report();
        if report.is_over {
            self.paths[main].careful_resume = None;
            self.paths[main].pace_careful_resume();
        }
        if report.forget {
            if let Some(history) = &self.config.history {
                history.forget(&self.kind(now, self.paths.has_moved()));
            }
            self.claim_client_capacity(now);
        }
        let path = self.paths[main].id;
        for event in report.events {
            let CarefulResumeEvent {
                engine,
                transition,
                is_first,
                window,
                ssthresh,
            } = event;
            let mut event =
                CarefulResumePhaseUpdated::new(path, &engine, &transition, window, ssthresh);
            if is_first {
                event.old = None;
            }
            self.telemetry
                .emit(now, &Event::CarefulResumePhaseUpdated(event));
        }
    }
}

fn newest(received: Option<Capacity>, remembered: Option<Capacity>) -> Option<Capacity> {
    let both = received.into_iter().chain(remembered);
    both.max_by_key(|capacity| capacity.at)
}
