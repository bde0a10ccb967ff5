//! The state machine of Careful Resume.

use std::time::Duration;

use super::{
    Capacity, CarefulResumeConfig, ResumePhase, ResumeSeed, ResumeStep, ResumeTransition,
    ResumeTrigger, ResumeWindow,
};
use crate::Instant;
use crate::samples::{AckSample, LossSample, RttView, SentSample};

/// Factor between the smallest round-trip time and the remembered one above which the path counts as changed (section 4.2.1).
const SLOWEST: u32 = 10;

/// The part of the bytes sent, one in this many, that may be lost without a queue before a rate-based controller considers it
/// congestion, and the number of packets that may be lost in any case.
const TOLERATED_LOSS: u64 = 8;
const TOLERATED_PACKETS: u64 = 2;

/// The part of what was sent whose loss, beside a queue and beyond the saved random loss, is not random.
const QUEUED_LOSS: f64 = 0.02;

/// The smallest rise of the round-trip time that indicates a queue; otherwise a quarter of the smallest one.
const QUEUE: Duration = Duration::from_millis(4);

/// The state of a path on which data waits because its window is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimited {
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// The controller's window, in bytes.
    pub window: u64,
    /// Whether the controller still searches for the path's capacity.
    pub in_slow_start: bool,
}

/// One attempt of one path to return to its remembered capacity.
///
/// Packet numbers are those of the application data space, of packets that count as in flight; losses and
/// ECN marks are those of all spaces.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    saved: Capacity,
    config: CarefulResumeConfig,
    initial_window: u64,
    /// The least window after a retreat, in bytes.
    least: u64,
    state: State,
    /// Size of the largest packet so far: a window with less room than this is full.
    datagram: u64,
    largest_sent: Option<u64>,
    rtt: Option<RttView>,
    jump: Jump,
    judges_losses: bool,
    exposed: Exposed,
}

/// The packets whose losses are judged together: those of the initial window, or those since the jump.
#[derive(Clone, Copy, Debug, Default)]
struct Exposed {
    sent: u64,
    lost: u64,
    lost_packets: u64,
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

/// The jump; all fields are 0 before it.
#[derive(Clone, Copy, Debug, Default)]
struct Jump {
    /// Bytes in flight at the jump.
    in_flight: u64,
    /// Bytes acknowledged since.
    acked: u64,
    /// Number of the first packet sent after it, or the smallest possible one.
    first: u64,
    /// Number of the last packet sent in the unvalidated phase, or before the jump.
    last: u64,
    /// Whether a packet was sent in the unvalidated phase.
    is_used: bool,
}

impl CarefulResume {
    /// Begins with the path, whose initial window of `initial_window` bytes does not depend on `saved`.
    pub fn new(saved: Capacity, config: CarefulResumeConfig, initial_window: u64) -> Self {
        Self {
            saved,
            config,
            initial_window,
            least: 0,
            state: State::Reconnaissance { acked: 0 },
            datagram: 1,
            largest_sent: None,
            rtt: None,
            jump: Jump::default(),
            judges_losses: false,
            exposed: Exposed::default(),
        }
    }

    /// The same for a rate-based controller: losses are congestion only beside a queue, or if they exceed random loss. Section 3
    /// leaves to the controller which signals are congestion (section 2.1); one that ignores random loss would otherwise lose
    /// its capacity to it here.
    #[must_use]
    pub fn judging_losses(self) -> Self {
        Self {
            judges_losses: true,
            ..self
        }
    }

    /// The handshake's flight, acknowledged without congestion in `rtt`, is the reconnaissance, unless its round-trip time shows a
    /// queue: others use the path now. A retreat then ends where a new connection begins, whose first flight this path has not
    /// refused.
    #[must_use]
    pub fn after_handshake(self, rtt: RttView) -> Self {
        if is_above(rtt.adjusted, self.saved.rtt) {
            return self;
        }
        Self {
            rtt: Some(rtt),
            least: self.initial_window,
            state: State::Reconnaissance {
                acked: self.initial_window,
            },
            ..self
        }
    }

