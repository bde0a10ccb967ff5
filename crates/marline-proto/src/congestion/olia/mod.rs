//! OLIA, the opportunistic linked-increases algorithm (Khalili et al., IEEE/ACM ToN 2013): the paths of a
//! connection together take no more of a shared bottleneck than one connection would, and use the best
//! paths.
//!
//! | subject | file |
//! | --- | --- |
//! | growth of each path | `coupling` |
//! | state shared by the paths | `group` |
//! | growth of a window | `growth` |

mod coupling;
mod group;
mod growth;

use std::sync::Arc;
use std::time::Duration;

use super::loss_based::LossBasedController;
use super::{Algorithm, Controller, ControllerConfig, ControllerFactory, Coordinated, Phase};
use crate::Instant;
use crate::samples::{AckSample, CeSample, LossSample, RttView, SentSample};
use crate::settings::Entry;
pub use coupling::{OliaCoupling, OliaMetric, OliaPath};
use group::Member;
pub use group::OliaGroup;
use growth::Coupled;

/// Its name in settings.
pub(super) const ENTRY: Entry<Arc<dyn ControllerFactory>, ()> = Entry::plain(
    "olia",
    "newreno with coupled windows on several paths: at a shared bottleneck they take the share of one connection",
    |()| Arc::new(Algorithm::Olia),
);

/// The controller of one path among several: NewReno, except for its growth in congestion avoidance.
///
/// A single path grows like NewReno.
#[derive(Debug)]
pub struct Olia {
    window: LossBasedController<Coupled>,
    member: Member,
    /// The smoothed round-trip time; `None` before the first sample.
    rtt: Option<Duration>,
}

impl Olia {
    /// A controller for a new path, coupled with those of `group`.
    pub fn new(config: ControllerConfig, group: &OliaGroup) -> Self {
        Self {
            window: LossBasedController::new(config),
            member: group.join(),
            rtt: None,
        }
    }

    /// The path as the others see it, once its delay is known.
    fn path(&self) -> Option<OliaPath> {
        let growth = &self.window.growth;
        self.rtt.map(|rtt| OliaPath {
            window: self.window.window() as f64,
            rtt,
            between_losses: growth.between_losses,
            since_loss: growth.since_loss,
        })
    }

    /// Calls `what` for the window, and publishes the new state to the other paths.
    fn update(&mut self, what: impl FnOnce(&mut LossBasedController<Coupled>)) {
        what(&mut self.window);
        if let Some(path) = self.path() {
            self.member.publish(&path);
        }
    }
}

impl Controller for Olia {
    fn on_sent(&mut self, now: Instant, sent: &SentSample) {
        self.window.on_sent(now, sent);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        let growth = &mut self.window.growth;
        growth.since_loss = growth.since_loss.saturating_add(ack.bytes);
        self.rtt = Some(ack.rtt.smoothed);
        if let Some(path) = self.path() {
            self.member.publish(&path);
            self.window.growth.growth = self.member.growth(&path);
        }
        self.update(|window| window.on_ack(now, ack));
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.update(|window| window.on_loss(now, loss));
    }

    fn on_ce(&mut self, now: Instant, ce: &CeSample) {
        self.update(|window| window.on_ce(now, ce));
    }

    fn on_spurious_loss(&mut self, now: Instant, sent_at: Instant) {
        self.update(|window| window.on_spurious_loss(now, sent_at));
    }

    fn on_idle(&mut self, now: Instant, idle: Duration) {
        self.window.on_idle(now, idle);
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.update(|window| window.on_mtu(mtu));
    }

    fn window(&self) -> u64 {
        self.window.window()
    }

    fn pacing_rate(&self, rtt: &RttView) -> u64 {
        self.window.pacing_rate(rtt)
    }

    fn phase(&self) -> Phase {
        self.window.phase()
    }

    fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh()
    }

    fn name(&self) -> &'static str {
        self.window.name()
    }
}

impl Coordinated for Olia {
    fn set_window(&mut self, bytes: u64) {
        self.update(|window| window.set_window(bytes));
    }

    fn set_share(&mut self, share: f64) {
        self.window.set_share(share);
    }

    fn enter_slow_start(&mut self) {
        self.update(LossBasedController::enter_slow_start);
    }

    fn exit_slow_start(&mut self) {
        self.window.exit_slow_start();
    }

    fn set_ssthresh(&mut self, bytes: u64) {
        self.update(|window| window.set_ssthresh(bytes));
    }
}

#[cfg(test)]
mod tests;
