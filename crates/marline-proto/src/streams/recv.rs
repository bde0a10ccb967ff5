//! The receiving part of a stream (RFC 9000, section 3.2).
//!
//! ```text
//!        o
//!        | the first frame for it or a later stream, or open
//!        v
//!    +-------+
//!    | Recv  |------ RESET_STREAM ---.
//!    +-------+                       |
//!        | STREAM + FIN              |
//!        v                           |
//!    +-------+                       |
//!    | Size  |------ RESET_STREAM -->|
//!    | Known |                       |
//!    +-------+                       |
//!        | all data                  |
//!        v                           v
//!    +-------+                   +-------+
//!    | Data  |                   | Reset |
//!    | Recvd |                   | Recvd |
//!    +-------+                   +-------+
//!        | all read                  | reset read
//!        v                           v
//!    +-------+                   +-------+
//!    | Data  |                   | Reset |
//!    | Read  |                   | Read  |
//!    +-------+                   +-------+
//! ```
//!
//! A reset received after all data is ignored: the data is delivered.

use super::error::ReadError;
use super::flow::ReceiveWindow;
use crate::buffers::Assembler;
use bytes::Bytes;
use marline_wire::frame;
use marline_wire::{ErrorCode, TransportError};

/// States of a receiving part; the last two are terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecvState {
    Recv,
    SizeKnown,
    DataRecvd,
    ResetRecvd { error_code: u64 },
    DataRead,
    ResetRead,
}

/// The receiving part of one stream.
#[derive(Debug)]
pub(super) struct RecvPart {
    state: RecvState,
    assembler: Assembler,
    pub(super) window: ReceiveWindow,
    /// One more than the highest offset received.
    end: u64,
    final_size: Option<u64>,
    /// Bytes returned to the connection's window.
    credited: u64,
    /// Error code of STOP_SENDING, once the application stopped reading; data that arrives is then counted and dropped.
    stopped: Option<u64>,
    /// Whether the application was notified and no read has blocked since.
    pub(super) readable_notified: bool,
}

impl RecvPart {
    pub(super) fn new(window: ReceiveWindow) -> Self {
        Self {
            state: RecvState::Recv,
            assembler: Assembler::new(),
            window,
            end: 0,
            final_size: None,
            credited: 0,
            stopped: None,
            readable_notified: false,
        }
    }

    pub(super) fn state(&self) -> RecvState {
        self.state
    }

