//! Packet number spaces: sent and received packets.

mod received;
mod sent;

pub(crate) use received::Received;
pub(crate) use sent::{
    BadAck, LossSampleId, Original, PacketOutcome, ResolvedPacket, Sent, SentPacket,
};

use crate::limits::MAX_ACKS_UNANSWERED;
use crate::time::Instant;

/// One packet number space (RFC 9000, section 12.3).
///
/// `T` is the token of a frame: the retransmission information that leads from an acknowledged or lost
/// packet to the module that wrote the frame.
#[derive(Debug)]
pub(crate) struct Space<T> {
    pub(crate) sent: Sent<T>,
    pub(crate) received: Received,
}

impl<T> Space<T> {
    pub(crate) fn new() -> Self {
        Self {
            sent: Sent::new(),
            received: Received::default(),
        }
    }

    /// Schedules an ACK frame by `deadline`, unless the peer leaves many of ours unacknowledged: then it is sent
    /// only with the next probe, which bounds the state for a peer that acknowledges nothing.
    pub(crate) fn acknowledge_by(&mut self, deadline: Instant) {
        if self.sent.silent_outstanding() < MAX_ACKS_UNANSWERED {
            self.received.acknowledge_by(deadline);
        }
    }

    /// Makes the ACK frame due again where the last ones [may be lost](Received::repeat_ack).
    pub(crate) fn repeat_ack(&mut self, now: Instant) {
        self.received.repeat_ack();
        if self.received.is_ack_wanted() {
            self.acknowledge_by(now);
        }
    }
}

#[cfg(test)]
mod tests;
