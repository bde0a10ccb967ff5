//! Sending: segments of streams, control frames, and their acknowledgment or loss.

use super::control::ControlFrame;
use super::send::{SendPart, SendState, StreamPart, Taken};
use super::{Segment, StreamEvent, StreamToken, Streams};
use crate::priority::Priority;
use crate::scheduling::path::StreamView;
use marline_wire::frame;
use marline_wire::{Dir, PathId, StreamId};

/// A change of whether a stream has data to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadyChange {
    /// The stream.
    pub(crate) id: StreamId,
    /// Priority if the stream is ready now; `None` if it is not.
    pub(crate) ready: Option<Priority>,
}

impl Streams {
    /// The next change of a stream's readiness.
    ///
    /// A stream is ready if and only if [`take_frame`](Self::take_frame) would return a segment, given
    /// enough room. Streams that no longer exist are not ready.
    pub(crate) fn poll_ready_change(&mut self) -> Option<ReadyChange> {
        if std::mem::take(&mut self.ready.all) {
            let mut ids: Vec<StreamId> = self.table.keys().copied().collect();
            ids.sort_unstable();
            for id in ids {
                self.check_ready(id);
            }
        }
        if let Some(id) = self.ready.pop_removed() {
            return Some(ReadyChange { id, ready: None });
        }
        while let Some(id) = self.ready.pop() {
            let Some(stream) = self.table.get_mut(&id) else {
                continue;
            };
            let ready = stream.is_ready(self.ids.is_permitted(id), self.credit.left());
            if let Some(ready) = stream.readiness.report(ready) {
                let priority = stream.send.as_ref().map(|send| send.priority);
                return Some(ReadyChange {
                    id,
                    ready: priority.filter(|_| ready),
                });
            }
        }
        None
    }

    /// As [`take_frame`](Self::take_frame), for up to `max_payload` bytes of data that are sent immediately.
    #[cfg(test)]
    pub(crate) fn take_segment(&mut self, id: StreamId, max_payload: usize) -> Option<Segment> {
        let segment = self.take(id, |_| Some(max_payload))?;
        self.write_segment(&segment, true, &mut Vec::new())
    }

    /// Takes the next segment of a stream, lost bytes before new ones, for a frame of up to `room`
    /// bytes in all, without explicit length.
    ///
    /// New bytes stay within the limits of stream and connection. The segment counts as in flight
    /// until it is acknowledged, lost or returned. `None` if nothing can be sent.
    pub(crate) fn take_frame(&mut self, id: StreamId, room: usize) -> Option<Segment> {
        self.take(id, |send| {
            let header = frame::Stream::header_size(id, send.next_offset(), 0, false);
            room.checked_sub(header)
        })
    }

    fn take(
        &mut self,
        id: StreamId,
        max_payload: impl FnOnce(&SendPart) -> Option<usize>,
    ) -> Option<Segment> {
        if !self.ids.is_permitted(id) {
            return None;
        }
        let stream = self.table.get_mut(&id)?;
        let send = stream.send.as_mut()?;
        let Taken { part, new } = send.take(max_payload(send)?, self.credit.left())?;
        let segment = Segment::new(id, &part);
        self.credit.sent += new;
        self.retransmitted += segment.len as u64 - new;
        self.ready.all |= new > 0 && self.credit.left() == 0;
        let (credit, control) = (&mut self.credit, &mut self.control);
        self.ready.check(id, stream, true, credit, control);
        self.note_states(id);
        Some(segment)
    }

    /// Whether every byte that the stream will ever carry has been sent at least once.
    pub(crate) fn is_all_sent(&self, id: StreamId) -> bool {
        let send = self.table.get(&id).and_then(|stream| stream.send.as_ref());
        send.is_none_or(SendPart::is_all_taken)
    }

    /// Whether FINs are to be sent of streams whose data has all been sent before.
    pub(crate) fn has_ends(&self) -> bool {
        self.ready.first_end().is_some()
    }

