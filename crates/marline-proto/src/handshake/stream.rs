//! The CRYPTO data of one packet number space in both directions.

use std::ops::Range;

use bytes::Bytes;
use marline_wire::frame::Crypto;
use marline_wire::{ErrorCode, TransportError};

use crate::buffers::{Assembler, SendBuffer};
use crate::level::SpaceId;
use crate::limits::CRYPTO_BUFFER;

/// Retransmission information of CRYPTO data in a sent packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CryptoToken {
    /// Packet number space.
    pub(crate) space: SpaceId,
    /// Range of the data.
    pub(crate) range: Range<u64>,
}

#[derive(Debug)]
pub(super) struct CryptoStream {
    pub(super) outgoing: SendBuffer,
    incoming: Assembler,
}

impl CryptoStream {
    pub(super) fn new() -> Self {
        Self {
            outgoing: SendBuffer::new(),
            incoming: Assembler::new(),
        }
    }

    /// Processes a frame. With `is_over`, TLS expects no more data in this space.
    pub(super) fn on_crypto(
        &mut self,
        frame: &Crypto<'_>,
        is_over: bool,
    ) -> Result<(), TransportError> {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        if is_over && end > self.incoming.end() {
            return Err(data_after_the_end());
        }
        if end.saturating_sub(self.incoming.bytes_read()) > CRYPTO_BUFFER {
            return Err(TransportError::new(
                ErrorCode::CRYPTO_BUFFER_EXCEEDED,
                "too much CRYPTO data before a gap",
            ));
        }
        self.incoming.insert(frame.offset, frame.data);
        Ok(())
    }

    /// Whether all bytes of `frame` and all before them were received.
    pub(super) fn has_received(&self, frame: &Crypto<'_>) -> bool {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        !frame.data.is_empty() && end <= self.incoming.bytes_read()
    }

    /// The next received bytes in order.
    pub(super) fn read(&mut self) -> Option<Bytes> {
        self.incoming.read(usize::MAX)
    }

    /// Checks that TLS read all received data before it continues in the next space.
    pub(super) fn check_all_read(&self) -> Result<(), TransportError> {
        if self.incoming.end() == self.incoming.bytes_read() {
            Ok(())
        } else {
            Err(data_after_the_end())
        }
    }

    pub(super) fn has_outgoing(&self) -> bool {
        self.outgoing.has_lost() || self.outgoing.len_unsent() > 0
    }

    /// Appends CRYPTO frames while `buf` is shorter than `limit` and data is due.
    pub(super) fn write_frames(
        &mut self,
        space: SpaceId,
        buf: &mut Vec<u8>,
        limit: usize,
        tokens: &mut impl FnMut(CryptoToken),
    ) {
        loop {
            let available = limit.saturating_sub(buf.len());
            // The last offset of the buffer has the longest encoding.
            let header = Crypto::header_size(self.outgoing.offset_end(), available);
            let Some(range) = self.outgoing.take(available.saturating_sub(header)) else {
                return;
            };
            Crypto::encode_header(range.start, (range.end - range.start) as usize, buf);
            self.outgoing.read_into(range.clone(), buf);
            tokens(CryptoToken { space, range });
        }
    }
}

/// The error for data after the end of the handshake (RFC 9001, section 4.1.3).
fn data_after_the_end() -> TransportError {
    TransportError::new(
        ErrorCode::PROTOCOL_VIOLATION,
        "CRYPTO data at a previous encryption level",
    )
}
