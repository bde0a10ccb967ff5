//! The loss detection timer (RFC 9002, section 6.2 and appendix A.8), for the time threshold and for probe timeouts.

use std::time::Duration;

use super::pto;
use crate::level::SpaceId;
use crate::time::Instant;

/// Number of probe packets after a timeout (RFC 9002, section 6.2.4).
pub(super) const PROBES: u8 = 2;

/// Number of probes of one of several paths after which their interval doubles, which bounds the number of
/// outstanding probes.
const PROBES_BEFORE_RARER: u32 = 32;

/// Conditions of a path's probe timeout besides its own packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeConditions {
    /// Whether ack-eliciting packets are in flight, by space.
    pub(crate) eliciting: [bool; 3],
    /// Whether probe timeouts apply to application data: not before the handshake is confirmed (RFC 9002,
    /// section 6.2.1).
    pub(crate) probes_data: bool,
    /// Client: the space to probe with no packets in flight, because the server may be blocked by its
    /// amplification limit (RFC 9002, section 6.2.2.1).
    pub(crate) unblocks: Option<SpaceId>,
    /// Maximum ACK delay of the peer, for application data.
    pub(crate) max_ack_delay: Duration,
    /// Maximum interval between probes while there are other paths; `None` for the only path.
    pub(crate) probe_interval: Option<Duration>,
    /// Maximum interval between probes of the only path, if it is longer than the probe timeout.
    pub(crate) longest_pause: Option<Duration>,
}

impl ProbeConditions {
    /// Whether packets of `space` in flight set a probe timeout.
    fn probes(&self, space: SpaceId) -> bool {
        self.eliciting[space as usize] && (space != SpaceId::Data || self.probes_data)
    }
}

/// The reason why the loss detection timer expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Packets of the space may be lost now.
    Loss(SpaceId),
    /// A probe timeout of the space expired; probes are to be sent in it.
    Probe(SpaceId),
}

/// The loss detection timer while it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArmedTimer {
    pub(crate) at: Instant,
    /// Reason for which it expires.
    pub(crate) reason: Expired,
}

/// The timer that expires first; `one` if both expire at the same time.
fn earlier(one: Option<ArmedTimer>, other: ArmedTimer) -> Option<ArmedTimer> {
    match one {
        Some(one) if one.at <= other.at => Some(one),
        _ => Some(other),
    }
}

/// Times of a space (RFC 9002, appendix A.3).
#[derive(Clone, Copy, Debug, Default)]
struct SpaceTimes {
    /// Time at which the oldest outstanding packet is declared lost (`loss_time`).
    loss_time: Option<Instant>,
    /// Send time of the last ack-eliciting packet.
    last_ack_eliciting: Option<Instant>,
    /// Number of probe packets still to be sent.
    probes: u8,
}

/// Timers of a path's spaces. Those of the Initial and Handshake spaces are used only on the first path.
#[derive(Debug, Default)]
pub(super) struct Timers {
    spaces: [SpaceTimes; 3],
    pto_count: u32,
    timer: Option<ArmedTimer>,
}

impl Timers {
    pub(super) fn pto_count(&self) -> u32 {
        self.pto_count
    }

    pub(super) fn reset_pto_count(&mut self) {
        self.pto_count = 0;
    }

    pub(super) fn armed(&self) -> Option<ArmedTimer> {
        self.timer
    }

    pub(super) fn probes(&self, space: SpaceId) -> u8 {
        self.spaces[space as usize].probes
    }

    pub(super) fn last_ack_eliciting(&self, space: SpaceId) -> Option<Instant> {
        self.spaces[space as usize].last_ack_eliciting
    }

    pub(super) fn set_loss_time(&mut self, space: SpaceId, loss_time: Option<Instant>) {
        self.spaces[space as usize].loss_time = loss_time;
    }

    /// Records a sent ack-eliciting packet.
    pub(super) fn on_ack_eliciting_sent(&mut self, now: Instant, space: SpaceId) {
        let times = &mut self.spaces[space as usize];
        times.last_ack_eliciting = Some(now);
        times.probes = times.probes.saturating_sub(1);
    }

