//! Selects the stream that sends next, and fills packets with its data.

use marline_wire::{StreamId, varint};

use super::Content;
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
    pub(super) fn refresh(&mut self, streams: &mut Streams) {
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

/// A packet that is filled with stream data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    pub(crate) path: Slot,
    /// Maximum length of the buffer, in bytes.
    pub(crate) limit: usize,
    /// Whether the last frame may extend to the end of the packet, without a length.
    pub(crate) may_end_packet: bool,
}

impl Filling {
    fn room(&self, buf: &[u8]) -> usize {
        self.limit.saturating_sub(buf.len())
    }
}

impl StreamPlanner {
    /// Queues the next segment of a stream whose frame fits `room` bytes on a path; `None` if there is none.
    pub(super) fn plan_segment(
        &mut self,
        at: Slot,
        id: StreamId,
        room: usize,
        content: &mut Content<'_>,
    ) -> Option<Segment> {
        let segment = content.streams.take_frame(id, room);
        if let Some(segment) = segment {
            self.on_sent(id, segment.len as u64);
            content.paths[at].queue.push(segment);
        }
        self.refresh(content.streams);
        segment
    }

    /// Fills the rest of the packet with STREAM frames. With one path a segment is queued only for the packet being built.
    pub(super) fn fill(&mut self, packet: &Filling, content: &mut Content<'_>, buf: &mut Vec<u8>) {
        let at = packet.path;
        if at == content.paths.best() {
            fill_ends(packet, content, buf);
        }
        loop {
            let room = packet.room(buf);
            if room < MIN_SEGMENT_SPACE {
                return;
            }
            let length = match packet.may_end_packet {
                true => 0,
                false => varint::size(room as u64),
            };
            if content.paths[at].queue.is_empty()
                && content.paths.is_single()
                && let Some(id) = self.ready()
            {
                self.plan_segment(at, id, room - length, content);
            }
            let path = &mut content.paths[at];
            let Some(Queued { segment, is_copy }) = path.queue.pop(room - length) else {
                return;
            };
            let has_length = segment.frame_size(true) <= room;
            if let Some(written) = content.streams.write_segment(&segment, has_length, buf) {
                path.counters.count_stream(written.len as u64, is_copy);
                path.space.sent.push_token(Token::Segment(written));
                if !has_length {
                    return;
                }
            }
        }
    }
}

/// Writes the FINs of streams whose data has all been sent before. The best path carries them, ahead of the data of
/// other streams, because they take only a few bytes.
fn fill_ends(packet: &Filling, content: &mut Content<'_>, buf: &mut Vec<u8>) {
    while let Some(end) = content.streams.take_end(packet.room(buf)) {
        if let Some(written) = content.streams.write_segment(&end, true, buf) {
            let path = &mut content.paths[packet.path];
            path.counters.count_stream(0, false);
            path.space.sent.push_token(Token::Segment(written));
        }
    }
}
