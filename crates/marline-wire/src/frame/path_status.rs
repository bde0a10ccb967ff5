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
//! On each path one sequence counts both frames. One that is not above all that came before it for
//! its path is obsolete.

use super::fields::varint_frame;
use crate::PathId;

varint_frame! {
    /// The sender wishes to be sent nothing on a path while another one works.
    PathStatusBackup = 0x3e76 {
        /// The path; it need not be in use.
        path_id: PathId,
        /// Grows with each of both frames on the path.
        sequence: u64,
    }
}

varint_frame! {
    /// The sender is glad to be sent packets on a path.
    PathStatusAvailable = 0x3e77 {
        /// The path; it need not be in use.
        path_id: PathId,
        /// Grows with each of both frames on the path.
        sequence: u64,
    }
}
