//! PATH_ABANDON (draft-ietf-quic-multipath-21, section 4.2).
//!
//! ```text
//! PATH_ABANDON Frame {
//!   Type (i) = 0x3e75,
//!   Path Identifier (i),
//!   Error Code (i),
//! }
//! ```

use super::fields::varint_frame;
use crate::{ErrorCode, PathId};

varint_frame! {
    /// The sender stops using a path and requests the peer to do the same.
    PathAbandon = 0x3e75 {
        /// The path.
        path_id: PathId,
        /// The reason; [`ErrorCode::NO_ERROR`] if there was no error.
        error_code: ErrorCode,
    }
}
