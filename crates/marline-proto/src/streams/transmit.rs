//! What the streams send.

use super::control::Owed;
use super::send::{SendPart, SendState};
use super::{Segment, StreamEvent, StreamToken, Streams};
use crate::priority::Priority;
use crate::scheduling::path::StreamView;
use marline_wire::frame;
use marline_wire::{Dir, PathId, StreamId};

impl Streams {
    /// A stream that began to have something to send, with its priority, or ceased to (`None`).
    ///
    /// A stream is ready if and only if [`take_frame`](Self::take_frame) would return a segment for
    /// room enough. Streams that are gone are not ready.
    pub(crate) fn poll_ready_change(&mut self) -> Option<(StreamId, Option<Priority>)> {
        if std::mem::take(&mut self.ready.all) {
            let mut ids: Vec<StreamId> = self.table.keys().copied().collect();
            ids.sort_unstable();
            for id in ids {
                self.check_ready(id);
            }
        }
        if let Some(id) = self.ready.pop_gone() {
            return Some((id, None));
        }
        while let Some(id) = self.ready.pop() {
            let Some(stream) = self.table.get_mut(&id) else {
                continue;
            };
            let ready = stream.is_ready(self.ids.is_permitted(id), self.credit.left());
            if let Some(ready) = stream.readiness.tell(ready) {
                let priority = stream.send.as_ref().map(|send| send.priority);
                return Some((id, priority.filter(|_| ready)));
            }
        }
        None
    }

    /// As [`take_frame`](Self::take_frame), for up to `max_payload` bytes of data.
    #[cfg(test)]
    pub(crate) fn take_segment(&mut self, id: StreamId, max_payload: usize) -> Option<Segment> {
        self.take(id, |_| Some(max_payload))
    }

