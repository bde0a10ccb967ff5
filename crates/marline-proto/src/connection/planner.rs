//! Which path carries what, where there are several.
//!
//! - An acknowledgment takes the path that it acknowledges, unless that one does not answer and another does.
//! - What concerns the connection takes the best path.
//! - Stream data goes where the scheduler of paths says, as an order on that path's queue.

use marline_wire::StreamId;

use super::Connection;
use super::plan::StreamTurns;
use super::reinject::Reinjector;
use crate::config::MultipathConfig;
use crate::paths::{Path, PathList, Slot};
use crate::scheduling::path::{PathScheduler, PathView, Plan, Reinjection, StreamView, Work};
use crate::streams::{Segment, Streams};
use crate::time::Instant;

/// Streams that a scheduler compares that compares any.
const STREAMS_COMPARED: usize = 32;

/// The scheduler of paths, and what it was shown last.
#[derive(Debug)]
pub(super) struct PathPlanner {
    scheduler: Box<dyn PathScheduler>,
    reinjection: Option<Reinjection>,
    seen: Seen,
}

/// What a scheduler was shown last: kept, lest every packet need memory.
#[derive(Debug, Default)]
struct Seen {
    paths: Vec<PathView>,
    streams: Vec<StreamView>,
    ids: Vec<StreamId>,
    /// What is reinjected.
    segments: Vec<Segment>,
}

impl PathPlanner {
    pub(super) fn new(config: &MultipathConfig) -> Self {
        Self {
            scheduler: (config.scheduler)(),
            reinjection: config.reinjection.map(Reinjection::new),
            seen: Seen::default(),
        }
    }

    /// What the scheduler decides, when `next` is the stream that sends next.
    fn plan(
        &mut self,
        next: StreamId,
        paths: &PathList,
        turns: &mut StreamTurns,
        streams: &Streams,
    ) -> Plan {
        let Self {
            scheduler, seen, ..
        } = self;
        seen.show_paths(paths);
        seen.ids.clear();
        seen.ids.push(next);
        if scheduler.compares_streams() {
            seen.ids.clear();
            turns.order(STREAMS_COMPARED, &mut seen.ids);
        }
        seen.streams.clear();
        let views = seen.ids.iter().filter_map(|&id| streams.view(id));
        seen.streams.extend(views);
        let work = Work {
            streams: &seen.streams,
            unsent: unsent(paths, streams),
            sharing: turns.sharing(),
        };
        scheduler.plan(&seen.paths, &work)
    }
}

impl Seen {
    /// Shows the paths that nothing speaks against, or else all that are open.
    fn show_paths(&mut self, paths: &PathList) {
        let any_live = paths.iter().any(Path::is_live);
        let usable = paths.iter().filter(|path| match any_live {
            true => path.is_live(),
            false => path.is_open(),
        });
        self.paths.clear();
        self.paths.extend(usable.map(Path::view));
    }
}

/// Bytes that all streams have to send and no path has, about.
fn unsent(paths: &PathList, streams: &Streams) -> u64 {
    let on_path = |path: &Path| path.recovery.in_flight() + path.queue.bytes();
    let assigned: u64 = paths.iter().map(on_path).sum();
    streams.stats().bytes_held.saturating_sub(assigned)
}

impl Connection {
    /// Has the scheduler say which paths carry what the streams have, until `at` has a packet's worth
    /// or nothing more goes there now.
    pub(super) fn plan_ahead(&mut self, at: Slot) {
        let enough = u64::from(self.paths[at].tuples.active.mtu.current());
        while self.paths[at].queue.bytes() < enough && self.assign() {}
    }

    /// Has the next segment join the queue of the path that the scheduler picks; `false` if there is
    /// none, or it waits.
    fn assign(&mut self) -> bool {
        let Some(next) = self.turns.ready() else {
            return false;
        };
        let Some(planner) = &mut self.planner else {
            return false;
        };
        let plan = planner.plan(next, &self.paths, &mut self.turns, &self.streams);
        self.carry_out(&plan)
    }

    fn carry_out(&mut self, plan: &Plan) -> bool {
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
        self.streams.set_path(stream, id);
        let Some(planner) = self.planner.as_ref().filter(|_| copies) else {
            return true;
        };
        let others = planner.seen.paths.iter().filter(|view| view.id != id);
        for view in others.filter(|view| !view.is_full()) {
            if let Some(at) = self.paths.by_id(view.id) {
                self.paths[at].queue.push_copy(segment);
                if planner.reinjection.is_some() {
                    // It needs no other copy.
                    self.streams.take_copy(&segment);
                }
            }
        }
        true
    }

    /// Nothing is left to send, but something is still waiting for, or in flight on, a slow path: queues a
    /// packet's worth of it on a path that may send now; returns that path.
    pub(super) fn reinject(&mut self, now: Instant) -> Option<Slot> {
        if self.turns.ready().is_some() || self.paths.is_single() {
            return None;
        }
        let planner = self.planner.as_deref_mut()?;
        let reinjection = planner.reinjection.as_mut()?;
        let seen = &mut planner.seen;
        seen.paths.clear();
        let live = self.paths.iter().filter(|path| path.is_live());
        seen.paths.extend(live.map(Path::view));
        reinjection.set_sent(self.streams.stats().bytes_sent);
        Reinjector {
            now,
            paths: &mut self.paths,
            streams: &mut self.streams,
            reinjection,
            views: &seen.paths,
            segments: &mut seen.segments,
        }
        .run()
    }
}
