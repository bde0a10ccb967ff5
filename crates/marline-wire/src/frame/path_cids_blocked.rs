//! PATH_CIDS_BLOCKED (draft-ietf-quic-multipath-21, section 4.7).
//!
//! ```text
//! PATH_CIDS_BLOCKED Frame {
//!   Type (i) = 0x3e7c,
//!   Path Identifier (i),
//!   Next Sequence Number (i),
//! }
//! ```

use super::fields::varint_frame;
use crate::PathId;

varint_frame! {
    /// The sender wants to open a path, or to change its connection ID on one, but has no ID for it.
    PathCidsBlocked = 0x3e7c {
        /// The path.
        path_id: PathId,
        /// The number of the ID that it waits for.
        next_sequence: u64,
    }
}
