//! Sending of stream data: which stream sends next, on which path, and what is sent twice.
//!
//! [`Sending`] owns the schedulers and what they remember. A selection is a segment, a range of a stream without its bytes, in
//! the queue of a path. Bytes are read when the packet is built, so a path failure moves no data.
//!
//! | subject | file |
//! | --- | --- |
//! | the stream that sends next; packets filled with its data | `streams` |
//! | the path that carries it | `paths` |
//! | data in flight on a slow path that a faster one sends again | `reinject` |
//! | retransmitted data at the end of a transfer, sent twice | `tail_duplication` |
//! | retransmitted data whose loss was found late, sent on two paths | `late_losses` |

mod late_losses;
mod paths;
mod reinject;
mod streams;
mod tail_duplication;

#[cfg(test)]
mod tests;

use marline_wire::StreamId;

use crate::config::MultipathConfig;
use crate::paths::{PathList, Slot};
use crate::priority::Priority;
use crate::scheduling::stream::StreamScheduler;
#[cfg(test)]
use crate::streams::Segment;
use crate::streams::Streams;
use crate::time::Instant;
use crate::token::Token;

use paths::PathPlanner;
pub(crate) use streams::Filling;
use streams::StreamPlanner;
use tail_duplication::TailDuplication;

/// The order in which stream data is sent, and its paths.
#[derive(Debug)]
pub(crate) struct Sending {
    streams: StreamPlanner,
    /// Assigns stream data to paths; `None` with one path.
    paths: Option<Box<PathPlanner>>,
    duplication: TailDuplication,
}

/// The streams and paths of a connection, which its schedulers bring together.
pub(crate) struct Content<'a> {
    pub(crate) streams: &'a mut Streams,
    pub(crate) paths: &'a mut PathList,
}

impl Sending {
    pub(crate) fn new(scheduler: Box<dyn StreamScheduler>) -> Self {
        Self {
            streams: StreamPlanner::new(scheduler),
            paths: None,
            duplication: TailDuplication::default(),
        }
    }

    /// Several paths are negotiated: their scheduler begins.
    pub(crate) fn begin_multipath(&mut self, config: &MultipathConfig) {
        self.paths = Some(Box::new(PathPlanner::new(config)));
    }

    /// The stream that sends next, if any has data to send.
    pub(crate) fn ready(&self) -> Option<StreamId> {
        self.streams.ready()
    }

    /// Updates the selection of the next stream, after streams became ready or idle.
    pub(crate) fn refresh(&mut self, streams: &mut Streams) {
        self.streams.refresh(streams);
    }

    pub(crate) fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.streams.set_priority(id, priority);
    }

    /// Fills the rest of a packet with STREAM frames.
    pub(crate) fn fill(&mut self, packet: &Filling, content: &mut Content<'_>, buf: &mut Vec<u8>) {
        self.streams.fill(packet, content, buf);
    }

    /// Assigns stream data to paths as their scheduler decides, until `at` has enough for a packet or the scheduler
    /// assigns nothing more.
    pub(crate) fn plan_ahead(&mut self, now: Instant, at: Slot, content: &mut Content<'_>) {
        let enough = u64::from(content.paths[at].tuples.active.mtu.current());
        let Some(planner) = &mut self.paths else {
            return;
        };
        if content.paths[at].queue.is_empty()
            && let Some(mut reinjector) = planner.reinjector(now, content)
        {
            reinjector.copy_late(at);
        }
        while content.paths[at].queue.bytes() < enough
            && planner.assign_next(now, &mut self.streams, content)
        {}
    }

    /// When nothing is left to send, but a slow path has data queued or in flight: queues a packet of it on a path
    /// that may send now; returns that path.
    pub(crate) fn reinject(&mut self, now: Instant, content: &mut Content<'_>) -> Option<Slot> {
        if self.ready().is_some() || content.paths.is_single() {
            return None;
        }
        self.paths.as_mut()?.reinjector(now, content)?.run()
    }

    /// Queues packets of new data on path `on`, at most one for each probe that is due on the suspected path `at`, and
    /// copies of them there.
    pub(crate) fn copy_onto_probes(&mut self, at: Slot, on: Slot, content: &mut Content<'_>) {
        for _ in 0..content.paths[at].probes() {
            let Some(stream) = self.ready() else {
                return;
            };
            let rooms = [at, on].map(|path| content.paths[path].payload_room());
            let room = rooms[0].min(rooms[1]);
            let Some(segment) = self.streams.plan_segment(on, stream, room, content) else {
                return;
            };
            content.streams.take_copy(&segment);
            content.paths[at].queue.push_copy(segment);
        }
    }

    /// A frame was lost: it is sent twice if no other data waits.
    pub(crate) fn on_lost(&mut self, token: &Token) {
        self.duplication.on_lost(token);
    }

    /// A frame was lost on a path whose queue takes longer than the path itself: with several paths, two carry its
    /// retransmission.
    pub(crate) fn on_lost_late(&mut self, token: &Token) {
        if let Some(planner) = &mut self.paths {
            planner.late_losses.on_lost(token);
        }
    }

    /// If all due data is sent: makes the latest retransmitted data due once more, unless it is acknowledged.
    /// Returns whether there is any.
    pub(crate) fn copy_repeats(&mut self, content: &mut Content<'_>) -> bool {
        let is_queued = || content.paths.iter().any(|path| !path.queue.is_empty());
        if self.duplication.is_empty() || self.ready().is_some() || is_queued() {
            return false;
        }
        for segment in self.duplication.drain() {
            content.streams.on_segment_lost(&segment);
        }
        self.refresh(content.streams);
        self.ready().is_some() || content.streams.has_ends()
    }
}

#[cfg(test)]
impl Sending {
    /// Queues the next segment of a stream, at most `room` bytes, on the best path.
    pub(crate) fn queue(
        &mut self,
        id: StreamId,
        room: usize,
        content: &mut Content<'_>,
    ) -> Option<Segment> {
        let best = content.paths.best();
        self.streams.plan_segment(best, id, room, content)
    }
}
