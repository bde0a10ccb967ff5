//! Path failure detection: paths that do not answer are soon suspected, and finally abandoned; idle paths are
//! kept alive. The timeouts are settings ([`MultipathConfig`]).

use std::time::Duration;

use super::list::{PathList, Slot};
use crate::config::MultipathConfig;
use crate::time::Instant;

/// The paths of a connection, and the parameters of their timeouts.
#[derive(Clone, Copy)]
pub(super) struct Detection<'a> {
    pub(super) list: &'a PathList,
    pub(super) config: &'a MultipathConfig,
    /// Maximum delay of the peer's acknowledgments.
    pub(super) max_ack_delay: Duration,
}

/// A detected condition of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The path has not answered for so long that it must be abandoned.
    GivenUp,
    /// No acknowledgment arrived in time although packets arrive on another path, which takes over the data in flight.
    Suspect,
    /// The answer is late, and nothing arrived on other paths either: the peer is probed there.
    Unclear,
    /// The path was idle for so long that a NAT mapping may expire.
    Idle,
}

/// The time at which the answer that a path waits for is late, and whether packets arrived on another path
/// while it was due: otherwise the peer, or a shared part of all paths, may be the cause.
struct Lateness {
    deadline: Instant,
    peer_is_alive: bool,
}

impl Detection<'_> {
    /// Time at which a condition of a path may be detected.
    pub(super) fn next_timeout(&self, at: Slot) -> Option<Instant> {
        if !self.list[at].is_open() {
            return None;
        }
        let suspect = self.suspect_at(at).into_iter();
        suspect
            .chain(self.give_up_at(at))
            .chain(self.keep_alive_at(at))
            .min()
    }

    /// The condition of a path detected at `now`.
    pub(super) fn find(&self, now: Instant, at: Slot) -> Option<Finding> {
        let is_over = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        if !is_over(self.next_timeout(at)) {
            return None;
        }
        if is_over(self.give_up_at(at)) {
            return Some(Finding::GivenUp);
        }
        if is_over(self.suspect_at(at)) {
            let peer_is_alive = self
                .lateness(at)
                .is_some_and(|lateness| lateness.peer_is_alive);
            return Some(match peer_is_alive {
                true => Finding::Suspect,
                false => Finding::Unclear,
            });
        }
        is_over(self.keep_alive_at(at)).then_some(Finding::Idle)
    }

    /// Time at which a path is suspected unless it answers before. This requires another path on which
    /// packets arrive meanwhile, or that can be probed.
    fn suspect_at(&self, at: Slot) -> Option<Instant> {
        let lateness = self.lateness(at)?;
        let has_asked = self.list[at].liveness.has_asked();
        (lateness.peer_is_alive || !has_asked).then_some(lateness.deadline)
    }

    fn lateness(&self, at: Slot) -> Option<Lateness> {
        let path = &self.list[at];
        if !path.is_live() || !path.recovery.rtt().has_sample() {
            return None;
        }
        let rtt = path.recovery.rtt().view();
        let expected_at = path.liveness.expected_at(&rtt)?;
        let others = || self.list.others_live(at).map(|other| &self.list[other]);
        let other_rtts = others().map(|other| other.recovery.rtt().smoothed());
        let other_rtt = other_rtts.min()?;
        let patience = path.liveness.patience(&rtt, self.max_ack_delay, other_rtt);
        let due_at = expected_at + patience / 2;
        Some(Lateness {
            deadline: expected_at + patience,
            peer_is_alive: others().any(|other| other.liveness.received_at() >= due_at),
        })
    }

    fn give_up_at(&self, at: Slot) -> Option<Instant> {
        let path = &self.list[at];
        let since = path.liveness.counts_since()?;
        let has_other = !path.is_live() && self.list.others_live(at).next().is_some();
        Some(since + self.config.give_up_after.filter(|_| has_other)?)
    }

    fn keep_alive_at(&self, at: Slot) -> Option<Instant> {
        let path = &self.list[at];
        let idles = path.is_live() && !path.ping_due;
        Some(path.active_at() + self.config.keep_alive.filter(|_| idles)?)
    }
}
