//! Operations of the application (RFC 9000, section 2.4).

use super::control::ControlFrame;
use super::send::SendPart;
use super::{ClosedStream, FinishError, ReadError, Streams, WriteError, wait_for_memory};
use crate::priority::Priority;
use crate::time::Instant;
use bytes::Bytes;
use marline_wire::{Dir, StreamId};

impl Streams {
    /// Opens a stream; `None` at the peer's limit:
    /// [`StreamEvent::Available`](super::StreamEvent::Available) is emitted when it is raised.
    pub(crate) fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let Some(id) = self.ids.open(dir) else {
            self.control.streams_blocked[dir as usize] |= self.ids.blocked(dir).is_some();
            return None;
        };
        self.create(id);
        Some(id)
    }

    /// The next stream that the peer opened.
    pub(crate) fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.ids.accept(dir)
    }

    /// Takes a copy of the first bytes of `data`; returns their number.
    ///
    /// # Errors
    ///
    /// See [`WriteError`].
    pub(crate) fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.write_with(id, data.len(), |send, len| send.write_slice(&data[..len]))
    }

    /// Takes the first bytes of `data` without copying and advances it; returns their number.
    ///
    /// # Errors
    ///
    /// See [`WriteError`].
    pub(crate) fn write_chunk(
        &mut self,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, WriteError> {
        self.write_with(id, data.len(), |send, len| send.write(data.split_to(len)))
    }

    /// Calls `write` with as many of `wanted` bytes as memory and the peer's limit for the stream permit.
    ///
    /// Bytes beyond that limit are not taken: they could use up the memory shared by all streams, so that
    /// streams with credit could not be written to.
    fn write_with(
        &mut self,
        id: StreamId,
        wanted: usize,
        write: impl FnOnce(&mut SendPart, usize),
    ) -> Result<usize, WriteError> {
        let stream = self.table.get_mut(&id).ok_or(WriteError::Closed)?;
        let send = stream.send.as_mut().ok_or(WriteError::Closed)?;
        let credit = send.credit()?;
        if wanted == 0 {
            return Ok(0);
        }
        let room = self.buffer.room().min(credit);
        let len = wanted.min(usize::try_from(room).unwrap_or(usize::MAX));
        if len == 0 {
            send.write_blocked = true;
            if self.buffer.room() == 0 {
                wait_for_memory(&mut self.waiting_writers, id, send);
            }
        } else {
            let before = send.held();
            write(send, len);
            self.buffer.update(before, send.held());
        }
        self.check_ready(id);
        if len == 0 {
            return Err(WriteError::Blocked);
        }
        Ok(len)
    }

    /// Number of bytes that [`write`](Self::write) would take now.
    ///
    /// # Errors
    ///
    /// See [`WriteError`]; if it is blocked, [`StreamEvent::Writable`](super::StreamEvent::Writable) is emitted later.
    pub(crate) fn writable(&mut self, id: StreamId) -> Result<u64, WriteError> {
        let stream = self.table.get_mut(&id).ok_or(WriteError::Closed)?;
        let send = stream.send.as_mut().ok_or(WriteError::Closed)?;
        let room = self.buffer.room().min(send.credit()?);
        if room == 0 {
            self.write_with(id, 1, |_, _| ())?;
        }
        Ok(room)
    }

    /// Bytes written to the stream and not acknowledged yet.
    pub(crate) fn unacknowledged(&self, id: StreamId) -> u64 {
        let send = self.table.get(&id).and_then(|stream| stream.send.as_ref());
        send.map_or(0, SendPart::held)
    }

    /// Bytes written to all streams and not acknowledged yet.
    pub(crate) const fn all_unacknowledged(&self) -> u64 {
        self.buffer.held()
    }

    /// Ends the stream: no more data will be written.
    ///
    /// # Errors
    ///
    /// See [`FinishError`].
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), FinishError> {
        let stream = self.table.get_mut(&id).ok_or(FinishError::Closed)?;
        let send = stream.send.as_mut().ok_or(FinishError::Closed)?;
        send.finish().map_err(|error| match error {
            WriteError::Stopped(code) => FinishError::Stopped(code),
            WriteError::Blocked | WriteError::Closed => FinishError::Closed,
        })?;
        if send.is_all_taken() {
            self.ready.on_finished(id, stream);
        }
        self.note_states(id);
        self.check_ready(id);
        Ok(())
    }

    /// Resets the sending part: unsent and lost data is dropped.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] if the stream does not send, or no longer does.
    pub(crate) fn reset(&mut self, id: StreamId, error_code: u64) -> Result<(), ClosedStream> {
        let stream = self.table.get_mut(&id).ok_or(ClosedStream)?;
        let send = stream.send.as_mut().ok_or(ClosedStream)?;
        let before = send.held();
        if !send.reset(error_code) {
            return Err(ClosedStream);
        }
        self.buffer.update(before, 0);
        self.control.clear(stream, ControlFrame::StreamDataBlocked);
        self.make_due(id, ControlFrame::ResetStream);
        self.note_states(id);
        self.check_ready(id);
        self.wake_writers();
        Ok(())
    }

    /// Stops reading; data that arrives is dropped.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] if the stream does not receive, or no longer does.
    pub(crate) fn stop(&mut self, id: StreamId, error_code: u64) -> Result<(), ClosedStream> {
        let stream = self.table.get_mut(&id).ok_or(ClosedStream)?;
        let recv = stream.recv.as_mut().ok_or(ClosedStream)?;
        if recv.stopped().is_some() {
            return Err(ClosedStream);
        }
        let before = recv.out_of_order();
        let asks_peer = recv.stop(error_code);
        self.out_of_order.update(before, recv.out_of_order());
        let credit = recv.take_credit();
        self.control.clear(stream, ControlFrame::MaxStreamData);
        if asks_peer {
            self.make_due(id, ControlFrame::StopSending);
        }
        self.return_credit(credit);
        self.reap(id);
        Ok(())
    }

    /// Takes up to `max` bytes in order, without copying; `None` at the end of the stream, once.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub(crate) fn read(
        &mut self,
        id: StreamId,
        max: usize,
        now: impl Fn() -> Instant,
    ) -> Result<Option<Bytes>, ReadError> {
        let stream = self.table.get_mut(&id).ok_or(ReadError::Closed)?;
        let recv = stream.recv.as_mut().ok_or(ReadError::Closed)?;
        let result = recv.read(max);
        if !matches!(result, Ok(Some(_))) {
            if recv.is_terminal() {
                self.reap(id);
            }
            return result;
        }
        let credit = recv.take_credit();
        if recv.wants_credit() {
            recv.window.start(&now);
            if recv.window.consume(credit) && !stream.due.has(ControlFrame::MaxStreamData) {
                recv.window.tune(now(), self.rtt);
                self.window.grow_to(recv.window.size() * 3 / 2);
                self.control
                    .make_due(id, stream, ControlFrame::MaxStreamData);
            }
        }
        self.window.start(&now);
        if self.window.consume(credit) && !self.control.max_data {
            self.window.tune(now(), self.rtt);
            self.control.max_data = true;
        }
        result
    }

    /// Changes the priority of a stream; no effect if this end does not send on it.
    pub(crate) fn set_priority(&mut self, id: StreamId, priority: Priority) {
        let stream = self.table.get_mut(&id);
        if let Some(send) = stream.and_then(|stream| stream.send.as_mut()) {
            send.priority = priority;
        }
    }

    /// Bytes to be sent or retransmitted on the stream.
    #[cfg(test)]
    pub(crate) fn pending_bytes(&self, id: StreamId) -> u64 {
        let send = self.table.get(&id).and_then(|s| s.send.as_ref());
        send.map_or(0, SendPart::pending)
    }

    /// Returns credit to the connection's window for bytes that will not be read.
    pub(super) fn return_credit(&mut self, bytes: u64) {
        if bytes > 0 && self.window.consume(bytes) {
            self.control.max_data = true;
        }
    }
}
