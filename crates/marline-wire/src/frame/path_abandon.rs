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
    /// The sender sends nothing on a path any more, and asks the peer to do the same.
    PathAbandon = 0x3e75 {
        /// The path.
        path_id: PathId,
        /// Why; [`ErrorCode::NO_ERROR`] if nothing went wrong.
        error_code: ErrorCode,
    }
}
