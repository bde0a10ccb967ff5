//! Assigns stream data to paths, where there are several.
//!
//! - ACK frames are sent on the path whose packets they acknowledge, unless it is suspected and another is not.
//! - Frames of the whole connection are sent on the best path.
//! - Stream data is sent on the path that the path scheduler chooses, by way of a segment in that path's queue.

use marline_wire::StreamId;

use super::Connection;
use super::reinject::Reinjector;
use super::stream_planner::StreamPlanner;
use crate::config::MultipathConfig;
use crate::paths::{Path, PathList, Slot};
use crate::scheduling::path::{PathScheduler, PathView, Plan, Reinjection, StreamView, Work};
use crate::streams::{Segment, Streams};
use crate::time::Instant;

/// Streams shown to a scheduler that compares streams.
const STREAMS_COMPARED: usize = 32;

/// The path scheduler, and the buffers of its input.
#[derive(Debug)]
pub(super) struct PathPlanner {
    scheduler: Box<dyn PathScheduler>,
    reinjection: Option<Reinjection>,
    input: SchedulerInput,
}

/// The views for the scheduler; kept so that packets need no allocation.
#[derive(Debug, Default)]
struct SchedulerInput {
    paths: Vec<PathView>,
    streams: Vec<StreamView>,
    ids: Vec<StreamId>,
    /// Segments to be reinjected.
    segments: Vec<Segment>,
}

impl PathPlanner {
    pub(super) fn new(config: &MultipathConfig) -> Self {
        Self {
            scheduler: (config.scheduler)(),
            reinjection: config.reinjection.map(Reinjection::new),
            input: SchedulerInput::default(),
        }
    }

    /// The decision of the scheduler when `next` is the stream that sends next.
    fn plan(
        &mut self,
        now: Instant,
        next: StreamId,
        paths: &PathList,
        stream_planner: &mut StreamPlanner,
        streams: &Streams,
    ) -> Plan {
        let Self {
            scheduler, input, ..
        } = self;
        input.show_paths(now, paths);
        input.ids.clear();
        input.ids.push(next);
        if scheduler.compares_streams() {
            input.ids.clear();
            stream_planner.order(STREAMS_COMPARED, &mut input.ids);
        }
        input.streams.clear();
        let views = input.ids.iter().filter_map(|&id| streams.view(id));
        input.streams.extend(views);
        let work = Work {
            streams: &input.streams,
            unsent: unsent(paths, streams),
            sharing: stream_planner.sharing(),
        };
        scheduler.plan(&input.paths, &work)
    }
}

impl SchedulerInput {
    /// Shows the paths that are open and not suspected, or all open ones if all are suspected.
    fn show_paths(&mut self, now: Instant, paths: &PathList) {
        let any_live = paths.iter().any(Path::is_live);
        let usable = paths.iter().filter(|path| match any_live {
            true => path.is_live(),
            false => path.is_open(),
        });
        self.paths.clear();
        self.paths.extend(usable.map(|path| path.view(now)));
    }
}

/// Bytes of all streams that are neither in flight nor assigned to a path, approximately.
fn unsent(paths: &PathList, streams: &Streams) -> u64 {
    let on_path = |path: &Path| path.recovery.in_flight() + path.queue.bytes();
    let assigned: u64 = paths.iter().map(on_path).sum();
    streams.stats().bytes_held.saturating_sub(assigned)
}

impl Connection {
    /// Assigns stream data to paths as the scheduler decides, until `at` has enough for a packet or the scheduler
    /// assigns nothing more.
    pub(super) fn plan_ahead(&mut self, now: Instant, at: Slot) {
        let enough = u64::from(self.paths[at].tuples.active.mtu.current());
        if self.paths[at].queue.is_empty() {
            self.copy_late(now, at);
        }
        while self.paths[at].queue.bytes() < enough && self.assign_next(now) {}
    }

    /// Queues the next segment on the path that the scheduler chooses; `false` if there is none, or if it waits.
    fn assign_next(&mut self, now: Instant) -> bool {
        let Some(next) = self.stream_planner.ready() else {
            return false;
        };
        let Some(planner) = &mut self.path_planner else {
            return false;
        };
        let plan = planner.plan(
            now,
            next,
            &self.paths,
            &mut self.stream_planner,
            &self.streams,
        );
        self.assign_as_planned(&plan)
    }

    fn assign_as_planned(&mut self, plan: &Plan) -> bool {
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
        let Some(planner) = self.path_planner.as_ref().filter(|_| copies) else {
            return true;
        };
        let others = planner.input.paths.iter().filter(|view| view.id != id);
        for view in others.filter(|view| !view.is_full()) {
            if let Some(at) = self.paths.by_id(view.id) {
                self.paths[at].queue.push_copy(segment);
                if planner.reinjection.is_some() {
                    // It is not copied again.
                    self.streams.take_copy(&segment);
                }
            }
        }
        true
    }

    /// Queues a packet on `to` that is late on another path, if there is one.
    fn copy_late(&mut self, now: Instant, to: Slot) {
        if let Some(mut reinjector) = self.reinjector(now) {
            reinjector.copy_late(to);
        }
    }

    /// The copier of what is in flight; `None` without reinjection.
    fn reinjector(&mut self, now: Instant) -> Option<Reinjector<'_>> {
        let planner = self.path_planner.as_deref_mut()?;
        let reinjection = planner.reinjection.as_mut()?;
        let input = &mut planner.input;
        input.paths.clear();
        let live = self.paths.iter().filter(|path| path.is_live());
        input.paths.extend(live.map(|path| path.view(now)));
        reinjection.set_sent(self.streams.stats().bytes_sent);
        Some(Reinjector {
            now,
            paths: &mut self.paths,
            streams: &mut self.streams,
            reinjection,
            views: &input.paths,
            segments: &mut input.segments,
        })
    }

    /// When nothing is left to send, but a slow path has data queued or in flight: queues a packet of it on a path
    /// that may send now; returns that path.
    pub(super) fn reinject(&mut self, now: Instant) -> Option<Slot> {
        if self.stream_planner.ready().is_some() || self.paths.is_single() {
            return None;
        }
        self.reinjector(now)?.run()
    }
}
