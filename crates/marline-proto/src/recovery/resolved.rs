//! The parts of a path that recovery updates, and the lists in which it returns resolved packets.

use std::time::Duration;

use crate::congestion::CongestionEvent;
use crate::coordination::careful_resume::CarefulResumeDriver;
use crate::limits::IDLE_QUEUE_CAPACITY;
use crate::recovery::loss::Cause;
use crate::tuple::{EcnLedger, EcnValidation, MtuDiscovery};

/// The parts of a path that acknowledgments and losses in one packet number space update.
pub(crate) struct PathParts<'a> {
    /// Generation of the active 4-tuple. Packets sent on others do not count for its datagram size and ECN validation, and
    /// count for the path only after a NAT rebinding (RFC 9000, section 9.4).
    pub(crate) tuple: u32,
    pub(crate) mtu: &'a mut MtuDiscovery,
    pub(crate) ecn: &'a mut EcnValidation,
    /// ECN counts of the space.
    pub(crate) ledger: &'a mut EcnLedger,
    /// Careful Resume, which sees each congestion event after the controller.
    pub(crate) careful_resume: Option<&'a mut CarefulResumeDriver>,
}

/// Resolved packets, the tokens of their frames (of type `T`), and congestion events, each in order. Reused, so that
/// an ACK frame allocates nothing.
#[derive(Debug)]
pub(crate) struct Resolved<T> {
    /// Numbers of the newly acknowledged packets of one ACK frame, including those declared lost before.
    pub(crate) acked: Vec<u64>,
    pub(crate) spuriously_lost: Vec<SpuriouslyLost>,
    pub(crate) lost: Vec<LostPacket>,
    pub(crate) events: Vec<CongestionEvent>,
    pub(crate) tokens: Vec<ResolvedToken<T>>,
}

/// The token of a frame, and the outcome of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedToken<T> {
    /// The packet was acknowledged.
    Acked(T),
    /// The packet was declared lost: the content of the frame is due again.
    Lost(T),
    /// The content of the frame is due again, although the packet is not declared lost.
    Due(T),
}

impl<T> Default for Resolved<T> {
    fn default() -> Self {
        Self {
            acked: Vec::new(),
            spuriously_lost: Vec::new(),
            lost: Vec::new(),
            events: Vec::new(),
            tokens: Vec::new(),
        }
    }
}

impl<T: Clone> Resolved<T> {
    /// Adds a token whose content is due again.
    pub(crate) fn push_due(&mut self, token: &T) {
        self.tokens.push(ResolvedToken::Due(token.clone()));
    }
}

impl<T> Resolved<T> {
    /// Empties the lists, and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.acked.clear();
        self.spuriously_lost.clear();
        self.lost.clear();
        self.events.clear();
        self.tokens.clear();
    }

    /// Releases memory, so that idle connections stay small.
    pub(crate) fn shrink(&mut self) {
        self.acked.shrink_to(IDLE_QUEUE_CAPACITY);
        self.spuriously_lost.shrink_to(IDLE_QUEUE_CAPACITY);
        self.lost.shrink_to(IDLE_QUEUE_CAPACITY);
        self.tokens.shrink_to(IDLE_QUEUE_CAPACITY);
    }
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostPacket {
    pub(crate) number: u64,
    /// Size without UDP and IP headers, in bytes.
    pub(crate) size: u16,
    /// Whether it was a PMTU probe.
    pub(crate) mtu_probe: bool,
    /// The threshold that was exceeded.
    pub(crate) cause: Cause,
}

/// A packet that was acknowledged after it had been declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpuriouslyLost {
    pub(crate) number: u64,
    /// Largest acknowledged packet number before, minus that of the packet.
    pub(crate) reordering: u64,
    /// Time from its transmission to its acknowledgment.
    pub(crate) elapsed: Duration,
}
