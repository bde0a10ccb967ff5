//! CONNECTION_CLOSE, from the transport or from the application (RFC 9000, section 19.19).
//!
//! ```text
//! CONNECTION_CLOSE Frame {
//!   Type (i) = 0x1c..0x1d,
//!   Error Code (i),
//!   [Frame Type (i)],
//!   Reason Phrase Length (i),
//!   Reason Phrase (..),
//! }
//! ```
//!
//! The Frame Type field is present only in 0x1c, the variant of the transport.

use crate::{ErrorCode, Reader, Truncated, varint};

/// The transport closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionClose<'a> {
    /// Error code.
    pub error_code: ErrorCode,
    /// Type of the frame that caused the error, 0 if unknown.
    pub frame_type: u64,
    /// Reason phrase for human readers; should be UTF-8.
    pub reason: &'a [u8],
}

impl<'a> ConnectionClose<'a> {
    /// The frame type.
    pub const TYPE: u64 = 0x1c;

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, Truncated> {
        Ok(Self {
            error_code: ErrorCode(reader.varint()?),
            frame_type: reader.varint()?,
            reason: reader.prefixed()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(Self::TYPE, buf);
        varint::encode(self.error_code.0, buf);
        varint::encode(self.frame_type, buf);
        varint::encode(self.reason.len() as u64, buf);
        buf.extend_from_slice(self.reason);
    }

    /// Length of the frame in bytes.
    pub const fn size(&self) -> usize {
        let numbers = varint::size(self.error_code.0) + varint::size(self.frame_type);
        1 + numbers + varint::size(self.reason.len() as u64) + self.reason.len()
    }
}

/// The application closes the connection. Permitted only in 0-RTT and 1-RTT packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationClose<'a> {
    /// Application error code.
    pub error_code: u64,
    /// Reason phrase for human readers; should be UTF-8.
    pub reason: &'a [u8],
}

impl<'a> ApplicationClose<'a> {
    /// The frame type.
    pub const TYPE: u64 = 0x1d;

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, Truncated> {
        Ok(Self {
            error_code: reader.varint()?,
            reason: reader.prefixed()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(Self::TYPE, buf);
        varint::encode(self.error_code, buf);
        varint::encode(self.reason.len() as u64, buf);
        buf.extend_from_slice(self.reason);
    }

    /// Length of the frame in bytes.
    pub const fn size(&self) -> usize {
        let prefix = varint::size(self.reason.len() as u64);
        1 + varint::size(self.error_code) + prefix + self.reason.len()
    }
}