    /// The present phase.
    pub const fn phase(&self) -> ResumePhase {
        match self.state {
            State::Reconnaissance { .. } => ResumePhase::Reconnaissance,
            State::Unvalidated { .. } => ResumePhase::Unvalidated,
            State::Validating => ResumePhase::Validating,
            State::SafeRetreat { .. } => ResumePhase::SafeRetreat,
            State::Normal => ResumePhase::Normal,
        }
    }

    /// Whether it has ended.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Normal)
    }

    /// Whether the initial window was acknowledged without congestion, so that a jump may follow once more data waits than the
    /// window allows (section 3.2). A rate-based controller may also have lost part of it at random.
    pub const fn is_confirmed(&self) -> bool {
        match self.state {
            State::Reconnaissance { acked } => {
                let resolved = match self.judges_losses {
                    true => acked.saturating_add(self.exposed.lost),
                    false => acked,
                };
                acked > 0 && resolved.saturating_add(self.datagram) > self.initial_window
            }
            _ => false,
        }
    }

    /// Pacing rate in the unvalidated phase, which replaces that of the controller, in bytes per second.
    pub fn pacing_rate(&self) -> Option<u64> {
        match self.state {
            State::Unvalidated { window, .. } => Some(self.jump_rate(window, &self.rtt?)),
            _ => None,
        }
    }

    /// The measured capacity of the path since the jump, in bytes (PipeSize): the bytes in flight at the jump or the bytes
    /// acknowledged since, whichever is more. As in appendix B.4, bytes in flight at the jump are not added again when they are
    /// acknowledged.
    pub fn pipe_size(&self) -> u64 {
        self.jump.in_flight.max(self.jump.acked)
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, now: Instant, sent: &SentSample) -> ResumeStep {
        self.datagram = self.datagram.max(sent.bytes);
        self.largest_sent = self.largest_sent.max(Some(sent.packet_number));
        self.exposed.sent = self.exposed.sent.saturating_add(sent.bytes);
        let State::Unvalidated { window, .. } = self.state else {
            return ResumeStep::default();
        };
        if !self.jump.is_used {
            self.jump.is_used = true;
            self.jump.first = sent.packet_number;
        }
        self.jump.last = sent.packet_number;
        let in_flight = sent.bytes_in_flight;
        if in_flight.saturating_add(self.datagram) > window {
            self.end_unvalidated(ResumeTrigger::LastUnvalidatedPacketSent, in_flight)
        } else if self.is_late(now) {
            self.end_unvalidated(ResumeTrigger::RttExceeded, in_flight)
        } else {
            ResumeStep::default()
        }
    }

    /// Packets were acknowledged.
    pub fn on_ack(&mut self, now: Instant, ack: &AckSample) -> ResumeStep {
        self.rtt = Some(ack.rtt);
        if !matches!(self.state, State::Reconnaissance { .. }) {
            self.jump.acked = self.jump.acked.saturating_add(ack.bytes);
        }
        let is_shorter = self.is_shorter(&ack.rtt);
        let has_arrived = |packet| ack.largest_acked >= packet;
        match &mut self.state {
            State::Reconnaissance { .. } if is_shorter => {
                self.enter_normal(Some(ResumeTrigger::RttNotValidated))
            }
            State::Reconnaissance { acked } => {
                *acked = acked.saturating_add(ack.bytes);
                ResumeStep::default()
            }
            State::Unvalidated { .. } if is_shorter => self.retreat(ResumeTrigger::PathChanged),
            State::Unvalidated { window, .. } => {
                let window = *window;
                if self.jump.is_used && has_arrived(self.jump.first) {
                    let trigger = ResumeTrigger::FirstUnvalidatedPacketAcknowledged;
                    self.end_unvalidated(trigger, ack.bytes_in_flight)
                } else if self.is_late(now) {
                    self.end_unvalidated(ResumeTrigger::RttExceeded, ack.bytes_in_flight)
                } else {
                    at_most(window)
                }
            }
            State::Validating if has_arrived(self.jump.last) => {
                self.enter_normal(Some(ResumeTrigger::LastUnvalidatedPacketAcknowledged))
            }
            State::SafeRetreat { .. } if has_arrived(self.jump.last) => ResumeStep {
                ssthresh: Some(self.ssthresh()),
                ..self.enter_normal(Some(ResumeTrigger::ExitRecovery))
            },
            State::SafeRetreat { window } => at_most(*window),
            State::Validating | State::Normal => ResumeStep::default(),
        }
    }

