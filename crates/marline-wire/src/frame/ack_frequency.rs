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
    /// When the sender wishes to be sent acknowledgments.
    AckFrequency = 0xaf {
        /// Grows with each such frame; a smaller one than seen before is obsolete.
        sequence: u64,
        /// How many ack-eliciting packets may arrive without an acknowledgment. With 0 each of
        /// them is acknowledged at once.
        ack_eliciting_threshold: u64,
        /// The new `max_ack_delay`, in microseconds.
        requested_max_ack_delay: u64,
        /// How far out of order packets may arrive before they are acknowledged at once, in
        /// packets. With 0 order does not matter; 1 means any gap.
        reordering_threshold: u64,
    }
}
