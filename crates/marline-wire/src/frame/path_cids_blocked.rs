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
    /// The sender needs a connection ID for a path, to open it or to change its ID, but has none.
    PathCidsBlocked = 0x3e7c {
        /// The path.
        path_id: PathId,
        /// Sequence number of the connection ID that the sender waits for.
        next_sequence: u64,
    }
}
