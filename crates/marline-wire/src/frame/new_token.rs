//! NEW_TOKEN (RFC 9000, section 19.7).
//!
//! ```text
//! NEW_TOKEN Frame {
//!   Type (i) = 0x07,
//!   Token Length (i),
//!   Token (..),
//! }
//! ```

use super::FrameErrorKind;
use crate::{Reader, varint};

/// An address validation token for the Initial packets of a later connection. Sent only by servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewToken<'a> {
    /// Opaque to the client; never empty.
    pub token: &'a [u8],
}

impl<'a> NewToken<'a> {
    /// The frame type.
    pub const TYPE: u64 = 0x07;

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, FrameErrorKind> {
        let token = reader.prefixed()?;
        if token.is_empty() {
            return Err(FrameErrorKind::Invalid("an empty token"));
        }
        Ok(Self { token })
    }

    /// Appends the frame.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(Self::TYPE, buf);
        varint::encode(self.token.len() as u64, buf);
        buf.extend_from_slice(self.token);
    }

    /// Length of the frame in bytes.
    pub const fn size(&self) -> usize {
        1 + varint::size(self.token.len() as u64) + self.token.len()
    }
}
