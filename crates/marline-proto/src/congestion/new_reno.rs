//! NewReno (RFC 9002, section 7 and appendix B).

use super::window::Window;
use super::{Controller, ControllerConfig, Phase};
use crate::Instant;
use crate::samples::{AckSample, CeSample, LossSample, RttView, SentSample};

/// What a congestion event leaves of the window (RFC 9002, section 7.3.2).
const BACKOFF: f64 = 0.5;

/// One datagram more per round trip, half the window less per congestion event.
#[derive(Debug)]
pub struct NewReno {
    window: Window,
    backoff: f64,
    /// Bytes acknowledged in congestion avoidance that have not grown the window yet.
    acked: u64,
}

impl NewReno {
    /// A controller for a path that has just come up.
    pub fn new(config: ControllerConfig) -> Self {
        Self {
            backoff: config.backoff.unwrap_or(BACKOFF),
            window: Window::new(config),
            acked: 0,
        }
    }

    fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        if self.window.enter_recovery(now, sent_at) {
            self.window.reduce(self.backoff);
            self.acked = 0;
        }
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, _now: Instant, _sent: &SentSample) {}

    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        let Some(bytes) = self.window.on_ack(now, ack) else {
            return;
        };
        self.acked = self.acked.saturating_add(bytes);
        let window = self.window.bytes();
        if self.acked >= window {
            self.acked -= window;
            self.window
                .put(window.saturating_add(self.window.max_datagram_size()));
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.on_congestion(now, loss.latest_sent_at);
        if loss.persistent {
            self.window.collapse(now);
        }
    }

    fn on_ce(&mut self, now: Instant, ce: &CeSample) {
        self.on_congestion(now, ce.sent_at);
        self.window.forbid_undo();
    }

    fn on_spurious_loss(&mut self, _now: Instant, sent_at: Instant) {
        self.window.undo(sent_at);
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.window.set_max_datagram_size(mtu);
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn pacing_rate(&self, rtt: &RttView) -> u64 {
        self.window.pacing_rate(rtt)
    }

    fn send_quantum(&self) -> u64 {
        self.window.send_quantum()
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

    fn set_window(&mut self, bytes: u64) {
        self.window.put(bytes);
        self.window.forbid_undo();
        self.acked = 0;
    }

    fn enter_slow_start(&mut self) {
        self.window.enter_slow_start();
    }

    fn exit_slow_start(&mut self) {
        self.window.exit_slow_start();
    }

    fn name(&self) -> &'static str {
        "newreno"
    }
}

#[cfg(test)]
mod tests;
