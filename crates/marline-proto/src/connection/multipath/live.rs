//! Paths that fall silent: noticed early, probed while they are, used again when they answer, given up
//! after long.

use std::time::Duration;

use marline_wire::ErrorCode;

use crate::config::MultipathConfig;
use crate::connection::Connection;
use crate::connection::path::{Path, Stage};
use crate::connection::slots::Slot;
use crate::recovery::pto;
use crate::time::Instant;

/// Probes of a silent path after which the pause between them doubles, lest one that is never given up
/// be remembered by ever more packets.
const PROBES_BEFORE_RARER: u32 = 32;

/// Packets with nothing but acknowledgments before one may ask to be acknowledged: more than one, lest
/// both ends do so forever.
const ACKS_BEFORE_QUESTION: u32 = 4;

/// How many of them ask in a round-trip time.
const QUESTIONS_PER_RTT: u32 = 4;

/// The least time between two that ask.
const LEAST_PAUSE: Duration = Duration::from_millis(25);

impl Path {
    /// Whether nothing says that the path does not work.
    pub(in crate::connection) fn is_live(&self) -> bool {
        let recovery = &self.recovery;
        self.stage == Stage::Open && recovery.pto_count == 0 && !recovery.liveness.is_in_doubt()
    }

    /// When something last happened that keeps NATs awake.
    fn active_at(&self) -> Instant {
        let heard_at = self.recovery.liveness.heard_at();
        let sent_at = self.space.last_ack_eliciting;
        sent_at.map_or(heard_at, |sent_at| sent_at.max(heard_at))
    }
}

impl Connection {
    fn multipath_config(&self) -> Option<&MultipathConfig> {
        let config = self.config.multipath.as_ref();
        config.filter(|_| self.multipath.is_some())
    }

