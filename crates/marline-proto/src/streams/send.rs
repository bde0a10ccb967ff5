//! The sending part of a stream (RFC 9000, section 3.1).
//!
//! ```text
//!        o
//!        | open, or the peer opens a bidirectional stream
//!        v
//!    +-------+
//!    | Ready |------ RESET_STREAM ---.
//!    +-------+                       |
//!        | first STREAM              |
//!        v                           |
//!    +-------+                       |
//!    | Send  |------ RESET_STREAM -->|
//!    +-------+                       |
//!        | STREAM + FIN              |
//!        v                           v
//!    +-------+                   +-------+
//!    | Data  |-- RESET_STREAM -->| Reset |
//!    | Sent  |                   | Sent  |
//!    +-------+                   +-------+
//!        | all acknowledged          | acknowledged
//!        v                           v
//!    +-------+                   +-------+
//!    | Data  |                   | Reset |
//!    | Recvd |                   | Recvd |
//!    +-------+                   +-------+
//! ```

use super::error::WriteError;
use crate::buffers::SendBuffer;
use crate::priority::Priority;
use bytes::Bytes;
use marline_wire::PathId;
use std::ops::Range;

/// States of a sending part; the last two are terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendState {
    Ready,
    Send,
    DataSent,
    /// RESET_STREAM is due or in flight.
    ResetSent {
        error_code: u64,
        final_size: u64,
    },
    DataRecvd,
    ResetRecvd,
}

/// The state of the FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// The application may write more data.
    Unknown,
    /// To be sent or retransmitted.
    Due,
    InFlight,
    /// Two copies are in flight.
    InFlightTwice,
    Acked,
}

/// A range of a stream's bytes, optionally with the FIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamPart {
    pub(super) range: Range<u64>,
    pub(super) fin: bool,
}

/// A part of a stream taken to be sent.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) part: StreamPart,
    /// Number of its bytes never sent before.
    pub(super) new: u64,
}

/// The sending part of one stream.
#[derive(Debug)]
pub(super) struct SendPart {
    state: SendState,
    buffer: SendBuffer,
    fin: Fin,
    /// End of the last segment taken, while that waits in the queue of a path.
    queued_to: Option<u64>,
    /// The peer's limit for the stream, in bytes.
    max_data: u64,
    /// Error code of the peer's STOP_SENDING.
    stopped: Option<u64>,
    /// Priority passed to the scheduler.
    pub(super) priority: Priority,
    /// Path of the latest segment, with several paths.
    pub(super) path: Option<PathId>,
    /// Whether a write was blocked: the application waits for
    /// [`StreamEvent::Writable`](super::StreamEvent).
    pub(super) write_blocked: bool,
    /// Whether the stream is queued to wait for memory.
    pub(super) waits_for_memory: bool,
    /// Limit in the last STREAM_DATA_BLOCKED.
    pub(super) blocked_at: Option<u64>,
}

impl SendPart {
    pub(super) fn new(max_data: u64) -> Self {
        Self {
            state: SendState::Ready,
            buffer: SendBuffer::new(),
            fin: Fin::Unknown,
            queued_to: None,
            max_data,
            stopped: None,
            priority: Priority::default(),
            path: None,
            write_blocked: false,
            waits_for_memory: false,
            blocked_at: None,
        }
    }