    /// Takes the FIN of a stream whose data has all been sent before, if its frame takes at most `room` bytes.
    ///
    /// This does not count as a turn of the stream: the FIN is neither scheduled nor queued on a path.
    pub(crate) fn take_end(&mut self, room: usize) -> Option<Segment> {
        while let Some(id) = self.ready.first_end() {
            let permitted = self.ids.is_permitted(id);
            let Some(stream) = self.table.get_mut(&id) else {
                self.ready.pop_end(None);
                continue;
            };
            let send = stream.send.as_mut().filter(|_| permitted);
            let Some(send) = send.filter(|send| send.is_end_due()) else {
                self.ready.pop_end(Some(stream));
                continue;
            };
            let end = Segment::new(id, &send.end());
            if end.frame_size(true) > room {
                return None;
            }
            send.put_end_in_flight();
            self.ready.pop_end(Some(stream));
            self.note_states(id);
            return Some(end);
        }
        None
    }

    /// The state of a stream, for the path scheduler.
    pub(crate) fn view(&self, id: StreamId) -> Option<StreamView> {
        let send = self.table.get(&id)?.send.as_ref()?;
        Some(StreamView {
            id,
            remaining: send.pending().max(1),
            weight: send.priority.weight(),
            previous: send.path,
        })
    }

    /// Sets the path of the latest segment of a stream.
    pub(crate) fn set_path(&mut self, id: StreamId, path: PathId) {
        let stream = self.table.get_mut(&id);
        if let Some(send) = stream.and_then(|stream| stream.send.as_mut()) {
            send.path = Some(path);
        }
    }

    /// Appends the STREAM frame of `segment`; returns the part of the segment that is in it.
    ///
    /// If a copy was acknowledged after the segment was taken, or the stream was reset, bytes at its front may be
    /// missing, or nothing is appended (`None`). If the stream was finished after the segment was taken, the frame
    /// carries the FIN. Without `explicit_length` the frame must be the last of its packet.
    pub(crate) fn write_segment(
        &mut self,
        segment: &Segment,
        explicit_length: bool,
        buf: &mut Vec<u8>,
    ) -> Option<Segment> {
        let id = segment.id;
        let send = self.table.get_mut(&id)?.send.as_mut()?;
        let before = send.state();
        let part = send.put_in_packet(segment.part())?;
        let written = Segment::new(id, &part);
        let Segment {
            offset, len, fin, ..
        } = written;
        frame::Stream::encode_header(id, offset, len, fin, explicit_length, buf);
        send.read_into(part.range, buf);
        if send.state() != before {
            self.note_states(id);
        }
        Some(written)
    }

    /// Makes a taken segment due again, which was not sent because its path was abandoned.
    pub(crate) fn return_segment(&mut self, segment: &Segment) {
        self.on_due_again(segment, SendPart::on_returned);
    }

    /// Handles the acknowledgment of a segment.
    pub(crate) fn on_segment_acked(&mut self, segment: &Segment) {
        let id = segment.id;
        let Some(stream) = self.table.get_mut(&id) else {
            return;
        };
        let Some(send) = &mut stream.send else {
            return;
        };
        let before = send.held();
        send.on_acked(segment.part());
        let after = send.held();
        let finished = send.state() == SendState::DataRecvd;
        let permitted = self.ids.is_permitted(id);
        let (credit, control) = (&mut self.credit, &mut self.control);
        self.ready.check(id, stream, permitted, credit, control);
        self.buffer.update(before, after);
        if before != after {
            self.wake_writers();
        }
        if finished {
            self.events.push_back(StreamEvent::Finished(id));
            self.reap(id);
        }
    }

    /// Handles the loss of a segment: the unacknowledged part of it is due again.
    pub(crate) fn on_segment_lost(&mut self, segment: &Segment) {
        self.on_due_again(segment, SendPart::on_lost);
    }

