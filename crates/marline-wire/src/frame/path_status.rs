//! PATH_STATUS_BACKUP and PATH_STATUS_AVAILABLE (draft-ietf-quic-multipath-21, section 4.3).
//!
//! ```text
//! PATH_STATUS_BACKUP Frame {             PATH_STATUS_AVAILABLE Frame {
//!   Type (i) = 0x3e76,                     Type (i) = 0x3e77,
//!   Path Identifier (i),                   Path Identifier (i),
//!   Path Status Sequence Number (i),       Path Status Sequence Number (i),
//! }                                      }
//! ```
//!
//! Both frames share one sequence per path. A frame whose number does not exceed all earlier ones of
//! its path is obsolete.

use super::fields::varint_frame;
use crate::PathId;

varint_frame! {
    /// The sender requests the peer not to use a path while another one works.
    PathStatusBackup = 0x3e76 {
        /// The path; it need not be in use.
        path_id: PathId,
        /// Increases with every path status frame of the path.
        sequence: u64,
    }
}

varint_frame! {
    /// The sender allows the peer to use a path.
    PathStatusAvailable = 0x3e77 {
        /// The path; it need not be in use.
        path_id: PathId,
        /// Increases with every path status frame of the path.
        sequence: u64,
    }
}
