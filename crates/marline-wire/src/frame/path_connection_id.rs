//! PATH_NEW_CONNECTION_ID and PATH_RETIRE_CONNECTION_ID (draft-ietf-quic-multipath-21, sections 4.4
//! and 4.5).
//!
//! ```text
//! PATH_NEW_CONNECTION_ID Frame {         PATH_RETIRE_CONNECTION_ID Frame {
//!   Type (i) = 0x3e78,                     Type (i) = 0x3e79,
//!   Path Identifier (i),                   Path Identifier (i),
//!   Sequence Number (i),                   Sequence Number (i),
//!   Retire Prior To (i),                 }
//!   Length (8),
//!   Connection ID (8..160),
//!   Stateless Reset Token (128),
//! }
//! ```
//!
//! Connection IDs of each path have their own sequence numbers, from 0. NEW_CONNECTION_ID and
//! RETIRE_CONNECTION_ID apply to path 0.

use super::{FrameErrorKind, NewConnectionId, fields::varint_frame};
use crate::{PathId, Reader, varint};

/// A connection ID that the peer may use for packets to the sender on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathNewConnectionId {
    /// The path.
    pub path_id: PathId,
    /// The ID; its sequence numbers are those of this path.
    pub issued: NewConnectionId,
}

impl PathNewConnectionId {
    /// The frame type.
    pub const TYPE: u64 = 0x3e78;

    /// Reads the fields after the type, with the checks of [`NewConnectionId::decode`].
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            path_id: reader.varint()?.try_into()?,
            issued: NewConnectionId::decode(reader)?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(Self::TYPE, buf);
        varint::encode(self.path_id.into(), buf);
        self.issued.encode_fields(buf);
    }

    /// Length of the frame in bytes.
    pub fn size(&self) -> usize {
        let path = varint::size(self.path_id.into());
        varint::size(Self::TYPE) + path + self.issued.fields_size()
    }
}

varint_frame! {
    /// The sender no longer uses one of the peer's connection IDs of a path.
    PathRetireConnectionId = 0x3e79 {
        /// The path.
        path_id: PathId,
        /// Sequence number of the ID on that path.
        sequence: u64,
    }
}
