//! The interface through which recovery reports to other modules.

use std::time::Duration;

use marline_wire::frame::EcnCounts;

use crate::congestion::Controller;
use crate::level::SpaceId;
use crate::recovery::loss::Cause;
use crate::samples::{AckSample, LossSample};
use crate::spaces::SentPacket;
use crate::time::Instant;

/// The context of recovery on a path: its 4-tuple, the modules that wrote the frames (by tokens of type
/// `T`), and the observers of its congestion controller.
pub(crate) trait Context<T> {
    /// Generation of the active 4-tuple. Packets sent on others do not count for it, except after a NAT rebinding
    /// (RFC 9000, section 9.4).
    fn active_tuple(&self) -> u32;

    /// Called for each newly acknowledged packet on any 4-tuple. For reports only.
    fn on_newly_acked(&mut self, number: u64);

    /// Called after all newly acknowledged packets of an ACK frame in `space` were reported by
    /// [`on_newly_acked`](Self::on_newly_acked).
    fn on_ack_processed(&mut self, now: Instant, space: SpaceId);

    /// Called when a packet on the active 4-tuple was acknowledged. Returns the new datagram size in
    /// bytes if it changes.
    fn on_packet_acked(&mut self, number: u64, packet: &SentPacket) -> Option<u16>;

    /// Called when a packet was declared lost. Returns whether a black hole was detected, so that
    /// datagrams must be smaller.
    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket<'_>) -> bool;

    /// Datagram size, in bytes.
    fn datagram_size(&self) -> u16;

    /// Called when a packet declared lost was acknowledged.
    fn on_spuriously_lost(&mut self, now: Instant, packet: &SpuriouslyLost);

    /// Called when an ACK frame with the largest packet number so far carried `counts`, and newly
    /// acknowledged `marked` packets sent with ECT. Returns the reported marks.
    fn on_ecn_counts(&mut self, marked: u64, counts: Option<EcnCounts>) -> ReportedMarks;

    /// Called when a frame was acknowledged.
    fn on_token_acked(&mut self, token: &T);

    /// Called when the packet of a frame was declared lost: the frame's content is due again.
    fn on_token_lost(&mut self, token: &T);

    /// Called when the content of a frame is due again, although its packet is not declared lost.
    fn on_token_due(&mut self, token: &T);

    /// Called after the congestion controller has handled an event.
    fn on_congestion(
        &mut self,
        now: Instant,
        event: &CongestionEvent,
        controller: &mut dyn Controller,
    );

    /// Whether the acknowledgment of a packet sent at `sent_at` shows that the path works.
    fn proves_path(&self, sent_at: Instant) -> bool;
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostPacket<'a> {
    pub(crate) space: SpaceId,
    pub(crate) number: u64,
    pub(crate) packet: &'a SentPacket,
    /// The threshold that was exceeded.
    pub(crate) cause: Cause,
    /// Largest packet number sent in the space.
    pub(crate) largest_sent: u64,
}

/// A packet that was acknowledged after it had been declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpuriouslyLost {
    pub(crate) space: SpaceId,
    pub(crate) number: u64,
    /// Largest acknowledged packet number before, minus that of the packet.
    pub(crate) reordering: u64,
    /// Time from its transmission to its acknowledgment.
    pub(crate) elapsed: Duration,
}

/// Marks that an ACK frame reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedMarks {
    /// Number of packets newly reported as Congestion Experienced.
    pub(crate) new_ce: u64,
    /// Whether packets are sent with ECT(1).
    pub(crate) l4s: bool,
}

/// An event of the congestion controller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CongestionEvent {
    /// Packets were marked Congestion Experienced (CE).
    Ce(Option<Reaction>),
    /// Packets were lost.
    Lost(LossSample, Option<Reaction>),
    /// Packets in this space were acknowledged.
    Acked(SpaceId, AckSample, Option<Reaction>),
}

/// The reaction of the controller to a new congestion event, or to a round-trip time that ended slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reaction {
    /// Whether congestion is persistent (RFC 9002, section 7.6).
    pub(crate) persistent: bool,
    /// Window before, in bytes.
    pub(crate) before: u64,
    /// Window afterwards, in bytes.
    pub(crate) after: u64,
}
