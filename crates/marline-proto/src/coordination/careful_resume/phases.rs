//! The phases of a path that returns to what is remembered, and what leads from one to the next.

use std::time::Duration;

use super::{Capacity, CarefulResumeConfig, Phase, Step, Transition, Trigger, Window};
use crate::Instant;
use crate::observe::events::{CarefulResumePhaseUpdated, CarefulResumeRestored, PathId};
use crate::samples::{AckSample, LossSample, RttView, SentSample};

/// A path whose smallest round-trip time is so many times the remembered one is another path
/// (section 4.2.1).
const SLOWEST: u32 = 10;

/// A path where data waits that the window does not let leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// The controller's window, in bytes.
    pub window: u64,
    /// Whether the controller still searches for the path's capacity.
    pub in_slow_start: bool,
}

/// One attempt of one path to return to what is remembered of it.
///
/// Packets are those of application data that count as in flight: other packet number spaces count from
/// 0 as well. Congestion counts whichever space met it.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    saved: Capacity,
    config: CarefulResumeConfig,
    initial_window: u64,
    state: State,
    /// The largest packet so far: with less room than this in a window, it is used up.
    datagram: u64,
    largest_sent: Option<u64>,
    rtt: Option<RttView>,
    jump: Jump,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Reconnaissance {
        /// Bytes acknowledged so far.
        acked: u64,
    },
    Unvalidated {
        since: Instant,
        window: u64,
    },
    Validating,
    SafeRetreat {
        window: u64,
    },
    Normal,
}

/// What became of the jump; all 0 before.
#[derive(Clone, Copy, Debug, Default)]
struct Jump {
    /// Bytes in flight when it was made.
    in_flight: u64,
    /// Bytes acknowledged since.
    acked: u64,
    /// The first packet sent with it, or the number it must exceed.
    first: u64,
    /// The last one, or the last one before.
    last: u64,
    /// Whether any was sent.
    is_used: bool,
}

impl CarefulResume {
    /// Begins with the path, which starts with `initial_window` bytes as if nothing were remembered.
    pub fn new(saved: Capacity, config: CarefulResumeConfig, initial_window: u64) -> Self {
        Self {
            saved,
            config,
            initial_window,
            state: State::Reconnaissance { acked: 0 },
            datagram: 0,
            largest_sent: None,
            rtt: None,
            jump: Jump::default(),
        }
    }

    /// Where it stands.
    pub const fn phase(&self) -> Phase {
        match self.state {
            State::Reconnaissance { .. } => Phase::Reconnaissance,
            State::Unvalidated { .. } => Phase::Unvalidated,
            State::Validating => Phase::Validating,
            State::SafeRetreat { .. } => Phase::SafeRetreat,
            State::Normal => Phase::Normal,
        }
    }

