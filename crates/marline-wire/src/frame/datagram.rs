//! DATAGRAM (RFC 9221, section 4).
//!
//! ```text
//! DATAGRAM Frame {
//!   Type (i) = 0x30..0x31,
//!   [Length (i)],
//!   Datagram Data (..),
//! }
//! ```
//!
//! Without a length the data extends to the end of the packet.

use crate::{Reader, Truncated, varint};

/// Application data that is neither retransmitted nor ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The application's bytes.
    pub data: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// The frame type without a length.
    pub const TYPE: u64 = 0x30;
    /// The frame type with a length; this crate always sends it.
    pub const TYPE_LEN: u64 = 0x31;

    pub(super) fn decode(frame_type: u64, reader: &mut Reader<'a>) -> Result<Self, Truncated> {
        Ok(Self {
            data: if frame_type == Self::TYPE {
                reader.rest()
            } else {
                reader.prefixed()?
            },
        })
    }

    /// Appends the frame with its length.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(Self::TYPE_LEN, buf);
        varint::encode(self.data.len() as u64, buf);
        buf.extend_from_slice(self.data);
    }

    /// Length of the frame in bytes.
    pub const fn size(&self) -> usize {
        1 + varint::size(self.data.len() as u64) + self.data.len()
    }
}
