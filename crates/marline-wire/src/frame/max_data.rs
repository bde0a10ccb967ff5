//! MAX_DATA and DATA_BLOCKED (RFC 9000, sections 19.9 and 19.12).
//!
//! ```text
//! MAX_DATA Frame {            DATA_BLOCKED Frame {
//!   Type (i) = 0x10,            Type (i) = 0x14,
//!   Maximum Data (i),           Maximum Data (i),
//! }                           }
//! ```

use super::fields::varint_frame;

varint_frame! {
    /// The connection's flow control limit for the peer, over all streams.
    MaxData = 0x10 {
        /// Bytes since the start of the connection.
        maximum: u64,
    }
}

varint_frame! {
    /// The sender has data to send but has reached the connection's flow control limit.
    DataBlocked = 0x14 {
        /// The limit that was reached, in bytes.
        limit: u64,
    }
}