    pub(super) fn state(&self) -> SendState {
        self.state
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.state, SendState::DataRecvd | SendState::ResetRecvd)
    }

    pub(super) fn is_reset(&self) -> bool {
        matches!(self.state, SendState::ResetSent { .. })
    }

    /// Whether the peer sent STOP_SENDING.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    fn is_sending(&self) -> bool {
        matches!(
            self.state,
            SendState::Ready | SendState::Send | SendState::DataSent
        )
    }

    /// Bytes kept until acknowledged.
    pub(super) fn held(&self) -> u64 {
        self.buffer.unacked()
    }

    /// Number of bytes that may still be written within the peer's limit.
    ///
    /// # Errors
    ///
    /// The reason why no more data may be written.
    pub(super) fn credit(&self) -> Result<u64, WriteError> {
        match (self.stopped, self.fin, self.is_sending()) {
            (Some(error_code), _, _) => Err(WriteError::Stopped(error_code)),
            (None, Fin::Unknown, true) => {
                Ok(self.max_data.saturating_sub(self.buffer.offset_end()))
            }
            _ => Err(WriteError::Closed),
        }
    }

    /// Appends a copy of `data`.
    pub(super) fn write_slice(&mut self, data: &[u8]) {
        self.buffer.write_slice(data);
    }

    /// Appends `data` without copying.
    pub(super) fn write(&mut self, data: Bytes) {
        self.buffer.write(data);
    }

    /// Ends the stream. If the last segment still waits in the queue of a path, the FIN is added to it.
    ///
    /// # Errors
    ///
    /// As [`SendPart::credit`].
    pub(super) fn finish(&mut self) -> Result<(), WriteError> {
        self.credit()?;
        self.fin = Fin::Due;
        let end = self.buffer.offset_end();
        if self.queued_to == Some(end) {
            let last_byte = end.saturating_sub(1)..end;
            let is_copied = self.buffer.in_flight_once(last_byte).next().is_none();
            self.fin = match is_copied {
                true => Fin::InFlightTwice,
                false => Fin::InFlight,
            };
            self.state = SendState::DataSent;
        }
        Ok(())
    }

    /// Whether all bytes of the finished stream were taken at least once.
    pub(super) fn is_all_taken(&self) -> bool {
        !self.is_sending() || self.fin != Fin::Unknown && !self.has_unsent()
    }

    /// Whether a FIN without data is to be sent.
    pub(super) fn is_end_due(&self) -> bool {
        self.is_sending() && self.fin == Fin::Due && !self.has_unsent() && !self.buffer.has_lost()
    }

    /// The FIN without data.
    pub(super) fn end(&self) -> StreamPart {
        let end = self.buffer.offset_end();
        let range = end..end;
        StreamPart { range, fin: true }
    }

    /// Marks the FIN as in flight, with data or without.
    pub(super) fn put_end_in_flight(&mut self) {
        if self.fin == Fin::Due {
            self.fin = Fin::InFlight;
        }
        self.state = SendState::DataSent;
    }

    /// Whether the stream ends at `offset`, and the peer has not acknowledged the FIN.
    fn ends_at(&self, offset: u64) -> bool {
        !matches!(self.fin, Fin::Unknown | Fin::Acked) && offset == self.buffer.offset_end()
    }

    /// Ends sending with a reset. Returns whether RESET_STREAM becomes due.
    pub(super) fn reset(&mut self, error_code: u64) -> bool {
        if !self.is_sending() {
            return false;
        }
        let final_size = self.buffer.offset_unsent();
        self.buffer.discard();
        self.state = SendState::ResetSent {
            error_code,
            final_size,
        };
        true
    }

    /// Handles STOP_SENDING: responds with a reset. Returns whether that has any effect.
    pub(super) fn on_stop_sending(&mut self, error_code: u64) -> bool {
        let resets = self.reset(error_code);
        if resets {
            self.stopped = Some(error_code);
        }
        resets
    }

    /// Handles MAX_STREAM_DATA; returns whether the limit was raised.
    pub(super) fn on_max_stream_data(&mut self, maximum: u64) -> bool {
        let raised = maximum > self.max_data;
        self.max_data = self.max_data.max(maximum);
        raised
    }

    /// Bytes to be sent: never sent, or lost.
    pub(super) fn pending(&self) -> u64 {
        self.buffer.len_unsent() + self.buffer.lost_bytes()
    }

    /// Whether there is unsent data.
    pub(super) fn has_unsent(&self) -> bool {
        self.buffer.len_unsent() > 0
    }

    /// Whether [`SendPart::take`] would return something, if the connection permits
    /// `connection_credit` new bytes.
    pub(super) fn is_ready(&self, connection_credit: u64) -> bool {
        let within_limits = connection_credit > 0 && self.buffer.offset_unsent() < self.max_data;
        self.is_sending() && (self.buffer.has_lost() || (self.has_unsent() && within_limits))
    }

    /// The stream's limit, if only that blocks sending.
    pub(super) fn blocked(&self) -> Option<u64> {
        let at_limit = self.buffer.offset_unsent() >= self.max_data;
        let wants_more = self.write_blocked || self.has_unsent();
        (at_limit && wants_more && self.is_sending()).then_some(self.max_data)
    }

    /// Offset of the next byte that [`take`](Self::take) returns.
    pub(super) fn next_offset(&self) -> u64 {
        self.buffer.next_offset()
    }

    /// Takes up to `max` bytes to send, at most `connection_credit` of them new.
    pub(super) fn take(&mut self, max: usize, connection_credit: u64) -> Option<Taken> {
        if !self.is_sending() {
            return None;
        }
        let (range, new) = if let Some(range) = self.buffer.take_lost(max) {
            (range, 0)
        } else {
            let stream_credit = self.max_data.saturating_sub(self.buffer.offset_unsent());
            let credit = stream_credit.min(connection_credit);
            let max = max.min(usize::try_from(credit).unwrap_or(usize::MAX));
            let range = self.buffer.take_unsent(max)?;
            (range.clone(), range.end - range.start)
        };
        let fin = self.fin != Fin::Unknown && range.end == self.buffer.offset_end();
        if self.state == SendState::Ready {
            self.state = SendState::Send;
        }
        if fin {
            self.put_end_in_flight();
        }
        if range.end == self.buffer.offset_unsent() {
            self.queued_to = Some(range.end);
        }
        Some(Taken {
            part: StreamPart { range, fin },
            new,
        })
    }

    /// Puts `part`, which was taken, into a packet: returns the part of it that is still held, as its front may have
    /// been acknowledged; with the FIN if the stream was finished in the meantime.
    pub(super) fn put_in_packet(&mut self, part: StreamPart) -> Option<StreamPart> {
        let end = part.range.end;
        self.leave_queue(end);
        if !self.is_sending() {
            return None;
        }
        let range = self.buffer.held(part.range);
        let fin = part.fin || self.ends_at(end);
        if range.is_empty() && !fin {
            return None;
        }
        if fin {
            self.put_end_in_flight();
        }
        Some(StreamPart { range, fin })
    }

    fn leave_queue(&mut self, end: u64) {
        if self.queued_to == Some(end) {
            self.queued_to = None;
        }
    }

    /// Makes `part`, which was taken but not sent, due again.
    pub(super) fn on_returned(&mut self, part: StreamPart) {
        self.leave_queue(part.range.end);
        let fin = part.fin || self.ends_at(part.range.end);
        self.on_lost(StreamPart { fin, ..part });
    }

    /// Appends the bytes of `range` to `buf`.
    pub(super) fn read_into(&self, range: Range<u64>, buf: &mut Vec<u8>) {
        self.buffer.read_into(range, buf);
    }

    /// The first part of `part` that is in flight exactly once.
    pub(super) fn in_flight_once(&self, part: StreamPart) -> Option<StreamPart> {
        if !self.is_sending() {
            return None;
        }
        let end = part.range.end;
        let range = self.buffer.in_flight_once(part.range).next();
        let is_last = range.as_ref().is_none_or(|range| range.end == end);
        let fin = part.fin && is_last && self.fin == Fin::InFlight;
        let range = range.or_else(|| fin.then_some(end..end))?;
        Some(StreamPart { range, fin })
    }

    /// Number of bytes of `part` in flight exactly once; `None` if not even the FIN is.
    pub(super) fn bytes_in_flight_once(&self, part: StreamPart) -> Option<u64> {
        let pieces = self.buffer.in_flight_once(part.range.clone());
        let bytes = pieces.map(|piece| piece.end - piece.start).sum();
        let is_in_flight = self.is_sending() && (bytes > 0 || self.in_flight_once(part).is_some());
        is_in_flight.then_some(bytes)
    }

    /// Records that a copy of `part`, which was in flight once, is sent.
    pub(super) fn on_copied(&mut self, part: StreamPart) {
        self.buffer.on_copied(part.range);
        if part.fin {
            self.fin = Fin::InFlightTwice;
        }
    }

    /// Handles the acknowledgment of `part`.
    pub(super) fn on_acked(&mut self, part: StreamPart) {
        if !self.is_sending() {
            return;
        }
        self.buffer.on_acked(part.range);
        if part.fin {
            self.fin = Fin::Acked;
        }
        if self.fin == Fin::Acked && self.buffer.is_fully_acked() {
            self.state = SendState::DataRecvd;
        }
    }

    /// Handles the loss of `part`.
    pub(super) fn on_lost(&mut self, part: StreamPart) {
        if !self.is_sending() {
            return;
        }
        self.buffer.on_lost(part.range);
        self.fin = match self.fin {
            Fin::InFlight if part.fin => Fin::Due,
            Fin::InFlightTwice if part.fin => Fin::InFlight,
            other => other,
        };
    }

    /// Handles the acknowledgment of RESET_STREAM.
    pub(super) fn on_reset_acked(&mut self) {
        if matches!(self.state, SendState::ResetSent { .. }) {
            self.state = SendState::ResetRecvd;
        }
    }

    /// Handles rejected 0-RTT: all data is unsent again, and no limit applies.
    pub(super) fn on_zero_rtt_rejected(&mut self) {
        self.max_data = 0;
        self.blocked_at = None;
        self.queued_to = None;
        match &mut self.state {
            SendState::ResetSent { final_size, .. } => {
                *final_size = 0;
                return;
            }
            SendState::Send | SendState::DataSent => self.state = SendState::Send,
            SendState::Ready | SendState::DataRecvd | SendState::ResetRecvd => {}
        }
        self.buffer.retransmit_all();
        if self.fin != Fin::Unknown {
            self.fin = Fin::Due;
        }
    }
}