    /// Packets were lost.
    pub fn on_loss(&mut self, loss: &LossSample) -> ResumeStep {
        let exposed = &mut self.exposed;
        exposed.lost = exposed.lost.saturating_add(loss.bytes);
        exposed.lost_packets = exposed.lost_packets.saturating_add(loss.packets);
        match self.state {
            State::Normal => ResumeStep::default(),
            // Section 3.6: persistent congestion, after which the controller starts over.
            State::Unvalidated { .. } | State::Validating | State::SafeRetreat { .. }
                if loss.persistent =>
            {
                ResumeStep {
                    ssthresh: Some(self.ssthresh()),
                    forget: true,
                    ..self.enter_normal(Some(ResumeTrigger::PacketLoss))
                }
            }
            _ if self.is_random_loss() => ResumeStep::default(),
            _ => self.on_congestion(ResumeTrigger::PacketLoss),
        }
    }

    /// Whether a rate-based controller considers the losses so far random.
    fn is_random_loss(&self) -> bool {
        let Exposed {
            sent,
            lost,
            lost_packets,
        } = self.exposed;
        let is_rare = if self.rtt.is_some_and(|rtt| is_above(rtt.adjusted, rtt.min)) {
            let random = self.saved.model.map_or(0.0, |model| model.loss_rate());
            lost as f64 <= (random + QUEUED_LOSS) * sent as f64
        } else {
            lost_packets <= TOLERATED_PACKETS || lost <= sent / TOLERATED_LOSS
        };
        self.judges_losses && is_rare
    }

    /// The network marked packets.
    pub fn on_ce(&mut self) -> ResumeStep {
        self.on_congestion(ResumeTrigger::EcnCe)
    }

    /// The path has changed: it is not the remembered one.
    pub fn on_path_changed(&mut self) -> ResumeStep {
        self.on_congestion(ResumeTrigger::PathChanged)
    }

    /// Data waits because the window is full: jumps if the path is confirmed and the jump makes the window larger.
    pub fn on_window_limited(&mut self, now: Instant, limited: &WindowLimited) -> ResumeStep {
        let Some(rtt) = self.rtt.filter(|_| self.is_confirmed()) else {
            return ResumeStep::default();
        };
        if now - self.saved.at > self.config.lifetime {
            return ResumeStep {
                forget: true,
                ..self.enter_normal(None)
            };
        }
        if self.is_shorter(&rtt) || rtt.min > self.saved.rtt.saturating_mul(SLOWEST) {
            return self.enter_normal(Some(ResumeTrigger::RttNotValidated));
        }
        let most = self.config.max_jump.unwrap_or(u64::MAX);
        let window = most.min(self.saved.window / 2);
        if window <= limited.window || !limited.in_slow_start {
            return self.enter_normal(None);
        }
        let last = self.largest_sent.unwrap_or(0);
        self.exposed = Exposed::default();
        self.jump = Jump {
            in_flight: limited.bytes_in_flight,
            first: last.saturating_add(1),
            last,
            ..Jump::default()
        };
        ResumeStep {
            window: Some(ResumeWindow::To(window)),
            seed: self.seed(now, window, &rtt),
            ..self.enter(
                State::Unvalidated { since: now, window },
                Some(ResumeTrigger::CongestionWindowLimited),
            )
        }
    }

    /// The seed of a rate-based controller that jumps to `window` bytes.
    fn seed(&self, now: Instant, window: u64, rtt: &RttView) -> Option<ResumeSeed> {
        let model = self.saved.model.filter(|_| self.judges_losses)?;
        Some(ResumeSeed {
            at: now,
            model,
            min_rtt: rtt.min,
            first_rate: self.jump_rate(window, rtt),
        })
    }

    /// The rate of a jump to `window` bytes, in bytes per second: spread over one smoothed round-trip time (section 4.3.2),
    /// and not faster than the path was found to deliver.
    fn jump_rate(&self, window: u64, rtt: &RttView) -> u64 {
        let rate = per_second(window, rtt.smoothed);
        let limit = self
            .saved
            .model
            .filter(|model| self.judges_losses && model.is_limit);
        limit.map_or(rate, |model| rate.min(model.bandwidth).max(1))
    }

