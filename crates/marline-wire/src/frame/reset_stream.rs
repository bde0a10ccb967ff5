//! RESET_STREAM and STOP_SENDING (RFC 9000, sections 19.4 and 19.5).
//!
//! ```text
//! RESET_STREAM Frame {                      STOP_SENDING Frame {
//!   Type (i) = 0x04,                          Type (i) = 0x05,
//!   Stream ID (i),                            Stream ID (i),
//!   Application Protocol Error Code (i),      Application Protocol Error Code (i),
//!   Final Size (i),                         }
//! }
//! ```

use super::fields::varint_frame;
use crate::StreamId;

varint_frame! {
    /// The sender terminates the sending part of a stream abruptly.
    ResetStream = 0x04 {
        /// The stream.
        id: StreamId,
        /// Application error code.
        error_code: u64,
        /// Final size of the stream in bytes, which both ends count for flow control.
        final_size: u64,
    }
}

varint_frame! {
    /// The sender stops reading from a stream and requests the peer to reset it.
    StopSending = 0x05 {
        /// The stream.
        id: StreamId,
        /// Application error code.
        error_code: u64,
    }
}
