//! Which path carries what.
//!
//! With one path there is nothing to choose. With several:
//!
//! - An acknowledgment takes the path that it acknowledges, unless that is silent and another is not.
//! - What concerns the connection takes the best path.
//! - Stream data goes where the scheduler says, as an order on that path's queue.

use std::cmp::Reverse;

use marline_wire::StreamId;

use super::Multipath;
use crate::connection::Connection;
use crate::connection::path::{Path, Stage};
use crate::connection::slots::Slot;
use crate::scheduling::path::{PathStatus, PathView, Plan, Work};

/// Streams that a scheduler compares that compares any.
const STREAMS_COMPARED: usize = 32;

impl Path {
    pub(super) fn view(&self) -> PathView {
        let rtt = self.recovery.rtt().view();
        let window = self.recovery.controller().window();
        let in_flight = self.recovery.in_flight();
        let waiting = self.queue.bytes();
        let leaves = waiting.min(window.saturating_sub(in_flight));
        PathView {
            id: self.id,
            status: self.preference.status(),
            smoothed_rtt: self.recovery.rtt().has_sample().then_some(rtt.smoothed),
            rttvar: rtt.variance,
            window,
            in_flight: in_flight + leaves,
            queued: waiting - leaves,
            mtu: self.tuples.active.mtu.current().into(),
        }
    }

    /// What paths are preferred by: smaller is better.
    fn rank(&self) -> impl Ord + use<> {
        (
            self.stage != Stage::Open,
            // Of silent ones the one heard last.
            (!self.is_live()).then_some(Reverse(self.liveness.heard_at())),
            self.preference.status() == PathStatus::Backup,
            self.recovery.rtt().smoothed(),
        )
    }
}

impl Connection {
    /// The path for what concerns the connection as a whole.
    pub(in crate::connection) fn best_path(&self) -> Slot {
        if self.paths.is_single() {
            return Slot::FIRST;
        }
        let best = self.paths.slots().min_by_key(|&at| self.paths[at].rank());
        best.unwrap_or(Slot::FIRST)
    }

    /// The path that carries the acknowledgments of what comes on `of`: if no path is known to work, the
    /// one that it came on.
    pub(in crate::connection) fn ack_path(&self, of: Slot) -> Slot {
        if self.paths.is_single() || self.paths[of].is_live() {
            return of;
        }
        let best = self.best_path();
        let is_abandoned = self.paths[of].stage != Stage::Open;
        if is_abandoned || self.paths[best].is_live() {
            best
        } else {
            of
        }
    }

    /// Has the scheduler say which paths carry what the streams have, until `at` has a packet's worth
    /// or nothing more goes there now.
    pub(in crate::connection) fn plan_ahead(&mut self, at: Slot) {
        let enough = u64::from(self.paths[at].tuples.active.mtu.current());
        while self.paths[at].queue.bytes() < enough && self.assign() {}
    }

    /// Has the next segment join the queue of the path that the scheduler picks; `false` if there is
    /// none, or it waits.
    fn assign(&mut self) -> bool {
        let Some(next) = self.turns.ready() else {
            return false;
        };
        let Some(mut multipath) = self.multipath.take() else {
            return false;
        };
        self.see(next, &mut multipath);
        let work = Work {
            streams: &multipath.seen.streams,
            unsent: self.unsent(),
            sharing: self.turns.sharing(),
        };
        let plan = multipath.scheduler.plan(&multipath.seen.paths, &work);
        let assigned = self.carry_out(&plan, &multipath);
        self.multipath = Some(multipath);
        assigned
    }

    /// What the scheduler is to choose from: the paths that nothing speaks against, or else all that are
    /// open.
    fn see(&mut self, next: StreamId, multipath: &mut Multipath) {
        let Multipath {
            seen, scheduler, ..
        } = multipath;
        let any_live = self.paths.iter().any(Path::is_live);
        let usable = self.paths.iter().filter(|path| match any_live {
            true => path.is_live(),
            false => path.stage == Stage::Open,
        });
        seen.paths.clear();
        seen.paths.extend(usable.map(Path::view));
        seen.ids.clear();
        seen.ids.push(next);
        if scheduler.compares_streams() {
            seen.ids.clear();
            self.turns.order(STREAMS_COMPARED, &mut seen.ids);
        }
        seen.streams.clear();
        let views = seen.ids.iter().filter_map(|&id| self.streams.view(id));
        seen.streams.extend(views);
    }

    /// Bytes that all streams have to send, about.
    fn unsent(&self) -> u64 {
        let on_paths = |path: &Path| path.recovery.in_flight() + path.queue.bytes();
        let assigned: u64 = self.paths.iter().map(on_paths).sum();
        self.streams.stats().bytes_held.saturating_sub(assigned)
    }

    fn carry_out(&mut self, plan: &Plan, multipath: &Multipath) -> bool {
        let (stream, id, copies) = match *plan {
            Plan::Wait => return false,
            Plan::Send {
                stream,
                path,
                copies,
            } => (stream, path, copies),
            Plan::Queue { stream, path } => (stream, path, false),
        };
        let Some(at) = self.paths.by_id(id) else {
            return false;
        };
        let room = self.payload_room_of(at);
        let Some(segment) = self.plan_segment(at, stream, room) else {
            return false;
        };
        self.streams.note_path(stream, id);
        let others = multipath.seen.paths.iter().filter(|view| view.id != id);
        for view in others.filter(|view| copies && !view.is_full()) {
            if let Some(at) = self.paths.by_id(view.id) {
                self.paths[at].queue.push_copy(segment);
                if multipath.reinjection.is_some() {
                    // It needs no other copy.
                    self.streams.take_copy(&segment);
                }
            }
        }
        true
    }
}
