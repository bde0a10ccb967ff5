//! What recovery reports while it works, to those who own what it does not.

use std::time::Duration;

use marline_wire::frame::EcnCounts;

use crate::congestion::Controller;
use crate::level::SpaceId;
use crate::recovery::loss::Cause;
use crate::samples::{AckSample, LossSample};
use crate::spaces::SentPacket;
use crate::time::Instant;

/// The path whose packets recovery follows: its 4-tuple, the modules that wrote the frames (by tokens of
/// type `T`), and whoever follows its congestion controller.
pub(crate) trait Context<T> {
    /// The generation of the 4-tuple in use. Packets sent to another one say nothing about it, unless a NAT rebinding
    /// led from that to this (RFC 9000, section 9.4).
    fn active_tuple(&self) -> u32;

    /// A packet was acknowledged for the first time, on whatever 4-tuple. For reports only.
    fn on_newly_acked(&mut self, number: u64);

    /// All packets in `space` that an ACK frame newly acknowledged have been named by
    /// [`on_newly_acked`](Self::on_newly_acked).
    fn on_ack_processed(&mut self, now: Instant, space: SpaceId);

    /// A packet on the 4-tuple in use was acknowledged. Returns the new datagram size in bytes if that
    /// changes it.
    fn on_packet_acked(&mut self, number: u64, packet: &SentPacket) -> Option<u16>;

    /// A packet was declared lost. Returns whether that shows that only large packets get lost, so that
    /// datagrams must be smaller.
    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket<'_>) -> bool;

    /// Size of a full datagram, in bytes.
    fn datagram_size(&self) -> u16;

    /// A packet that had been declared lost was acknowledged.
    fn on_spuriously_lost(&mut self, now: Instant, packet: &SpuriouslyLost);

    /// An ACK frame with the largest packet number so far carried `counts`, and acknowledged `marked`
    /// packets that were sent with ECT. Returns what that says.
    fn on_ecn_counts(&mut self, marked: u64, counts: Option<EcnCounts>) -> ReportedMarks;

    /// What a frame carried has arrived.
    fn on_token_acked(&mut self, token: &T);

    /// A frame of a packet that was declared lost: what it carried is due again.
    fn on_token_lost(&mut self, token: &T);

    /// What a frame carried is due again, though its packet is not declared lost.
    fn on_token_due(&mut self, token: &T);

    /// The congestion controller was notified of an event and has reacted.
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
    /// The threshold that it crossed.
    pub(crate) cause: Cause,
    /// The newest packet number of the space.
    pub(crate) largest_sent: u64,
}

/// A packet that was acknowledged after it had been declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpuriouslyLost {
    pub(crate) space: SpaceId,
    pub(crate) number: u64,
    /// Largest acknowledged packet number before, minus its own.
    pub(crate) reordering: u64,
    /// Time from sending it to its acknowledgment.
    pub(crate) elapsed: Duration,
}

/// Marks that an ACK frame reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedMarks {
    /// Packets newly reported as marked Congestion Experienced.
    pub(crate) new_ce: u64,
    /// Whether packets are sent with ECT(1).
    pub(crate) l4s: bool,
}

/// An event of which the congestion controller was notified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CongestionEvent {
    /// Packets were marked Congestion Experienced.
    Ce(Option<Reaction>),
    /// Packets were lost.
    Lost(LossSample, Option<Reaction>),
    /// Packets in this space were acknowledged.
    Acked(SpaceId, AckSample, Option<Reaction>),
}

/// How the controller reacted to a new congestion event, or to a round-trip time that made it leave slow
/// start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reaction {
    /// Whether congestion is persistent (RFC 9002, section 7.6).
    pub(crate) persistent: bool,
    /// The window before, in bytes.
    pub(crate) before: u64,
    /// The window afterwards, in bytes.
    pub(crate) after: u64,
}
