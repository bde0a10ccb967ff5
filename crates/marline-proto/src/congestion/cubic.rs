//! CUBIC (RFC 9438).

use std::time::Duration;

use super::window::Window;
use super::{Controller, ControllerConfig, Phase};
use crate::Instant;
use crate::samples::{AckSample, CeSample, LossSample, RttView, SentSample};

/// What a congestion event leaves of the window (RFC 9438, section 4.6).
const BACKOFF: f64 = 0.7;

/// How aggressively the cubic grows, in datagrams per second cubed (RFC 9438, section 5.1).
const C: f64 = 0.4;

/// The target is at most this many times the window (RFC 9438, section 4.4).
const MAX_GROWTH: f64 = 1.5;

/// A window that grows as a cubic function of the time since the last congestion event.
#[derive(Debug)]
pub struct Cubic {
    window: Window,
    backoff: f64,
    curve: Curve,
    /// The curve before the latest reduction, while that may be undone.
    before: Curve,
}

/// Where growth stands; sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// The plateau: the window before the latest congestion event, less under fast convergence.
    plateau: f64,
    /// The window just before the latest congestion event.
    prior: f64,
    epoch: Option<Epoch>,
    /// Since when the application, not the window, limits sending.
    paused_at: Option<Instant>,
}

/// A stretch of congestion avoidance; sizes in bytes.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds from the start to the plateau.
    k: f64,
    /// The window that Reno would have.
    reno: f64,
    /// Growth too small for a byte.
    fraction: f64,
}

impl Curve {
    /// Remembers a window of `window` bytes at which congestion was met.
    fn on_congestion(&mut self, window: f64, backoff: f64) {
        // Fast convergence: a flow that shrinks leaves room for others (RFC 9438, section 4.7).
        self.plateau = if window < self.plateau {
            window * (1.0 + backoff) / 2.0
        } else {
            window
        };
        self.prior = window;
        self.epoch = None;
        self.paused_at = None;
    }

    /// Congestion avoidance begins anew at a window of `window` bytes.
    fn begin(&mut self, now: Instant, window: f64, mss: f64) -> &mut Epoch {
        self.plateau = self.plateau.max(window);
        self.epoch.insert(Epoch {
            start: now,
            k: libm::cbrt((self.plateau - window) / mss / C),
            reno: window,
            fraction: 0.0,
        })
    }

    /// Time without data to send does not count (RFC 9438, section 5.8).
    fn pause(&mut self, now: Instant) {
        self.paused_at.get_or_insert(now);
    }

    fn resume(&mut self, now: Instant) {
        if let (Some(since), Some(epoch)) = (self.paused_at.take(), &mut self.epoch) {
            epoch.start += now - since;
        }
    }

    /// The window after `acked` bytes are acknowledged.
    fn grow(&mut self, now: Instant, acked: u64, window: u64, step: &Step) -> u64 {
        let (window, acked) = (window as f64, acked as f64);
        if self.epoch.is_none() {
            self.begin(now, window, step.mss);
        }
        let (plateau, prior) = (self.plateau, self.prior);
        let Some(epoch) = &mut self.epoch else {
            return window as u64;
        };
        let elapsed = (now - epoch.start).as_secs_f64();
        let cubic = |t: f64| {
            let x = t - epoch.k;
            plateau + C * x * x * x * step.mss
        };

        // Section 4.3: once Reno is where the window was, it grows by one datagram a round.
        let alpha = if epoch.reno < prior {
            3.0 * (1.0 - step.backoff) / (1.0 + step.backoff)
        } else {
            1.0
        };
        let reno = epoch.reno + alpha * step.mss * acked / window;
        let next = if cubic(elapsed) < reno {
            window.max(reno)
        } else {
            let target = cubic(elapsed + step.rtt.as_secs_f64()).clamp(window, MAX_GROWTH * window);
            window + epoch.fraction + (target - window) * acked / window
        };
        epoch.reno = reno;
        epoch.fraction = next.fract();
        next as u64
    }
}

/// What does not change while a curve grows by one step.
struct Step {
    backoff: f64,
    /// Size of a full datagram, in bytes.
    mss: f64,
    rtt: Duration,
}

impl Cubic {
    /// A controller for a path that has just come up.
    pub fn new(config: ControllerConfig) -> Self {
        Self {
            backoff: config.backoff.unwrap_or(BACKOFF),
            window: Window::new(config),
            curve: Curve::default(),
            before: Curve::default(),
        }
    }

    fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        if self.window.enter_recovery(now, sent_at) {
            self.before = self.curve;
            let window = self.window.bytes() as f64;
            self.curve.on_congestion(window, self.backoff);
            self.window.reduce(self.backoff);
        }
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, _now: Instant, _sent: &SentSample) {}

    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        let grows = self.window.on_ack(now, ack);
        if ack.app_limited {
            self.curve.pause(now);
            return;
        }
        self.curve.resume(now);
        if let Some(bytes) = grows {
            let step = Step {
                backoff: self.backoff,
                mss: self.window.max_datagram_size() as f64,
                rtt: ack.rtt.smoothed,
            };
            let next = self.curve.grow(now, bytes, self.window.bytes(), &step);
            self.window.put(next);
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.on_congestion(now, loss.latest_sent_at);
        if loss.persistent {
            self.window.collapse(now);
            // The plateau says nothing about the path any more (RFC 9438, section 4.8).
            self.curve = Curve::default();
        }
    }

    fn on_ce(&mut self, now: Instant, ce: &CeSample) {
        self.on_congestion(now, ce.sent_at);
        self.window.forbid_undo();
    }

    fn on_spurious_loss(&mut self, _now: Instant, sent_at: Instant) {
        if self.window.undo(sent_at) {
            self.curve = self.before;
        }
    }

    fn on_idle(&mut self, now: Instant, idle: Duration) {
        self.curve.pause(now - idle);
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
        self.curve.epoch = None;
    }

    fn enter_slow_start(&mut self) {
        self.window.enter_slow_start();
        self.curve = Curve::default();
    }

    fn exit_slow_start(&mut self) {
        self.window.exit_slow_start();
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}

#[cfg(test)]
mod tests;