    fn on_due_again(&mut self, segment: &Segment, on_due: impl FnOnce(&mut SendPart, StreamPart)) {
        let stream = self.table.get_mut(&segment.id);
        if let Some(send) = stream.and_then(|stream| stream.send.as_mut()) {
            on_due(send, segment.part());
            self.check_ready(segment.id);
        }
    }

    /// Whether [`write_control_frames`](Self::write_control_frames) has something to write.
    pub(crate) fn has_control_frames(&self) -> bool {
        !self.control.is_empty()
    }

    /// Appends the due frames other than STREAM, as long as `buf` does not exceed `limit` bytes;
    /// passes a token of each to `tokens`.
    pub(crate) fn write_control_frames(
        &mut self,
        buf: &mut Vec<u8>,
        limit: usize,
        tokens: &mut impl FnMut(StreamToken),
    ) {
        self.write_connection_frames(buf, limit, tokens);
        while let Some(id) = self.control.front() {
            if !self.write_frames_of(id, buf, limit, tokens) {
                return;
            }
            self.control.pop_front(self.table.get_mut(&id));
        }
    }

    /// Writes connection-level frames: limits on all streams together, the peer's and ours.
    fn write_connection_frames(
        &mut self,
        buf: &mut Vec<u8>,
        limit: usize,
        tokens: &mut impl FnMut(StreamToken),
    ) {
        if self.control.max_data {
            let maximum = self.window.limit();
            let frame = frame::MaxData { maximum };
            if buf.len() + frame.size() > limit {
                return;
            }
            frame.encode(buf);
            tokens(StreamToken::MaxData(self.window.advertise()));
            self.control.max_data = false;
        }
        if self.control.data_blocked {
            let at = self.credit.max_data;
            let frame = frame::DataBlocked { limit: at };
            if buf.len() + frame.size() > limit {
                return;
            }
            frame.encode(buf);
            tokens(StreamToken::DataBlocked(at));
            self.control.data_blocked = false;
        }
        for dir in Dir::ALL {
            if self.control.max_streams[dir as usize] {
                let maximum = self.ids.remote_limit(dir);
                let frame = frame::MaxStreams { dir, maximum };
                if buf.len() + frame.size() > limit {
                    return;
                }
                frame.encode(buf);
                tokens(StreamToken::MaxStreams(dir, self.ids.advertise(dir)));
                self.control.max_streams[dir as usize] = false;
            }
            if self.control.streams_blocked[dir as usize] {
                let at = self.ids.max_local(dir);
                let frame = frame::StreamsBlocked { dir, limit: at };
                if buf.len() + frame.size() > limit {
                    return;
                }
                frame.encode(buf);
                tokens(StreamToken::StreamsBlocked(dir, at));
                self.control.streams_blocked[dir as usize] = false;
            }
        }
    }

