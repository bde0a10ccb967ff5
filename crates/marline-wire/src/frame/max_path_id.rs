//! MAX_PATH_ID and PATHS_BLOCKED (draft-ietf-quic-multipath-21, sections 4.6 and 4.7).
//!
//! ```text
//! MAX_PATH_ID Frame {                    PATHS_BLOCKED Frame {
//!   Type (i) = 0x3e7a,                     Type (i) = 0x3e7b,
//!   Maximum Path Identifier (i),           Maximum Path Identifier (i),
//! }                                      }
//! ```

use super::fields::varint_frame;
use crate::PathId;

varint_frame! {
    /// The limit of path IDs that the peer may use.
    MaxPathId = 0x3e7a {
        /// The largest path ID.
        maximum: PathId,
    }
}

varint_frame! {
    /// The sender wants to open a path but has reached the limit.
    PathsBlocked = 0x3e7b {
        /// The limit that was reached.
        limit: PathId,
    }
}