    /// Whether nothing more will come of it.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Normal)
    }

    /// Whether the path has taken its initial window well, so that a jump may follow once more data waits
    /// (section 3.2).
    pub const fn is_confirmed(&self) -> bool {
        match self.state {
            State::Reconnaissance { acked } => {
                acked > 0 && acked.saturating_add(self.datagram) > self.initial_window
            }
            _ => false,
        }
    }

    /// How fast packets leave in place of the controller's rate, in bytes per second, while they are
    /// unvalidated: the jump takes a present round trip (section 4.3.2).
    pub fn pacing_rate(&self) -> Option<u64> {
        match self.state {
            State::Unvalidated { window, .. } => Some(per_second(window, self.rtt?.smoothed)),
            _ => None,
        }
    }

    /// What the path has proven to carry since the jump, in bytes (PipeSize): what was in flight then,
    /// and more once more than that was acknowledged. What was in flight counts once, as appendix B.4
    /// has it, not again when it is acknowledged.
    pub fn pipe_size(&self) -> u64 {
        self.jump.in_flight.max(self.jump.acked)
    }

    /// A packet left.
    pub fn on_sent(&mut self, now: Instant, sent: &SentSample) -> Step {
        self.datagram = self.datagram.max(sent.bytes);
        self.largest_sent = self.largest_sent.max(Some(sent.packet_number));
        let State::Unvalidated { window, .. } = self.state else {
            return Step::default();
        };
        if !self.jump.is_used {
            self.jump.is_used = true;
            self.jump.first = sent.packet_number;
        }
        self.jump.last = sent.packet_number;
        let in_flight = sent.bytes_in_flight;
        if in_flight.saturating_add(self.datagram) > window {
            self.end_unvalidated(Trigger::LastUnvalidatedPacketSent, in_flight)
        } else if self.is_late(now) {
            self.end_unvalidated(Trigger::RttExceeded, in_flight)
        } else {
            Step::default()
        }
    }

    /// Packets were acknowledged.
    pub fn on_ack(&mut self, now: Instant, ack: &AckSample) -> Step {
        self.rtt = Some(ack.rtt);
        if !matches!(self.state, State::Reconnaissance { .. }) {
            self.jump.acked = self.jump.acked.saturating_add(ack.bytes);
        }
        let is_shorter = self.is_shorter(&ack.rtt);
        let has_arrived = |packet| ack.largest_acked >= packet;
        match &mut self.state {
            State::Reconnaissance { .. } if is_shorter => {
                self.enter_normal(Some(Trigger::RttNotValidated))
            }
            State::Reconnaissance { acked } => {
                *acked = acked.saturating_add(ack.bytes);
                Step::default()
            }
            State::Unvalidated { .. } if is_shorter => self.retreat(Trigger::PathChanged),
            State::Unvalidated { window, .. } => {
                let window = *window;
                if self.jump.is_used && has_arrived(self.jump.first) {
                    let trigger = Trigger::FirstUnvalidatedPacketAcknowledged;
                    self.end_unvalidated(trigger, ack.bytes_in_flight)
                } else if self.is_late(now) {
                    self.end_unvalidated(Trigger::RttExceeded, ack.bytes_in_flight)
                } else {
                    at_most(window)
                }
            }
            State::Validating if has_arrived(self.jump.last) => {
                self.enter_normal(Some(Trigger::LastUnvalidatedPacketAcknowledged))
            }
            State::SafeRetreat { .. } if has_arrived(self.jump.last) => Step {
                ssthresh: Some(self.ssthresh()),
                ..self.enter_normal(Some(Trigger::ExitRecovery))
            },
            State::SafeRetreat { window } => at_most(*window),
            State::Validating | State::Normal => Step::default(),
        }
    }

    /// Packets were lost.
    pub fn on_loss(&mut self, loss: &LossSample) -> Step {
        match self.state {
            State::Normal => Step::default(),
            // Section 3.6: the controller starts over.
            State::Unvalidated { .. } | State::Validating | State::SafeRetreat { .. }
                if loss.persistent =>
            {
                Step {
                    ssthresh: Some(self.ssthresh()),
                    forget: true,
                    ..self.enter_normal(Some(Trigger::PacketLoss))
                }
            }
            _ => self.on_congestion(Trigger::PacketLoss),
        }
    }

    /// The network marked packets.
    pub fn on_ce(&mut self) -> Step {
        self.on_congestion(Trigger::EcnCe)
    }

    /// Something says that the path is another one than remembered.
    pub fn on_path_changed(&mut self) -> Step {
        self.on_congestion(Trigger::PathChanged)
    }

    /// Data waits that the window does not let leave: jumps, if the path is confirmed and there is
    /// anything to gain.
    pub fn on_window_limited(&mut self, now: Instant, limited: &Limited) -> Step {
        let Some(rtt) = self.rtt.filter(|_| self.is_confirmed()) else {
            return Step::default();
        };
        if now - self.saved.at > self.config.lifetime {
            return Step {
                forget: true,
                ..self.enter_normal(None)
            };
        }
        if self.is_shorter(&rtt) || rtt.min > self.saved.rtt.saturating_mul(SLOWEST) {
            return self.enter_normal(Some(Trigger::RttNotValidated));
        }
        let most = self.config.max_jump.unwrap_or(u64::MAX);
        let window = most.min(self.saved.window / 2);
        if window <= limited.window || !limited.in_slow_start {
            return self.enter_normal(None);
        }
        let last = self.largest_sent.unwrap_or(0);
        self.jump = Jump {
            in_flight: limited.bytes_in_flight,
            first: last.saturating_add(1),
            last,
            ..Jump::default()
        };
        Step {
            window: Some(Window::To(window)),
            ..self.enter(
                State::Unvalidated { since: now, window },
                Some(Trigger::CongestionWindowLimited),
            )
        }
    }

    /// What is remembered has changed since the path began. What was decided stands.
    pub fn replace_saved(&mut self, saved: Capacity) {
        self.saved = saved;
    }

    /// What is remembered may not be used, be it that another connection already does: no jump from
    /// now on. One that was made goes its way.
    pub fn abandon(&mut self) -> Step {
        match self.state {
            State::Reconnaissance { .. } => self.enter_normal(None),
            _ => Step::default(),
        }
    }

    /// The event that tells of `transition` on `path`, whose controller has this window and threshold
    /// now.
    pub fn event(
        &self,
        path: PathId,
        transition: &Transition,
        congestion_window: u64,
        ssthresh: Option<u64>,
    ) -> CarefulResumePhaseUpdated {
        let restored = CarefulResumeRestored {
            congestion_window: self.saved.window,
            rtt: self.saved.rtt,
        };
        CarefulResumePhaseUpdated {
            path,
            old: Some(transition.old),
            new: transition.new,
            pipe_size: self.pipe_size(),
            first_unvalidated_packet: self.jump.first,
            last_unvalidated_packet: self.jump.last,
            congestion_window: Some(congestion_window),
            ssthresh,
            restored: (transition.old == Phase::Reconnaissance).then_some(restored),
            trigger: transition.trigger,
        }
    }

    /// Whether a round trip takes half as long as remembered, or less: a window that was safe then would
    /// be sent faster now.
    fn is_shorter(&self, rtt: &RttView) -> bool {
        rtt.min <= self.saved.rtt / 2
    }

    /// Whether the unvalidated phase has taken more than a round trip.
    fn is_late(&self, now: Instant) -> bool {
        match (self.state, self.rtt) {
            (State::Unvalidated { since, .. }, Some(rtt)) => now - since > rtt.smoothed,
            _ => false,
        }
    }

    /// Slow start goes no further than this after what was too much.
    fn ssthresh(&self) -> u64 {
        let beta = self.config.beta.clamp(0.5, 1.0);
        (self.pipe_size() as f64 * beta) as u64
    }

    fn on_congestion(&mut self, trigger: Trigger) -> Step {
        match self.state {
            State::Reconnaissance { .. } => self.enter_normal(Some(trigger)),
            State::Unvalidated { .. } | State::Validating => self.retreat(trigger),
            State::SafeRetreat { .. } | State::Normal => Step::default(),
        }
    }

    /// The jump is over; `in_flight` bytes of it may be (section 3.3).
    fn end_unvalidated(&mut self, trigger: Trigger, in_flight: u64) -> Step {
        let proven = self.pipe_size();
        if in_flight < self.initial_window || in_flight <= proven {
            return Step {
                window: Some(Window::AtMost(proven.max(self.initial_window))),
                ..self.enter_normal(Some(Trigger::RateLimited))
            };
        }
        Step {
            window: Some(Window::AtMost(in_flight)),
            ..self.enter(State::Validating, Some(trigger))
        }
    }

    /// It was too much (section 3.5).
    fn retreat(&mut self, trigger: Trigger) -> Step {
        let window = self.pipe_size() / 2;
        Step {
            exit_slow_start: true,
            bandwidth: self.rtt.map(|rtt| per_second(window, rtt.min)),
            window: Some(Window::AtMost(window)),
            forget: true,
            ..self.enter(State::SafeRetreat { window }, Some(trigger))
        }
    }

    fn enter_normal(&mut self, trigger: Option<Trigger>) -> Step {
        self.enter(State::Normal, trigger)
    }

    fn enter(&mut self, state: State, trigger: Option<Trigger>) -> Step {
        let old = self.phase();
        self.state = state;
        Step {
            phase: Some(Transition {
                old,
                new: self.phase(),
                trigger,
            }),
            ..Step::default()
        }
    }
}

/// The window does not grow meanwhile.
fn at_most(window: u64) -> Step {
    Step {
        window: Some(Window::AtMost(window)),
        ..Step::default()
    }
}

/// `bytes` in each `interval`, as a rate in bytes per second; at least 1.
fn per_second(bytes: u64, interval: Duration) -> u64 {
    let nanos = interval.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos)
        .unwrap_or(u64::MAX)
        .max(1)
}
