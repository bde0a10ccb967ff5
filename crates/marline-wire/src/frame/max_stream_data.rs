//! MAX_STREAM_DATA and STREAM_DATA_BLOCKED (RFC 9000, sections 19.10 and 19.13).
//!
//! ```text
//! MAX_STREAM_DATA Frame {        STREAM_DATA_BLOCKED Frame {
//!   Type (i) = 0x11,               Type (i) = 0x15,
//!   Stream ID (i),                 Stream ID (i),
//!   Maximum Stream Data (i),       Maximum Stream Data (i),
//! }                              }
//! ```

use super::fields::varint_frame;
use crate::StreamId;

varint_frame! {
    /// The flow control limit of one stream for the peer.
    MaxStreamData = 0x11 {
        /// The stream.
        id: StreamId,
        /// Bytes since the start of the stream.
        maximum: u64,
    }
}

varint_frame! {
    /// The sender has data to send but has reached the stream's flow control limit.
    StreamDataBlocked = 0x15 {
        /// The stream.
        id: StreamId,
        /// The limit that was reached, in bytes.
        limit: u64,
    }
}
