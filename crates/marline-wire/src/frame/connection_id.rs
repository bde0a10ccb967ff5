//! NEW_CONNECTION_ID and RETIRE_CONNECTION_ID (RFC 9000, sections 19.15 and 19.16).
//!
//! ```text
//! NEW_CONNECTION_ID Frame {              RETIRE_CONNECTION_ID Frame {
//!   Type (i) = 0x18,                       Type (i) = 0x19,
//!   Sequence Number (i),                   Sequence Number (i),
//!   Retire Prior To (i),                 }
//!   Length (8),
//!   Connection ID (8..160),
//!   Stateless Reset Token (128),
//! }
//! ```

use super::{FrameErrorKind, fields::varint_frame};
use crate::{ConnectionId, Reader, varint};

/// A connection ID that the peer may use for packets to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewConnectionId {
    /// Sequence number that the sender assigned to the ID.
    pub sequence: u64,
    /// IDs with smaller sequence numbers are to be retired; at most `sequence`.
    pub retire_prior_to: u64,
    /// The ID, of 1 to 20 bytes.
    pub id: ConnectionId,
    /// Stateless reset token of this ID: the last 16 bytes of a stateless reset (RFC 9000, section 10.3).
    pub reset_token: [u8; 16],
}

impl NewConnectionId {
    /// The frame type.
    pub const TYPE: u64 = 0x18;

    /// Reads the fields after the frame type (in PATH_NEW_CONNECTION_ID, after the path ID).
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        let sequence = reader.varint()?;
        let retire_prior_to = reader.varint()?;
        if retire_prior_to > sequence {
            return Err(FrameErrorKind::Invalid(
                "Retire Prior To exceeds the sequence number",
            ));
        }
        let len = reader.u8()?;
        let id = ConnectionId::new(reader.take(len.into())?)
            .filter(|id| !id.is_empty())
            .ok_or(FrameErrorKind::Invalid(
                "the length of the connection ID is not 1 to 20 bytes",
            ))?;
        Ok(Self {
            sequence,
            retire_prior_to,
            id,
            reset_token: reader.array()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(Self::TYPE, buf);
        self.encode_fields(buf);
    }

    /// Appends the fields that [`decode`](Self::decode) reads.
    pub(super) fn encode_fields(&self, buf: &mut Vec<u8>) {
        varint::encode(self.sequence, buf);
        varint::encode(self.retire_prior_to, buf);
        buf.push(self.id.len() as u8);
        buf.extend_from_slice(&self.id);
        buf.extend_from_slice(&self.reset_token);
    }

    /// Length of the frame in bytes.
    pub fn size(&self) -> usize {
        varint::size(Self::TYPE) + self.fields_size()
    }

    /// Length in bytes of the fields that [`decode`](Self::decode) reads.
    pub(super) fn fields_size(&self) -> usize {
        let numbers = varint::size(self.sequence) + varint::size(self.retire_prior_to);
        numbers + 1 + self.id.len() + self.reset_token.len()
    }
}

varint_frame! {
    /// The sender no longer uses one of the peer's connection IDs.
    RetireConnectionId = 0x19 {
        /// Sequence number of the ID.
        sequence: u64,
    }
}