    /// Writes the due frames of stream `id`; returns whether all of them fit.
    fn write_frames_of(
        &mut self,
        id: StreamId,
        buf: &mut Vec<u8>,
        limit: usize,
        tokens: &mut impl FnMut(StreamToken),
    ) -> bool {
        let Some(stream) = self.table.get_mut(&id) else {
            return true;
        };
        if stream.due.has(ControlFrame::ResetStream) {
            let state = stream.send.as_ref().map(|send| send.state());
            if let Some(SendState::ResetSent {
                error_code,
                final_size,
            }) = state
            {
                let frame = frame::ResetStream {
                    id,
                    error_code,
                    final_size,
                };
                if buf.len() + frame.size() > limit {
                    return false;
                }
                frame.encode(buf);
                tokens(StreamToken::ResetStream(id));
            }
            self.control.clear(stream, ControlFrame::ResetStream);
        }
        if stream.due.has(ControlFrame::StopSending) {
            if let Some(error_code) = stream.recv.as_ref().and_then(|recv| recv.stopped()) {
                let frame = frame::StopSending { id, error_code };
                if buf.len() + frame.size() > limit {
                    return false;
                }
                frame.encode(buf);
                tokens(StreamToken::StopSending(id));
            }
            self.control.clear(stream, ControlFrame::StopSending);
        }
        if stream.due.has(ControlFrame::MaxStreamData) {
            if let Some(recv) = stream.recv.as_mut().filter(|recv| recv.wants_credit()) {
                let maximum = recv.window.limit();
                let frame = frame::MaxStreamData { id, maximum };
                if buf.len() + frame.size() > limit {
                    return false;
                }
                frame.encode(buf);
                tokens(StreamToken::MaxStreamData(id, recv.window.advertise()));
            }
            self.control.clear(stream, ControlFrame::MaxStreamData);
        }
        if stream.due.has(ControlFrame::StreamDataBlocked) {
            if let Some(at) = stream.send.as_ref().and_then(|send| send.blocked()) {
                let frame = frame::StreamDataBlocked { id, limit: at };
                if buf.len() + frame.size() > limit {
                    return false;
                }
                frame.encode(buf);
                tokens(StreamToken::StreamDataBlocked(id, at));
            }
            self.control.clear(stream, ControlFrame::StreamDataBlocked);
        }
        true
    }

    /// Handles the acknowledgment of a frame.
    pub(crate) fn on_token_acked(&mut self, token: &StreamToken) {
        let StreamToken::ResetStream(id) = *token else {
            return;
        };
        let stream = self.table.get_mut(&id);
        if let Some(send) = stream.and_then(|stream| stream.send.as_mut()) {
            send.on_reset_acked();
            self.reap(id);
        }
    }

    /// Handles the loss of a frame: it is due again unless it is outdated.
    pub(crate) fn on_token_lost(&mut self, token: &StreamToken) {
        match *token {
            StreamToken::MaxData(limit) => {
                self.control.max_data |= limit == self.window.advertised();
            }
            StreamToken::MaxStreams(dir, limit) => {
                self.control.max_streams[dir as usize] |= limit == self.ids.advertised(dir);
            }
            StreamToken::DataBlocked(limit) => {
                self.control.data_blocked |= self.credit.left() == 0
                    && self.credit.max_data == limit
                    && self.credit.blocked_at == Some(limit);
            }
            StreamToken::StreamsBlocked(dir, limit) => {
                self.control.streams_blocked[dir as usize] |= self.ids.is_blocked_at(dir, limit);
            }
            StreamToken::ResetStream(id) => self.make_due(id, ControlFrame::ResetStream),
            StreamToken::StopSending(id) => self.make_due(id, ControlFrame::StopSending),
            StreamToken::MaxStreamData(id, limit) => {
                let recv = self.table.get(&id).and_then(|stream| stream.recv.as_ref());
                if recv.is_some_and(|r| r.wants_credit() && r.window.advertised() == limit) {
                    self.make_due(id, ControlFrame::MaxStreamData);
                }
            }
            StreamToken::StreamDataBlocked(id, limit) => {
                let send = self.table.get(&id).and_then(|stream| stream.send.as_ref());
                if send.is_some_and(|send| send.blocked() == Some(limit)) {
                    self.make_due(id, ControlFrame::StreamDataBlocked);
                }
            }
        }
    }

    /// Makes `frame` due if its part of the stream exists, and the peer permits the stream.
    pub(super) fn make_due(&mut self, id: StreamId, frame: ControlFrame) {
        if !self.ids.is_permitted(id) {
            return;
        }
        let Some(stream) = self.table.get_mut(&id) else {
            return;
        };
        let is_needed = match frame {
            ControlFrame::ResetStream | ControlFrame::StreamDataBlocked => stream.send.is_some(),
            ControlFrame::StopSending | ControlFrame::MaxStreamData => stream.recv.is_some(),
        };
        if is_needed {
            self.control.make_due(id, stream, frame);
        }
    }
}
