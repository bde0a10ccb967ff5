//! The loss detection timer (RFC 9002, section 6.2 and appendix A.8): when packets are declared lost by
//! time, and when a path is probed.

use std::time::Duration;

use super::pto;
use crate::level::SpaceId;
use crate::time::Instant;

/// Packets that probe after a timeout (RFC 9002, section 6.2.4).
pub(super) const PROBES: u8 = 2;

/// Probes of a path beside others after which the pause between them doubles, which bounds the number of outstanding
/// probes.
const PROBES_BEFORE_RARER: u32 = 32;

/// What decides when a path is probed, beside its own packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeConditions {
    /// For each space whether ack-eliciting packets are in flight.
    pub(crate) eliciting: [bool; 3],
    /// Whether application data may be a reason to probe: not before the handshake is confirmed (RFC 9002,
    /// section 6.2.1).
    pub(crate) probes_data: bool,
    /// Client: the space to probe in with nothing in flight, because the server may be blocked by its
    /// amplification limit (RFC 9002, section 6.2.2.1).
    pub(crate) unblocks: Option<SpaceId>,
    /// How long the peer may hold back acknowledgments of application data.
    pub(crate) max_ack_delay: Duration,
    /// The longest pause between two probes while there are other paths; `None` for the only path.
    pub(crate) probe_interval: Option<Duration>,
    /// The longest pause between two probes of the only path, if it is longer than the probe timeout.
    pub(crate) longest_pause: Option<Duration>,
}

impl ProbeConditions {
    /// Whether packets of `space` in flight are a reason to probe.
    fn probes(&self, space: SpaceId) -> bool {
        self.eliciting[space as usize] && (space != SpaceId::Data || self.probes_data)
    }
}

/// Why the loss detection timer fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Packets of the space may be lost now.
    Loss(SpaceId),
    /// Nothing was acknowledged for a probe timeout; the space is to send probes.
    Probe(SpaceId),
}

/// The loss detection timer while it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArmedTimer {
    pub(crate) at: Instant,
    /// What it fires for, if nothing happens before.
    pub(crate) reason: Expired,
}

/// The timer that fires first; `one` of two at once.
fn earlier(one: Option<ArmedTimer>, other: ArmedTimer) -> Option<ArmedTimer> {
    match one {
        Some(one) if one.at <= other.at => Some(one),
        _ => Some(other),
    }
}

/// What RFC 9002, appendix A.3 keeps of each space.
#[derive(Clone, Copy, Debug, Default)]
struct SpaceTimes {
    /// When the oldest packet that may still arrive counts as lost.
    loss_time: Option<Instant>,
    /// When the last ack-eliciting packet left.
    last_ack_eliciting: Option<Instant>,
    /// Probe packets that a timeout still wants.
    probes: u8,
}

/// Timers of a path's spaces. Those of Initial and Handshake packets stay unused on all paths but the first.
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

    /// An ack-eliciting packet left.
    pub(super) fn on_ack_eliciting_sent(&mut self, now: Instant, space: SpaceId) {
        let times = &mut self.spaces[space as usize];
        times.last_ack_eliciting = Some(now);
        times.probes = times.probes.saturating_sub(1);
    }

    /// Has the two probes of a timeout sent (RFC 9002, section 6.2.4).
    pub(super) fn request_probes(&mut self, space: SpaceId) {
        self.spaces[space as usize].probes = PROBES;
    }

    /// Has a probe sent, unless some are due already.
    pub(super) fn request_probe(&mut self, space: SpaceId) {
        let probes = &mut self.spaces[space as usize].probes;
        *probes = (*probes).max(1);
    }

    pub(super) fn discard(&mut self, space: SpaceId) {
        self.spaces[space as usize] = SpaceTimes::default();
    }

    /// The same spaces on a path that is another one: its timeouts begin anew.
    pub(super) fn restarted(&self) -> Self {
        Self {
            spaces: self.spaces,
            ..Self::default()
        }
    }

    /// Nothing is sent any more.
    pub(super) fn stop(&mut self) {
        self.timer = None;
        for times in &mut self.spaces {
            times.probes = 0;
        }
    }

    /// Sets the timer (RFC 9002, appendix A.8); `pto` is the probe timeout without the peer's delay of acknowledgments
    /// and without backoff. Without `conditions` the path may not send, and is not probed.
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

    /// The timer fired; afterwards it is to be [set](Self::set) again. `None` if there was no reason.
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

    /// The timer of the space in which packets are declared lost by time first.
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

    /// The timer of the space whose probe timeout ends first (RFC 9002, section 6.2.1).
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

    /// The time until the path is probed again, of which the probe timeout is `period`: with others beside
    /// it, each probe costs little and brings the path back; of the only path, the last one before the idle timeout is
    /// not to come too late for its answer.
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