    /// Whether data is still to be received.
    pub(super) fn is_receiving(&self) -> bool {
        matches!(self.state, RecvState::Recv | RecvState::SizeKnown)
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.state, RecvState::DataRead | RecvState::ResetRead)
    }

    /// The error code of STOP_SENDING, if the application stopped.
    pub(super) fn stopped(&self) -> Option<u64> {
        self.stopped
    }

    /// Whether the peer can use credit for the stream.
    pub(super) fn wants_credit(&self) -> bool {
        self.state == RecvState::Recv && self.stopped.is_none()
    }

    /// Whether reading would not block.
    pub(super) fn is_readable(&self) -> bool {
        match self.state {
            RecvState::Recv | RecvState::SizeKnown => self.assembler.is_readable(),
            RecvState::DataRecvd | RecvState::ResetRecvd { .. } => true,
            RecvState::DataRead | RecvState::ResetRead => false,
        }
    }

    /// Bytes in memory that cannot be read because earlier ones are missing.
    pub(super) fn out_of_order(&self) -> u64 {
        self.assembler.out_of_order() as u64
    }

    /// Bytes in memory.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn buffered(&self) -> usize {
        self.assembler.buffered()
    }

    /// Checks the peer's use of offsets up to `end`, which is the final size if `is_final`. Returns
    /// the number of bytes of the connection's credit used.
    fn claim(
        &mut self,
        end: u64,
        is_final: bool,
        connection_credit: u64,
    ) -> Result<u64, TransportError> {
        let contradicts = self
            .final_size
            .is_some_and(|size| end > size || (is_final && end != size));
        if contradicts || (is_final && end < self.end) {
            return Err(TransportError::new(
                ErrorCode::FINAL_SIZE_ERROR,
                "the final size of a stream changed or was exceeded",
            ));
        }
        if end > self.window.advertised() {
            return Err(TransportError::new(
                ErrorCode::FLOW_CONTROL_ERROR,
                "more data than the stream's limit",
            ));
        }
        let new = end.saturating_sub(self.end);
        if new > connection_credit {
            return Err(TransportError::new(
                ErrorCode::FLOW_CONTROL_ERROR,
                "more data than the connection's limit",
            ));
        }
        self.end += new;
        if is_final {
            self.final_size = Some(end);
        }
        Ok(new)
    }

    /// Processes a STREAM frame; returns the number of bytes of the connection's credit used.
    ///
    /// # Errors
    ///
    /// FINAL_SIZE_ERROR and FLOW_CONTROL_ERROR.
    pub(super) fn on_stream(
        &mut self,
        frame: &frame::Stream<'_>,
        connection_credit: u64,
    ) -> Result<u64, TransportError> {
        let end = frame.offset + frame.data.len() as u64;
        let new = self.claim(end, frame.fin, connection_credit)?;
        if !matches!(self.state, RecvState::Recv | RecvState::SizeKnown) {
            return Ok(new);
        }
        if self.stopped.is_some() {
            if self.final_size.is_some() {
                self.state = RecvState::ResetRead;
            }
            return Ok(new);
        }
        if frame.fin {
            self.assembler.set_total(end);
        }
        self.assembler.insert(frame.offset, frame.data);
        if let Some(final_size) = self.final_size {
            self.state = if self.assembler.received() == final_size {
                RecvState::DataRecvd
            } else {
                RecvState::SizeKnown
            };
        }
        Ok(new)
    }

    /// Processes RESET_STREAM; returns the number of bytes of the connection's credit used.
    ///
    /// # Errors
    ///
    /// FINAL_SIZE_ERROR and FLOW_CONTROL_ERROR.
    pub(super) fn on_reset(
        &mut self,
        frame: &frame::ResetStream,
        connection_credit: u64,
    ) -> Result<u64, TransportError> {
        let new = self.claim(frame.final_size, true, connection_credit)?;
        if matches!(self.state, RecvState::Recv | RecvState::SizeKnown) {
            self.assembler.discard();
            self.state = match self.stopped {
                Some(_) => RecvState::ResetRead,
                None => RecvState::ResetRecvd {
                    error_code: frame.error_code,
                },
            };
        }
        Ok(new)
    }

    /// Stops reading. Returns whether STOP_SENDING becomes due.
    pub(super) fn stop(&mut self, error_code: u64) -> bool {
        self.stopped = Some(error_code);
        self.assembler.discard();
        if self.state == RecvState::Recv {
            return true;
        }
        self.state = RecvState::ResetRead;
        false
    }

    /// Takes up to `max` bytes in order; `None` once the stream is finished.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub(super) fn read(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        if self.stopped.is_some() || self.is_terminal() {
            return Err(ReadError::Closed);
        }
        if let RecvState::ResetRecvd { error_code } = self.state {
            self.state = RecvState::ResetRead;
            return Err(ReadError::Reset(error_code));
        }
        if let Some(bytes) = self.assembler.read(max) {
            return Ok(Some(bytes));
        }
        if self.state == RecvState::DataRecvd && !self.assembler.is_readable() {
            self.state = RecvState::DataRead;
            return Ok(None);
        }
        self.readable_notified = self.assembler.is_readable();
        Err(ReadError::Blocked)
    }

    /// Bytes to be returned to the connection's window that were not returned before.
    pub(super) fn take_credit(&mut self) -> u64 {
        let reset = matches!(self.state, RecvState::ResetRecvd { .. });
        let done = if reset || self.stopped.is_some() {
            self.end
        } else {
            self.assembler.bytes_read()
        };
        let credit = done - self.credited;
        self.credited = done;
        credit
    }
}