    /// Replaces the remembered capacity by a newer one. Decisions taken before stay as they are.
    pub fn replace_saved(&mut self, saved: Capacity) {
        self.saved = saved;
    }

    /// The remembered capacity may not be used, for example because another connection uses it: no jump
    /// follows. A jump already made is not affected.
    pub fn abandon(&mut self) -> ResumeStep {
        match self.state {
            State::Reconnaissance { .. } => self.enter_normal(None),
            _ => ResumeStep::default(),
        }
    }

    /// The remembered capacity.
    pub const fn saved(&self) -> &Capacity {
        &self.saved
    }

    /// Number of the first packet sent in the unvalidated phase; before there is one, the smallest possible number.
    pub const fn first_unvalidated_packet(&self) -> u64 {
        self.jump.first
    }

    /// Number of the last packet sent in the unvalidated phase so far; before there is one, of the last packet
    /// before the jump.
    pub const fn last_unvalidated_packet(&self) -> u64 {
        self.jump.last
    }

    /// Whether a round trip takes half as long as remembered, or less: the remembered window would then be sent
    /// at twice the rate.
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

    /// The slow-start threshold after congestion in the jump, in bytes.
    fn ssthresh(&self) -> u64 {
        let beta = self.config.beta.clamp(0.5, 1.0);
        ((self.pipe_size() as f64 * beta) as u64).max(self.least)
    }

    fn on_congestion(&mut self, trigger: ResumeTrigger) -> ResumeStep {
        match self.state {
            State::Reconnaissance { .. } => self.enter_normal(Some(trigger)),
            State::Unvalidated { .. } | State::Validating => self.retreat(trigger),
            State::SafeRetreat { .. } | State::Normal => ResumeStep::default(),
        }
    }

    /// The unvalidated phase ends with `in_flight` bytes in flight (section 3.3).
    fn end_unvalidated(&mut self, trigger: ResumeTrigger, in_flight: u64) -> ResumeStep {
        let measured = self.pipe_size();
        if in_flight < self.initial_window || in_flight <= measured {
            return ResumeStep {
                window: Some(ResumeWindow::AtMost(measured.max(self.initial_window))),
                ..self.enter_normal(Some(ResumeTrigger::RateLimited))
            };
        }
        ResumeStep {
            window: Some(ResumeWindow::AtMost(in_flight)),
            ..self.enter(State::Validating, Some(trigger))
        }
    }

    /// The jump met congestion (section 3.5).
    fn retreat(&mut self, trigger: ResumeTrigger) -> ResumeStep {
        let measured = self.pipe_size() / 2;
        let window = measured.max(self.least);
        ResumeStep {
            exit_slow_start: measured >= self.least,
            bandwidth: self.rtt.map(|rtt| per_second(window, rtt.min)),
            window: Some(ResumeWindow::AtMost(window)),
            forget: true,
            ..self.enter(State::SafeRetreat { window }, Some(trigger))
        }
    }

    fn enter_normal(&mut self, trigger: Option<ResumeTrigger>) -> ResumeStep {
        self.enter(State::Normal, trigger)
    }

    fn enter(&mut self, state: State, trigger: Option<ResumeTrigger>) -> ResumeStep {
        let old = self.phase();
        self.state = state;
        ResumeStep {
            phase: Some(ResumeTransition {
                old,
                new: self.phase(),
                trigger,
            }),
            ..ResumeStep::default()
        }
    }
}

/// Whether a round-trip time shows a queue, on a path that takes `empty` without one.
fn is_above(rtt: Duration, empty: Duration) -> bool {
    rtt > empty + QUEUE.max(empty / 4)
}

/// The controller's window may not grow beyond `window` bytes.
fn at_most(window: u64) -> ResumeStep {
    ResumeStep {
        window: Some(ResumeWindow::AtMost(window)),
        ..ResumeStep::default()
    }
}

/// `bytes` in each `interval`, as a rate in bytes per second; at least 1.
fn per_second(bytes: u64, interval: Duration) -> u64 {
    let nanos = interval.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos)
        .unwrap_or(u64::MAX)
        .max(1)
}
