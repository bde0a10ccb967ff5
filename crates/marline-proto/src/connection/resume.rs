//! Careful resume (RFC 9959): drives the engine of the main path and applies its decisions.

use super::Connection;
use crate::coordination::careful_resume::{
    Capacity, ResumePhase, ResumeWindow, Resumption, ResumptionEvent, WindowLimited,
};
use crate::observe::Event;
use crate::observe::events::CarefulResumePhaseUpdated;
use crate::paths::Slot;
use crate::time::Instant;

impl Connection {
    /// Begins careful resume if a capacity of the path is saved. Not in a bundle, whose engine owns the windows.
    pub(super) fn begin_resumption(&mut self, now: Instant, moved: bool) {
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
        path.resumption = saved.map(|saved| {
            Box::new(Resumption::new(
                saved,
                self.config.careful_resume,
                path.recovery.first_window().bytes,
                path.recovery.controller(),
            ))
        });
        path.pace_resumption();
        self.report_resumption(now);
    }

    /// Ends careful resume: the connection takes another path.
    pub(super) fn abandon_resumption(&mut self, now: Instant) {
        self.forget_client_capacity();
        let main = self.paths.main_slot();
        let path = &mut self.paths[main];
        if let Some(resumption) = &mut path.resumption {
            resumption.abandon(path.recovery.controller());
            self.report_resumption(now);
            self.paths[main].resumption = None;
            self.paths[main].pace_resumption();
        }
    }

    /// Records that data waits which the window, or a rate-based controller, does not allow to be sent. Returns
    /// whether careful resume has enlarged the window.
    pub(super) fn on_window_limited(&mut self, now: Instant, at: Slot, bytes: u64) -> bool {
        let path = &self.paths[at];
        let recovery = &path.recovery;
        let may_jump = path
            .resumption
            .as_ref()
            .is_some_and(|resumption| resumption.engine().is_confirmed());
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
        let Some(resumption) = &path.resumption else {
            return false;
        };
        let would = resumption.engine().clone().on_window_limited(now, &limited);
        let claimed = match would.window {
            Some(ResumeWindow::To(_)) => Some(self.claim_capacity(now)),
            _ => None,
        };
        let main = self.paths.main_slot();
        self.paths[main].drive_resumption(|engine| match claimed {
            Some(None) => engine.abandon(),
            Some(Some(capacity)) => {
                engine.replace_saved(capacity);
                engine.on_window_limited(now, &limited)
            }
            None => engine.on_window_limited(now, &limited),
        });
        let resumption = &self.paths.main().resumption;
        resumption
            .as_ref()
            .is_some_and(|resumption| resumption.engine().phase() == ResumePhase::Unvalidated)
    }

    /// Claims the capacity saved by the history and by the client's token.
    fn claim_capacity(&mut self, now: Instant) -> Option<Capacity> {
        let history = self.config.history.as_ref();
        let remembered =
            history.and_then(|history| history.claim(&self.kind(now, self.paths.has_moved())));
        newest(self.claim_client_capacity(now), remembered)
    }

    /// Reports what the engine has done, and removes it when it is done.
    pub(super) fn report_resumption(&mut self, now: Instant) {
        let main = self.paths.main_slot();
        let Some(resumption) = &mut self.paths[main].resumption else {
            return;
        };
        let report = resumption.take_report();
        if report.is_over {
            self.paths[main].resumption = None;
            self.paths[main].pace_resumption();
        }
        if report.forget {
            if let Some(history) = &self.config.history {
                history.forget(&self.kind(now, self.paths.has_moved()));
            }
            self.claim_client_capacity(now);
        }
        let path = self.paths[main].id;
        for event in report.events {
            let ResumptionEvent {
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
            self.emit(now, &Event::CarefulResumePhaseUpdated(event));
        }
    }
}

fn newest(received: Option<Capacity>, remembered: Option<Capacity>) -> Option<Capacity> {
    let both = received.into_iter().chain(remembered);
    both.max_by_key(|capacity| capacity.at)
}
