//! STREAM (RFC 9000, section 19.8).
//!
//! ```text
//! STREAM Frame {
//!   Type (i) = 0x08..0x0f,
//!   Stream ID (i),
//!   [Offset (i)],
//!   [Length (i)],
//!   Stream Data (..),
//! }
//! ```
//!
//! Flag bits of the type indicate whether there is an offset (0x04) and a length (0x02), and whether the
//! stream ends with this frame (0x01). Without a length the data extends to the end of the packet.

use super::FrameErrorKind;
use crate::{Reader, StreamId, varint};

const OFF: u64 = 0x04;
const LEN: u64 = 0x02;
const FIN: u64 = 0x01;

/// A segment of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The stream.
    pub id: StreamId,
    /// Offset of the data in the stream, in bytes.
    pub offset: u64,
    /// Whether the stream ends with this data.
    pub fin: bool,
    /// The bytes. Offset and length together do not exceed 2^62 - 1.
    pub data: &'a [u8],
}

impl<'a> Stream<'a> {
    /// The frame type without flag bits.
    pub const TYPE: u64 = 0x08;
    /// The frame type with all flag bits.
    pub const TYPE_LAST: u64 = Self::TYPE | OFF | LEN | FIN;

    #[inline]
    pub(super) fn decode(frame_type: u64, reader: &mut Reader<'a>) -> Result<Self, FrameErrorKind> {
        let id = reader.varint()?.into();
        let offset = if frame_type & OFF != 0 {
            reader.varint()?
        } else {
            0
        };
        let data = if frame_type & LEN != 0 {
            reader.prefixed()?
        } else {
            reader.rest()
        };
        if offset + data.len() as u64 > varint::MAX {
            return Err(FrameErrorKind::Invalid("data beyond offset 2^62 - 1"));
        }
        Ok(Self {
            id,
            offset,
            fin: frame_type & FIN != 0,
            data,
        })
    }

    const fn type_of(offset: u64, fin: bool, explicit_length: bool) -> u64 {
        let off = if offset > 0 { OFF } else { 0 };
        let len = if explicit_length { LEN } else { 0 };
        Self::TYPE | off | len | fin as u64
    }

    /// The frame type that [`encode`](Self::encode) writes. The peer may have sent the frame with
    /// different flag bits of the same meaning.
    pub const fn frame_type(&self) -> u64 {
        Self::type_of(self.offset, self.fin, true)
    }

    /// Size in bytes of the fields before `len` bytes of data at `offset`.
    #[inline]
    pub fn header_size(id: StreamId, offset: u64, len: usize, explicit_length: bool) -> usize {
        let mut size = 1 + varint::size(id.into());
        if offset > 0 {
            size += varint::size(offset);
        }
        if explicit_length {
            size += varint::size(len as u64);
        }
        size
    }

    /// Appends the fields before the data. The caller appends `len` bytes of data, which must
    /// extend to the end of the packet unless the length is explicit.
    #[inline]
    pub fn encode_header(
        id: StreamId,
        offset: u64,
        len: usize,
        fin: bool,
        explicit_length: bool,
        buf: &mut Vec<u8>,
    ) {
        varint::encode(Self::type_of(offset, fin, explicit_length), buf);
        varint::encode(id.into(), buf);
        if offset > 0 {
            varint::encode(offset, buf);
        }
        if explicit_length {
            varint::encode(len as u64, buf);
        }
    }

    /// Appends the frame with an explicit length.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        Self::encode_header(self.id, self.offset, self.data.len(), self.fin, true, buf);
        buf.extend_from_slice(self.data);
    }

    /// Length of the frame that [`encode`](Self::encode) appends, in bytes.
    pub fn size(&self) -> usize {
        Self::header_size(self.id, self.offset, self.data.len(), true) + self.data.len()
    }
}
