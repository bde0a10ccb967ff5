//! Which stream gets the next opportunity, and which path carries it.
//!
//! The decision is a value, a [`Segment`]: an order on a path's queue, not
//! bytes. Bytes are cut when the packet is built, so that a path that dies returns orders only. With
//! one path the queue is never longer than the packet being built.

use marline_wire::{StreamId, varint};

use super::Connection;
use super::packet::OpenPacket;
use crate::paths::{Queued, Slot};
use crate::priority::Priority;
use crate::scheduling::stream::{Sharing, StreamScheduler};
use crate::streams::{ReadyChange, Segment, Streams};
use crate::token::Token;

/// The least room, in bytes, in which a STREAM frame is begun.
const MIN_SEGMENT_ROOM: usize = 24;

/// The scheduler of streams, and its choice.
#[derive(Debug)]
pub(super) struct StreamTurns {
    scheduler: Box<dyn StreamScheduler>,
    ready: Option<StreamId>,
}

impl StreamTurns {
    pub(super) fn new(scheduler: Box<dyn StreamScheduler>) -> Self {
        Self {
            scheduler,
            ready: None,
        }
    }

    /// The stream that sends next, if any has something to send.
    pub(super) fn ready(&self) -> Option<StreamId> {
        self.ready
    }

    /// The first `count` streams in the order in which they would send.
    pub(super) fn order(&mut self, count: usize, ids: &mut Vec<StreamId>) {
        self.scheduler.order(count, ids);
    }

    /// How streams share what can be sent.
    pub(super) fn sharing(&self) -> Sharing {
        self.scheduler.sharing()
    }

    pub(super) fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.scheduler.set_priority(id, priority);
        self.ready = self.scheduler.pick();
    }

    fn on_sent(&mut self, id: StreamId, bytes: u64) {
        self.scheduler.on_sent(id, bytes);
    }

    /// Has the scheduler learn which streams have something to send or no longer have, and choose.
    fn refresh(&mut self, streams: &mut Streams) {
        while let Some(ReadyChange { id, ready }) = streams.poll_ready_change() {
            match ready {
                Some(priority) => self.scheduler.activate(id, priority),
                None if streams.is_all_sent(id) => self.scheduler.finish(id),
                None => self.scheduler.deactivate(id),
            }
        }
        self.ready = self.scheduler.pick();
    }
}

impl Connection {
    /// Brings the choice of the next stream up to date.
    pub(super) fn refresh_ready(&mut self) {
        self.turns.refresh(&mut self.streams);
    }

    /// Queues the next segment of a stream whose frame fits `room` bytes on a path; `None` if it has none.
    pub(super) fn plan_segment(&mut self, at: Slot, id: StreamId, room: usize) -> Option<Segment> {
        let segment = self.streams.take_frame(id, room);
        if let Some(segment) = segment {
            self.turns.on_sent(id, segment.len as u64);
            self.paths[at].queue.push(segment);
        }
        self.refresh_ready();
        segment
    }

    /// Fills what is left of the packet with STREAM frames.
    pub(super) fn fill_streams(&mut self, packet: &OpenPacket, buf: &mut Vec<u8>) {
        let at = packet.path;
        // A datagram that may yet be padded must not end in a frame without length.
        let may_end_packet = self.early.is_empty() && !packet.wants_full;
        loop {
            let room = packet.limit.saturating_sub(buf.len());
            if room < MIN_SEGMENT_ROOM {
                return;
            }
            let length = match may_end_packet {
                true => 0,
                false => varint::size(room as u64),
            };
            if self.paths[at].queue.is_empty() && self.paths.is_single() {
                self.turns
                    .ready()
                    .and_then(|id| self.plan_segment(at, id, room - length));
            }
            let Some(Queued { segment, is_copy }) = self.paths[at].queue.pop(room - length) else {
                return;
            };
            let has_length = segment.frame_size(true) <= room;
            if let Some(written) = self.streams.write_segment(&segment, has_length, buf) {
                let path = &mut self.paths[at];
                path.counters.count_stream(written.len as u64, is_copy);
                path.space.sent.push_token(Token::Segment(written));
            }
            if !has_length {
                return;
            }
        }
    }
}
