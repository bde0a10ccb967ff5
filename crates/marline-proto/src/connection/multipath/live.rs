//! Paths that fall silent: noticed early, probed while they are, used again when they answer, given up
//! after long.

use std::time::Duration;

use marline_wire::ErrorCode;

use crate::config::MultipathConfig;
use crate::connection::Connection;
use crate::connection::path::{Path, Stage};
use crate::connection::slots::Slot;
use crate::recovery::Outcome;
use crate::time::Instant;

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
        self.stage == Stage::Open && self.recovery.pto_count() == 0 && !self.liveness.is_in_doubt()
    }

    /// When something last happened that keeps NATs awake.
    fn active_at(&self) -> Instant {
        let heard_at = self.liveness.heard_at();
        let sent_at = self.recovery.last_ack_eliciting();
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
        path.liveness.on_heard(now);
        // The way here works: perhaps the way there does, too.
        let pause = path.recovery.rtt().smoothed();
        let is_probed = path
            .recovery
            .last_ack_eliciting()
            .is_some_and(|last| now < last + pause);
        if path.stage == Stage::Open && !path.is_live() && !is_probed {
            path.recovery.request_probe();
        }
    }

    /// Since when an acknowledgment that comes on `carrier` shows that the path of its packet works; `None` is
    /// ever. While the path does not answer, what arrived there before may be acknowledged elsewhere.
    pub(in crate::connection) fn proven_from(&self, at: Slot, carrier: Slot) -> Option<Instant> {
        let is_elsewhere = self.multipath.is_some() && carrier != at;
        self.paths[at]
            .liveness
            .silent_since()
            .filter(|_| is_elsewhere)
    }

    /// Something was acknowledged for the first time that a path carried.
    pub(in crate::connection) fn on_path_answer(
        &mut self,
        now: Instant,
        at: Slot,
        outcome: &Outcome,
    ) {
        if self.multipath.is_none() {
            return;
        }
        let path = &mut self.paths[at];
        let waiting_since = path.space.sent.waiting_since();
        let liveness = &mut path.liveness;
        liveness.on_acked(waiting_since);
        if !outcome.proves_path {
            return;
        }
        let was_silent = outcome.timeouts > 0 || liveness.is_in_doubt();
        liveness.on_answer(outcome.timeouts > 0);
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
                path.liveness.on_company(now);
            }
            self.return_outstanding(at);
        }
    }

    /// The longest pause between two probes of a path, while there are others.
    pub(in crate::connection) fn probe_interval(&self) -> Option<Duration> {
        let config = self
            .multipath_config()
            .filter(|_| !self.paths.is_single())?;
        Some(config.probe_interval)
    }

    /// Whether a packet of `at` that only acknowledges should be acknowledged itself: an end that sends
    /// nothing else learns by nothing else that its acknowledgments get lost.
    pub(in crate::connection) fn wants_answer(&self, now: Instant, at: Slot) -> bool {
        if self.multipath.is_none() || self.paths.is_single() {
            return false;
        }
        let path = &self.paths[at];
        let pause = (path.recovery.rtt().smoothed() / QUESTIONS_PER_RTT).max(LEAST_PAUSE);
        let last = path.recovery.last_ack_eliciting();
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
        let has_asked = self.paths[at].liveness.has_asked();
        (is_heard || !has_asked).then_some(deadline)
    }

    /// When the answer that a path waits for is too late, and whether the peer was heard elsewhere while it
    /// was due: else it may be the peer that pauses, or the way to all paths.
    fn lateness(&self, at: Slot) -> Option<(Instant, bool)> {
        let path = &self.paths[at];
        if !path.is_live() || !path.recovery.rtt().has_sample() {
            return None;
        }
        let rtt = path.recovery.rtt().view();
        let expected_at = path.liveness.expected_at(&rtt)?;
        let others = || self.live_beside(at).map(|other| &self.paths[other]);
        let other_rtt = others()
            .map(|other| other.recovery.rtt().smoothed())
            .min()?;
        let max_ack_delay = self.peer.max_ack_delay;
        let patience = path.liveness.patience(&rtt, max_ack_delay, other_rtt);
        let due_at = expected_at + patience / 2;
        let is_heard = others().any(|other| other.liveness.heard_at() >= due_at);
        Some((expected_at + patience, is_heard))
    }

    fn give_up_at(&self, config: &MultipathConfig, at: Slot) -> Option<Instant> {
        let since = self.paths[at].liveness.counts_since()?;
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
        for _ in 0..self.paths[at].probes() {
            let Some(stream) = self.turns.ready() else {
                return;
            };
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
            path.liveness.doubt(now);
            path.recovery.request_probe();
            self.pass_on_outstanding(at);
            return;
        }
        self.paths[at].liveness.ask();
        let others: Vec<Slot> = self.live_beside(at).collect();
        for other in others {
            let path = &mut self.paths[other];
            path.ping_due |= !path.space.sent.has_ack_eliciting_in_flight();
        }
    }
}
