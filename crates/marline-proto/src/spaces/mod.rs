//! Packet number spaces: what was sent and what was received.

mod received;
mod sent;

pub(crate) use received::Received;
pub(crate) use sent::{Original, Sent, SentPacket, Settled};

use crate::limits::MAX_ACKS_UNANSWERED;
use crate::time::Instant;

/// One packet number space (RFC 9000, section 12.3) with what RFC 9002, appendix A.3 keeps for each.
///
/// `T` is the return ticket of a frame: what leads from an acknowledged or lost packet to the room
/// that wrote the frame.
#[derive(Debug)]
pub(crate) struct Space<T> {
    pub(crate) sent: Sent<T>,
    pub(crate) received: Received,
    /// When the oldest packet that may still arrive counts as lost.
    pub(crate) loss_time: Option<Instant>,
    /// When the last ack-eliciting packet left.
    pub(crate) last_ack_eliciting: Option<Instant>,
    /// Probe packets that a PTO still wants from this space.
    pub(crate) probes: u8,
}

impl<T> Space<T> {
    pub(crate) fn new() -> Self {
        Self {
            sent: Sent::new(),
            received: Received::default(),
            loss_time: None,
            last_ack_eliciting: None,
            probes: 0,
        }
    }

    /// An ACK frame shall leave by `deadline`, unless the peer has long left all of ours unanswered:
    /// then it travels with the next probe, lest we remember packets for a peer that acknowledges
    /// none.
    pub(crate) fn acknowledge_by(&mut self, deadline: Instant) {
        if self.sent.silent_outstanding() < MAX_ACKS_UNANSWERED {
            self.received.acknowledge_by(deadline);
        }
    }
}