    /// Makes the two probes of a timeout due (RFC 9002, section 6.2.4).
    pub(super) fn request_probes(&mut self, space: SpaceId) {
        self.spaces[space as usize].probes = PROBES;
    }

    /// Makes a probe due, unless some are due already.
    pub(super) fn request_probe(&mut self, space: SpaceId) {
        let probes = &mut self.spaces[space as usize].probes;
        *probes = (*probes).max(1);
    }

    pub(super) fn discard(&mut self, space: SpaceId) {
        self.spaces[space as usize] = SpaceTimes::default();
    }

    /// The timers of the same spaces after the path has changed: backoff is reset.
    pub(super) fn restarted(&self) -> Self {
        Self {
            spaces: self.spaces,
            ..Self::default()
        }
    }

    /// Stops all timers.
    pub(super) fn stop(&mut self) {
        self.timer = None;
        for times in &mut self.spaces {
            times.probes = 0;
        }
    }

    /// Sets the timer (RFC 9002, appendix A.8); `pto` is the probe timeout without the peer's `max_ack_delay` and
    /// without backoff. Without `conditions` the path may not send, and is not probed.
    pub(super) fn set(
        &mut self,
        now: Instant,
        pto: Duration,
        idle_since: Option<Instant>,
        conditions: Option<&ProbeConditions>,
    ) {
        self.timer = self
            .next_loss()
            .or_else(|| self.next_probe(now, pto, idle_since, conditions?));
    }

    /// Handles expiry; afterwards the timer must be [set](Self::set) again. `None` if there was no reason.
    pub(super) fn on_timeout(
        &mut self,
        now: Instant,
        pto: Duration,
        idle_since: Option<Instant>,
        conditions: Option<&ProbeConditions>,
    ) -> Option<Expired> {
        if let Some(loss) = self.next_loss() {
            return Some(loss.reason);
        }
        let probe = self.next_probe(now, pto, idle_since, conditions?)?;
        self.pto_count += 1;
        Some(probe.reason)
    }

    /// The timer of the space with the earliest loss time.
    fn next_loss(&self) -> Option<ArmedTimer> {
        let mut first = None;
        for id in SpaceId::ALL {
            if let Some(at) = self.spaces[id as usize].loss_time {
                first = earlier(
                    first,
                    ArmedTimer {
                        at,
                        reason: Expired::Loss(id),
                    },
                );
            }
        }
        first
    }

    /// The timer of the space with the earliest probe timeout (RFC 9002, section 6.2.1).
    fn next_probe(
        &self,
        now: Instant,
        pto: Duration,
        idle_since: Option<Instant>,
        conditions: &ProbeConditions,
    ) -> Option<ArmedTimer> {
        let mut first = None;
        let mut in_flight = false;
        for id in SpaceId::ALL {
            if !conditions.probes(id) {
                continue;
            }
            in_flight = true;
            let Some(sent) = self.last_ack_eliciting(id) else {
                continue;
            };
            let delay = match id {
                SpaceId::Data => conditions.max_ack_delay,
                SpaceId::Initial | SpaceId::Handshake => Duration::ZERO,
            };
            let at = sent + self.backoff(pto + delay, conditions);
            first = earlier(
                first,
                ArmedTimer {
                    at,
                    reason: Expired::Probe(id),
                },
            );
        }
        if in_flight {
            return first;
        }
        let space = conditions.unblocks?;
        let since = idle_since.or(self.last_ack_eliciting(SpaceId::Data));
        Some(ArmedTimer {
            at: since.unwrap_or(now) + self.backoff(pto, conditions),
            reason: Expired::Probe(space),
        })
    }

    /// The interval to the next probe, for a probe timeout of `period`. With other paths, each probe is cheap and helps
    /// the path to recover; on the only path, the last probe must leave time for its answer before the idle timeout.
    fn backoff(&self, period: Duration, conditions: &ProbeConditions) -> Duration {
        let pause = pto::backoff(period, self.pto_count);
        match (conditions.probe_interval, conditions.longest_pause) {
            (Some(interval), _) => {
                let rarer = self.pto_count / PROBES_BEFORE_RARER;
                pause.min(pto::backoff(interval.max(period), rarer))
            }
            (None, Some(longest)) => pause.min(longest.max(period)),
            (None, None) => pause,
        }
    }
}
