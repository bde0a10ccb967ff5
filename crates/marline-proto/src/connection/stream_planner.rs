//! Selects the stream that sends next, and fills packets with its data.
//!
//! The selection is a [`Segment`], a range of a stream without its bytes, in the queue of a path. Bytes are read
//! when the packet is built, so a path failure moves no data. With one path a segment is queued only for the
//! packet being built.

use marline_wire::{StreamId, varint};

use super::Connection;
use super::packet::PacketBuilder;
use crate::paths::{Queued, Slot};
use crate::priority::Priority;
use crate::scheduling::stream::{Sharing, StreamScheduler};
use crate::streams::{ReadyChange, Segment, Streams};
use crate::token::Token;

/// Minimum space in a packet for a new STREAM frame, in bytes.
const MIN_SEGMENT_SPACE: usize = 24;

/// The stream scheduler and its selection.
#[derive(Debug)]
pub(super) struct StreamPlanner {
    scheduler: Box<dyn StreamScheduler>,
    ready: Option<StreamId>,
}

impl StreamPlanner {
    pub(super) fn new(scheduler: Box<dyn StreamScheduler>) -> Self {
        Self {
            scheduler,
            ready: None,
        }
    }

    /// The stream that sends next, if any has data to send.
    pub(super) fn ready(&self) -> Option<StreamId> {
        self.ready
    }

    /// The first `count` streams in the order in which they would send.
    pub(super) fn order(&mut self, count: usize, ids: &mut Vec<StreamId>) {
        self.scheduler.order(count, ids);
    }

    /// The scheduler's mode of sharing capacity among streams.
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

    /// Reports streams that became ready or idle to the scheduler, and updates its selection.
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
    /// Updates the selection of the next stream.
    pub(super) fn refresh_ready(&mut self) {
        self.stream_planner.refresh(&mut self.streams);
    }

    /// Queues the next segment of a stream whose frame fits `room` bytes on a path; `None` if there is none.
    pub(super) fn plan_segment(&mut self, at: Slot, id: StreamId, room: usize) -> Option<Segment> {
        let segment = self.streams.take_frame(id, room);
        if let Some(segment) = segment {
            self.stream_planner.on_sent(id, segment.len as u64);
            self.paths[at].queue.push(segment);
        }
        self.refresh_ready();
        segment
    }

    /// Writes the FINs of streams whose data has all been sent before. The best path carries them, ahead of the data of
    /// other streams, because they take only a few bytes.
    fn fill_ends(&mut self, packet: &PacketBuilder, buf: &mut Vec<u8>) {
        let room = |buf: &Vec<u8>| packet.limit.saturating_sub(buf.len());
        while let Some(end) = self.streams.take_end(room(buf)) {
            if let Some(written) = self.streams.write_segment(&end, true, buf) {
                let path = &mut self.paths[packet.path];
                path.counters.count_stream(0, false);
                path.space.sent.push_token(Token::Segment(written));
            }
        }
    }

    /// Fills the rest of the packet with STREAM frames.
    pub(super) fn fill_streams(&mut self, packet: &PacketBuilder, buf: &mut Vec<u8>) {
        let at = packet.path;
        if at == self.paths.best() {
            self.fill_ends(packet, buf);
        }
        // A datagram that may still be padded must not end with a frame without a length.
        let may_end_packet = self.establishment.is_over() && !packet.wants_full;
        loop {
            let room = packet.limit.saturating_sub(buf.len());
            if room < MIN_SEGMENT_SPACE {
                return;
            }
            let length = match may_end_packet {
                true => 0,
                false => varint::size(room as u64),
            };
            if self.paths[at].queue.is_empty() && self.paths.is_single() {
                self.stream_planner
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
                if !has_length {
                    return;
                }
            }
        }
    }
}
