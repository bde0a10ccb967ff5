//! ACK_FREQUENCY and IMMEDIATE_ACK (draft-ietf-quic-ack-frequency-14, sections 4 and 5).
//!
//! ```text
//! ACK_FREQUENCY Frame {              IMMEDIATE_ACK Frame {
//!   Type (i) = 0xaf,                   Type (i) = 0x1f,
//!   Sequence Number (i),             }
//!   Ack-Eliciting Threshold (i),
//!   Requested Max Ack Delay (i),
//!   Reordering Threshold (i),
//! }
//! ```

use super::fields::varint_frame;

/// The type of IMMEDIATE_ACK, which has no fields.
pub const IMMEDIATE_ACK: u64 = 0x1f;

varint_frame! {
    /// A request for an acknowledgment frequency.
    AckFrequency = 0xaf {
        /// Increases with each ACK_FREQUENCY frame; a frame with a smaller number than one seen is obsolete.
        sequence: u64,
        /// Number of ack-eliciting packets that may arrive without an acknowledgment. With 0, each
        /// of them is acknowledged immediately.
        ack_eliciting_threshold: u64,
        /// The new `max_ack_delay`, in microseconds.
        requested_max_ack_delay: u64,
        /// Number of packets by which a packet may be out of order before the peer acknowledges
        /// immediately. 0 disables this; 1 means any gap.
        reordering_threshold: u64,
    }
}
