//! A member of a bundle: what it reports to the engine, and how it applies directives.

use std::collections::VecDeque;

use super::{Directive, Signal};
use crate::congestion::{CongestionEvent, Controller};

/// The membership of one path. It reports nothing until the engine has given a first directive.
#[derive(Debug, Default)]
pub(crate) struct LocalMember {
    coordinated: bool,
    /// Whether the controller is one that members share.
    sharing: bool,
    signals: VecDeque<Signal>,
    /// The first packet number whose acknowledgment ends the present round.
    round_ends: u64,
}

impl LocalMember {
    /// Leaves the bundle, if it is in one, and is on its own until another engine says otherwise.
    pub(crate) fn leave(&mut self, controller: &mut dyn Controller) {
        self.forget();
        controller.set_share(1.0);
    }

    /// The path is another one, with a controller that no engine knows.
    pub(crate) fn forget(&mut self) {
        self.coordinated = false;
        self.sharing = false;
        self.signals.clear();
    }

    /// Whether the controller is one that members share.
    pub(crate) fn is_sharing(&self) -> bool {
        self.sharing
    }

    /// The path uses the controller of the other members from now on, which need no coordination beyond that.
    pub(crate) fn share(&mut self) {
        self.forget();
        self.sharing = true;
    }

    /// Has `controller` do what the engine decided.
    pub(crate) fn apply_directive(
        &mut self,
        directive: &Directive,
        controller: &mut dyn Controller,
    ) {
        self.coordinated = true;
        if let Some(share) = directive.share {
            controller.set_share(share);
        }
        if directive.slow_start == Some(true) {
            controller.enter_slow_start();
        }
        if let Some(window) = directive.window {
            controller.set_window(window);
        }
        if directive.slow_start == Some(false) {
            controller.exit_slow_start();
        }
        if let Some(rate) = directive.rate {
            controller.set_bandwidth(rate);
        }
    }

    /// Handles an event of the path's recovery: a reaction to congestion, or to a round-trip time that rose.
    pub(crate) fn on_congestion(&mut self, event: &CongestionEvent) {
        if let Some(reaction) = event.reaction().filter(|_| self.coordinated) {
            self.signals.push_back(Signal::Fluctuation {
                loss: !matches!(event, CongestionEvent::Acked(..)),
                persistent: reaction.persistent,
                before: reaction.before,
                after: reaction.after,
            });
        }
    }

    /// Packet `largest` of the application data space is acknowledged; the next one sent will be `next`.
    pub(crate) fn on_acked(&mut self, largest: u64, next: u64) {
        if self.coordinated && largest >= self.round_ends {
            self.round_ends = next;
            self.signals.push_back(Signal::Round);
        }
    }

    /// Takes the next signal that the engine has not seen yet.
    pub(crate) fn next_signal(&mut self) -> Option<Signal> {
        self.signals.pop_front()
    }
}