    fn live_beside(&self, at: Slot) -> impl Iterator<Item = Slot> + '_ {
        let others = self.paths.slots().filter(move |&other| other != at);
        others.filter(|&other| self.paths[other].is_live())
    }

    /// An authentic packet came on a path.
    pub(in crate::connection) fn on_path_heard(&mut self, now: Instant, at: Slot) {
        if self.multipath.is_none() {
            return;
        }
        let path = &mut self.paths[at];
        path.recovery.liveness.on_heard(now);
        // The way here works: perhaps the way there does, too.
        let pause = path.recovery.rtt.smoothed();
        let is_probed = path
            .space
            .last_ack_eliciting
            .is_some_and(|last| now < last + pause);
        if path.stage == Stage::Open && !path.is_live() && !is_probed {
            path.space.probes = path.space.probes.max(1);
        }
    }

    /// Whether an acknowledgment that came on `carrier` shows that a path works, of a packet that left
    /// there at `sent_at`. While the path is silent, what arrived before may be acknowledged elsewhere.
    pub(in crate::connection) fn shows_that_path_works(
        &self,
        at: Slot,
        sent_at: Instant,
        carrier: Slot,
    ) -> bool {
        let silent_since = self.paths[at].recovery.liveness.silent_since();
        self.multipath.is_none()
            || carrier == at
            || silent_since.is_none_or(|since| sent_at >= since)
    }

    /// Something was acknowledged for the first time that a path carried. If that shows that it works,
    /// `timeouts` of its probes had passed without.
    pub(in crate::connection) fn on_path_answer(
        &mut self,
        now: Instant,
        at: Slot,
        timeouts: Option<u32>,
    ) {
        if self.multipath.is_none() {
            return;
        }
        let path = &mut self.paths[at];
        let waiting_since = path.space.sent.waiting_since();
        let liveness = &mut path.recovery.liveness;
        liveness.on_acked(waiting_since);
        let Some(timeouts) = timeouts else { return };
        let was_silent = timeouts > 0 || liveness.is_in_doubt();
        liveness.on_answer(timeouts > 0);
        if was_silent && path.is_live() {
            self.relieve_silent_paths(now, at);
        }
    }

    /// The path works from now on: it takes what silent ones have on their way.
    pub(in crate::connection) fn relieve_silent_paths(&mut self, now: Instant, by: Slot) {
        let is_only_one = self.live_beside(by).next().is_none();
        for at in self.paths.slots() {
            let path = &mut self.paths[at];
            if path.stage != Stage::Open || path.is_live() {
                continue;
            }
            if is_only_one {
                path.recovery.liveness.on_company(now);
            }
            self.return_outstanding(at);
        }
    }

    /// The time until a path is probed again, of which the probe timeout is `period`: with others beside
    /// it, each probe costs little and brings the path back.
    pub(in crate::connection) fn probe_backoff(&self, at: Slot, period: Duration) -> Duration {
        let timeouts = self.paths[at].recovery.pto_count;
        let pause = pto::backoff(period, timeouts);
        match self.multipath_config() {
            Some(config) if !self.paths.is_single() => {
                let longest = config.probe_interval.max(period);
                pause.min(pto::backoff(longest, timeouts / PROBES_BEFORE_RARER))
            }
            _ => pause,
        }
    }

    /// Whether a packet of `at` that only acknowledges should be acknowledged itself: an end that sends
    /// nothing else learns by nothing else that its acknowledgments get lost.
    pub(in crate::connection) fn wants_answer(&self, now: Instant, at: Slot) -> bool {
        if self.multipath.is_none() || self.paths.is_single() {
            return false;
        }
        let path = &self.paths[at];
        let pause = (path.recovery.rtt.smoothed() / QUESTIONS_PER_RTT).max(LEAST_PAUSE);
        let last = path.space.last_ack_eliciting;
        path.acks_alone >= ACKS_BEFORE_QUESTION && last.is_none_or(|last| last + pause <= now)
    }

    pub(in crate::connection) fn next_liveness_timeout(&self, at: Slot) -> Option<Instant> {
        let config = self.multipath_config()?;
        if self.paths[at].stage != Stage::Open {
            return None;
        }
        self.doubt_at(at)
            .into_iter()
            .chain(self.give_up_at(config, at))
            .chain(self.keep_alive_at(config, at))
            .min()
    }

    /// When a path is in doubt unless it answers before. That takes another one on which the peer is heard
    /// meanwhile, or can be asked.
    fn doubt_at(&self, at: Slot) -> Option<Instant> {
        let (deadline, is_heard) = self.lateness(at)?;
        let has_asked = self.paths[at].recovery.liveness.has_asked();
        (is_heard || !has_asked).then_some(deadline)
    }

    /// When the answer that a path waits for is too late, and whether the peer was heard elsewhere while it
    /// was due: else it may be the peer that pauses, or the way to all paths.
    fn lateness(&self, at: Slot) -> Option<(Instant, bool)> {
        let recovery = &self.paths[at].recovery;
        if !self.paths[at].is_live() || !recovery.rtt.has_sample() {
            return None;
        }
        let rtt = recovery.rtt.view();
        let expected_at = recovery.liveness.expected_at(&rtt)?;
        let others = || {
            self.live_beside(at)
                .map(|other| &self.paths[other].recovery)
        };
        let other_rtt = others().map(|other| other.rtt.smoothed()).min()?;
        let max_ack_delay = self.peer.max_ack_delay;
        let patience = recovery.liveness.patience(&rtt, max_ack_delay, other_rtt);
        let due_at = expected_at + patience / 2;
        let is_heard = others().any(|other| other.liveness.heard_at() >= due_at);
        Some((expected_at + patience, is_heard))
    }

    fn give_up_at(&self, config: &MultipathConfig, at: Slot) -> Option<Instant> {
        let since = self.paths[at].recovery.liveness.counts_since()?;
        let has_other = !self.paths[at].is_live() && self.live_beside(at).next().is_some();
        Some(since + config.give_up_after.filter(|_| has_other)?)
    }

    fn keep_alive_at(&self, config: &MultipathConfig, at: Slot) -> Option<Instant> {
        let path = &self.paths[at];
        let idles = path.is_live() && !path.ping_due;
        Some(path.active_at() + config.keep_alive.filter(|_| idles)?)
    }

    pub(in crate::connection) fn on_liveness_timeouts(&mut self, now: Instant) {
        if self.multipath.is_none() {
            return;
        }
        for at in self.paths.slots() {
            if self.next_liveness_timeout(at).is_some_and(|due| due <= now) {
                self.on_liveness_timeout(now, at);
            }
        }
    }

    fn on_liveness_timeout(&mut self, now: Instant, at: Slot) {
        let Some(config) = self.multipath_config() else {
            return;
        };
        let is_over = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let gives_up = is_over(self.give_up_at(config, at));
        let is_idle = is_over(self.keep_alive_at(config, at));
        if gives_up {
            return self.end_path(now, at, ErrorCode::PATH_UNSTABLE_OR_POOR);
        }
        if is_over(self.doubt_at(at)) {
            self.doubt(now, at);
        } else if is_idle {
            self.paths[at].ping_due = true;
        }
    }

    /// Whoever waits for a silent path need not: others carry what it has on its way. Its probes carry the
    /// first of that, too: if it was a loss and no more, a short path is still sooner than a long one.
    pub(in crate::connection) fn pass_on_outstanding(&mut self, at: Slot) {
        self.return_outstanding(at);
        // It goes before what waits on the others.
        for path in self.paths.slots() {
            self.return_queue(path);
        }
        self.refresh_ready();
        let other = self.best_path();
        if other == at {
            return;
        }
        for _ in 0..self.paths[at].space.probes {
            let Some(stream) = self.ready else { return };
            let room = self.payload_room_of(at).min(self.payload_room_of(other));
            let Some(segment) = self.plan_segment(other, stream, room) else {
                return;
            };
            self.streams.take_copy(&segment);
            self.paths[at].queue.push_copy(segment);
        }
    }

    /// The answer that a path waits for is too late. If the peer is heard elsewhere, others carry what is on
    /// its way; if not, the peer is asked there.
    fn doubt(&mut self, now: Instant, at: Slot) {
        if self.lateness(at).is_some_and(|(_, is_heard)| is_heard) {
            let path = &mut self.paths[at];
            path.recovery.liveness.doubt(now);
            path.space.probes = path.space.probes.max(1);
            self.pass_on_outstanding(at);
            return;
        }
        self.paths[at].recovery.liveness.ask();
        let others: Vec<Slot> = self.live_beside(at).collect();
        for other in others {
            let path = &mut self.paths[other];
            path.ping_due |= !path.space.sent.has_ack_eliciting_in_flight();
        }
    }
}
