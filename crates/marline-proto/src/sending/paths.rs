//! Assigns stream data to paths, where there are several.
//!
//! - ACK frames are sent on the path whose packets they acknowledge, unless it is suspected and another is not.
//! - Frames of the whole connection are sent on the best path.
//! - Stream data is sent on the path that the path scheduler chooses, by way of a segment in that path's queue.

use marline_wire::{PathId, StreamId};

use super::Content;
use super::late_losses::LateLosses;
use super::reinject::Reinjector;
use super::streams::StreamPlanner;
use crate::config::MultipathConfig;
use crate::paths::{Path, PathList};
use crate::scheduling::path::{
    PathScheduler, PathView, Plan, Reinjection, StreamView, Work, usable,
};
use crate::streams::{Segment, Streams};
use crate::time::Instant;

/// Streams shown to a scheduler that compares streams.
const STREAMS_COMPARED: usize = 32;

/// The path scheduler, and the buffers of its input.
#[derive(Debug)]
pub(super) struct PathPlanner {
    scheduler: Box<dyn PathScheduler>,
    reinjection: Option<Reinjection>,
    pub(super) late_losses: LateLosses,
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
            late_losses: LateLosses::default(),
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

impl PathPlanner {
    /// Queues the next segment on the path that the scheduler chooses; `false` if there is none, or if it waits.
    pub(super) fn assign_next(
        &mut self,
        now: Instant,
        stream_planner: &mut StreamPlanner,
        content: &mut Content<'_>,
    ) -> bool {
        let Some(next) = stream_planner.ready() else {
            return false;
        };
        let plan = self.plan(now, next, content.paths, stream_planner, content.streams);
        let (stream, id, copies) = match plan {
            Plan::Wait => return false,
            Plan::Send {
                stream,
                path,
                copies,
            } => (stream, path, copies),
            Plan::Queue { stream, path } => (stream, path, false),
        };
        let Some(at) = content.paths.by_id(id) else {
            return false;
        };
        let room = content.paths[at].payload_room();
        let Some(segment) = stream_planner.plan_segment(at, stream, room, content) else {
            return false;
        };
        content.streams.set_path(stream, id);
        if copies {
            self.copy_elsewhere(&segment, id, content);
        } else if self.late_losses.take(&segment) {
            self.copy_late_loss(&segment, id, content);
        }
        true
    }

    /// Queues a copy of the retransmission of what was found lost late on the usable path other than `id` where it arrives first. There
    /// are no more copies than such losses, so that the budget of reinjection, which a path that fades uses up, does not apply.
    fn copy_late_loss(&self, segment: &Segment, id: PathId, content: &mut Content<'_>) {
        if self.reinjection.is_none() {
            return;
        }
        let others = usable(&self.input.paths);
        let others = others.filter(|view| view.id != id && view.smoothed_rtt.is_some());
        let first = others.min_by(|a, b| a.arrival().total_cmp(&b.arrival()));
        let Some(to) = first.and_then(|view| content.paths.by_id(view.id)) else {
            return;
        };
        if let Some(copy) = content.streams.take_copy(segment) {
            content.paths[to].queue.push_copy(copy);
        }
    }

    /// Queues copies of a segment on the usable paths other than `id` that are not full.
    fn copy_elsewhere(&self, segment: &Segment, id: PathId, content: &mut Content<'_>) {
        let others = usable(&self.input.paths).filter(|view| view.id != id);
        for view in others.filter(|view| !view.is_full()) {
            if let Some(at) = content.paths.by_id(view.id) {
                content.paths[at].queue.push_copy(*segment);
                if self.reinjection.is_some() {
                    // It is not copied again.
                    content.streams.take_copy(segment);
                }
            }
        }
    }

    /// The copier of what is in flight; `None` without reinjection.
    pub(super) fn reinjector<'a>(
        &'a mut self,
        now: Instant,
        content: &'a mut Content<'_>,
    ) -> Option<Reinjector<'a>> {
        let reinjection = self.reinjection.as_mut()?;
        let input = &mut self.input;
        input.paths.clear();
        let live = content.paths.iter().filter(|path| path.is_live());
        input.paths.extend(live.map(|path| path.view(now)));
        reinjection.set_sent(content.streams.stats().bytes_sent);
        Some(Reinjector {
            now,
            paths: content.paths,
            streams: content.streams,
            reinjection,
            views: &input.paths,
            segments: &mut input.segments,
        })
    }
}
