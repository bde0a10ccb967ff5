//! CRYPTO (RFC 9000, section 19.6).
//!
//! ```text
//! CRYPTO Frame {
//!   Type (i) = 0x06,
//!   Offset (i),
//!   Length (i),
//!   Crypto Data (..),
//! }
//! ```

use super::FrameErrorKind;
use crate::{Reader, varint};

/// A segment of the TLS handshake messages of one encryption level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crypto<'a> {
    /// Offset of the data in the CRYPTO stream of its encryption level, in bytes.
    pub offset: u64,
    /// The bytes. Offset and length together do not exceed 2^62 - 1.
    pub data: &'a [u8],
}

impl<'a> Crypto<'a> {
    /// The frame type.
    pub const TYPE: u64 = 0x06;

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, FrameErrorKind> {
        let offset = reader.varint()?;
        let data = reader.prefixed()?;
        if offset + data.len() as u64 > varint::MAX {
            return Err(FrameErrorKind::Invalid("data beyond offset 2^62 - 1"));
        }
        Ok(Self { offset, data })
    }

    /// Size in bytes of the fields before `len` bytes of data at `offset`.
    #[inline]
    pub const fn header_size(offset: u64, len: usize) -> usize {
        1 + varint::size(offset) + varint::size(len as u64)
    }

    /// Appends the fields before the data; the caller appends `len` bytes of data.
    #[inline]
    pub fn encode_header(offset: u64, len: usize, buf: &mut Vec<u8>) {
        varint::encode(Self::TYPE, buf);
        varint::encode(offset, buf);
        varint::encode(len as u64, buf);
    }

    /// Appends the frame.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        Self::encode_header(self.offset, self.data.len(), buf);
        buf.extend_from_slice(self.data);
    }

    /// Length of the frame in bytes.
    pub const fn size(&self) -> usize {
        Self::header_size(self.offset, self.data.len()) + self.data.len()
    }
}