    /// Cuts the next piece of a stream, lost bytes before new ones, for a frame of up to `room` bytes
    /// in all, without explicit length.
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
        let (range, fin, new) = send.take(max_payload(send)?, self.credit.left())?;
        let len = (range.end - range.start) as usize;
        self.credit.sent += new;
        self.retransmitted += len as u64 - new;
        self.ready.all |= new > 0 && self.credit.left() == 0;
        let (credit, control) = (&mut self.credit, &mut self.control);
        self.ready.check(id, stream, true, credit, control);
        Some(Segment {
            id,
            offset: range.start,
            len,
            fin,
        })
    }

    /// Whether a stream has nothing to send but what may yet be lost.
    pub(crate) fn is_all_sent(&self, id: StreamId) -> bool {
        let send = self.table.get(&id).and_then(|stream| stream.send.as_ref());
        send.is_none_or(|send| !matches!(send.state(), SendState::Ready | SendState::Send))
    }

    /// What a stream has to send, for the scheduler of paths.
    pub(crate) fn view(&self, id: StreamId) -> Option<StreamView> {
        let send = self.table.get(&id)?.send.as_ref()?;
        Some(StreamView {
            id,
            remaining: send.pending().max(1),
            weight: send.priority.weight(),
            previous: send.path,
        })
    }

    /// The latest segment of a stream takes `path`.
    pub(crate) fn note_path(&mut self, id: StreamId, path: PathId) {
        let stream = self.table.get_mut(&id);
        if let Some(send) = stream.and_then(|stream| stream.send.as_mut()) {
            send.path = Some(path);
        }
    }

    /// Appends the STREAM frame of `segment`; returns what of the segment is in it.
    ///
    /// That may be less at the front, or `None` and nothing appended, if since it was taken a copy was
    /// acknowledged or the stream was reset. Without `explicit_length` the frame must be the last
    /// of its packet.
    pub(crate) fn write_segment(
        &self,
        segment: &Segment,
        explicit_length: bool,
        buf: &mut Vec<u8>,
    ) -> Option<Segment> {
        let send = self.table.get(&segment.id)?.send.as_ref()?;
        let range = send.held_part(segment.range())?;
        if range.is_empty() && !segment.fin {
            return None;
        }
        let len = (range.end - range.start) as usize;
        let (id, offset, fin) = (segment.id, range.start, segment.fin);
        frame::Stream::encode_header(id, offset, len, fin, explicit_length, buf);
        send.read_into(range, buf);
        Some(Segment {
            id,
            offset,
            len,
            fin,
        })
    }

    /// A segment that was taken was not sent, and its path is gone: it is due again.
    pub(crate) fn return_segment(&mut self, segment: &Segment) {
        self.on_segment_lost(segment);
    }

    /// The peer has the segment.
    pub(crate) fn on_segment_acked(&mut self, segment: &Segment) {
        let id = segment.id;
        let Some(stream) = self.table.get_mut(&id) else {
            return;
        };
        let Some(send) = &mut stream.send else {
            return;
        };
        let before = send.held();
        send.on_acked(segment.range(), segment.fin);
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

    /// The segment did not arrive: what of it is not acknowledged meanwhile is due again.
    pub(crate) fn on_segment_lost(&mut self, segment: &Segment) {
        let stream = self.table.get_mut(&segment.id);
        if let Some(send) = stream.and_then(|stream| stream.send.as_mut()) {
            send.on_lost(segment.range(), segment.fin);
            self.check_ready(segment.id);
        }
    }

    /// Whether [`write_control_frames`](Self::write_control_frames) has something to write.
    pub(crate) fn has_control_frames(&self) -> bool {
        !self.control.is_empty()
    }

    /// Appends the frames that are due, other than STREAM, as long as `buf` does not exceed `limit`
    /// bytes; hands a token of each to `tokens`.
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

    /// Limits of all streams together, the peer's and ours.
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
            tokens(StreamToken::MaxData(self.window.announce()));
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
                tokens(StreamToken::MaxStreams(dir, self.ids.announce(dir)));
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

    /// What stream `id` owes; returns whether all of it fitted.
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
        if stream.debt.has(Owed::ResetStream) {
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
            self.control.settle(stream, Owed::ResetStream);
        }
        if stream.debt.has(Owed::StopSending) {
            if let Some(error_code) = stream.recv.as_ref().and_then(|recv| recv.stopped()) {
                let frame = frame::StopSending { id, error_code };
                if buf.len() + frame.size() > limit {
                    return false;
                }
                frame.encode(buf);
                tokens(StreamToken::StopSending(id));
            }
            self.control.settle(stream, Owed::StopSending);
        }
        if stream.debt.has(Owed::MaxStreamData) {
            if let Some(recv) = stream.recv.as_mut().filter(|recv| recv.wants_credit()) {
                let maximum = recv.window.limit();
                let frame = frame::MaxStreamData { id, maximum };
                if buf.len() + frame.size() > limit {
                    return false;
                }
                frame.encode(buf);
                tokens(StreamToken::MaxStreamData(id, recv.window.announce()));
            }
            self.control.settle(stream, Owed::MaxStreamData);
        }
        if stream.debt.has(Owed::StreamDataBlocked) {
            if let Some(at) = stream.send.as_ref().and_then(|send| send.blocked()) {
                let frame = frame::StreamDataBlocked { id, limit: at };
                if buf.len() + frame.size() > limit {
                    return false;
                }
                frame.encode(buf);
                tokens(StreamToken::StreamDataBlocked(id, at));
            }
            self.control.settle(stream, Owed::StreamDataBlocked);
        }
        true
    }

    /// The peer has the frame.
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

    /// The frame did not arrive: it is due again if it still says something.
    pub(crate) fn on_token_lost(&mut self, token: &StreamToken) {
        match *token {
            StreamToken::MaxData(limit) => {
                self.control.max_data |= limit == self.window.announced();
            }
            StreamToken::MaxStreams(dir, limit) => {
                self.control.max_streams[dir as usize] |= limit == self.ids.announced(dir);
            }
            StreamToken::DataBlocked(limit) => {
                self.control.data_blocked |= self.credit.left() == 0
                    && self.credit.max_data == limit
                    && self.credit.blocked_at == Some(limit);
            }
            StreamToken::StreamsBlocked(dir, limit) => {
                self.control.streams_blocked[dir as usize] |= self.ids.is_blocked_at(dir, limit);
            }
            StreamToken::ResetStream(id) => self.owe(id, Owed::ResetStream),
            StreamToken::StopSending(id) => self.owe(id, Owed::StopSending),
            StreamToken::MaxStreamData(id, limit) => {
                let recv = self.table.get(&id).and_then(|stream| stream.recv.as_ref());
                if recv.is_some_and(|r| r.wants_credit() && r.window.announced() == limit) {
                    self.owe(id, Owed::MaxStreamData);
                }
            }
            StreamToken::StreamDataBlocked(id, limit) => {
                let send = self.table.get(&id).and_then(|stream| stream.send.as_ref());
                if send.is_some_and(|send| send.blocked() == Some(limit)) {
                    self.owe(id, Owed::StreamDataBlocked);
                }
            }
        }
    }

    /// Makes `frame` due if the part of the stream that it speaks of exists and may be spoken of.
    pub(super) fn owe(&mut self, id: StreamId, frame: Owed) {
        if !self.ids.is_permitted(id) {
            return;
        }
        let Some(stream) = self.table.get_mut(&id) else {
            return;
        };
        let of_use = match frame {
            Owed::ResetStream | Owed::StreamDataBlocked => stream.send.is_some(),
            Owed::StopSending | Owed::MaxStreamData => stream.recv.is_some(),
        };
        if of_use {
            self.control.owe(id, stream, frame);
        }
    }
}
