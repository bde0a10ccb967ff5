//! Tests of recovery without a connection: packets are sent, acknowledged and lost explicitly, in virtual
//! time. Each test names the section of RFC 9002 with its rule.

mod acks;
mod budget;
mod congestion;
mod losses;
mod persistent;
mod probes;
mod single_losses;
mod spurious;

use std::ops::RangeInclusive;
use std::time::Duration;

use marline_wire::frame::{Ack, EcnCounts, Frame, Frames};

use super::*;
use crate::congestion::{Algorithm, Controller, ControllerConfig, ControllerFactory, Pacer};
use crate::level::SpaceId;
use crate::recovery::ReportedMarks;
use crate::spaces::{BadAck, Sent, SentPacket};
use crate::time::Instant;

/// Size of every packet, in bytes.
const SIZE: u16 = 1_200;

const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

const INITIAL_RTT: Duration = Duration::from_millis(333);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

/// A path that records the reports of recovery.
#[derive(Debug, Default)]
struct Path {
    tuple: u32,
    /// Tokens of acknowledged frames, and of those that are due again.
    acked: Vec<u64>,
    due_again: Vec<u64>,
    /// Newly acknowledged packet numbers, by ACK frame.
    newly_acked: Vec<Vec<u64>>,
    /// Numbers of lost packets, and of spuriously lost ones.
    lost: Vec<u64>,
    spurious: Vec<u64>,
    /// Packets sent with ECT that were acknowledged by ACK frames with counts.
    marked: u64,
    /// CE marks that the next ACK frame with counts reports as new.
    new_ce: u64,
    /// Results for the next acknowledged, or lost, packet.
    new_size: Option<u16>,
    black_hole: bool,
    size: u16,
    events: Vec<CongestionEvent>,
    proven_from: Instant,
}

impl Context<u64> for Path {
    fn active_tuple(&self) -> u32 {
        self.tuple
    }

    fn datagram_size(&self) -> u16 {
        self.size
    }

    fn on_newly_acked(&mut self, number: u64) {
        match self.newly_acked.last_mut() {
            Some(numbers) => numbers.push(number),
            None => self.newly_acked.push(vec![number]),
        }
    }

    fn on_ack_processed(&mut self, _now: Instant, _space: SpaceId) {
        self.newly_acked.push(Vec::new());
    }

    fn on_packet_acked(&mut self, _number: u64, _packet: &SentPacket) -> Option<u16> {
        self.new_size.take()
    }

    fn on_packet_lost(&mut self, _now: Instant, lost: &LostPacket<'_>) -> bool {
        self.lost.push(lost.number);
        std::mem::take(&mut self.black_hole)
    }

    fn on_spuriously_lost(&mut self, _now: Instant, lost: &SpuriouslyLost) {
        self.spurious.push(lost.number);
    }

    fn on_ecn_counts(&mut self, marked: u64, counts: Option<EcnCounts>) -> ReportedMarks {
        self.marked += marked;
        ReportedMarks {
            new_ce: match counts {
                Some(_) => std::mem::take(&mut self.new_ce),
                None => 0,
            },
            l4s: false,
        }
    }

    fn on_token_acked(&mut self, token: &u64) {
        self.acked.push(*token);
    }

    fn on_token_lost(&mut self, token: &u64) {
        self.due_again.push(*token);
    }

    fn on_token_due(&mut self, token: &u64) {
        self.due_again.push(*token);
    }

    fn on_congestion(&mut self, _now: Instant, event: &CongestionEvent, _: &mut dyn Controller) {
        self.events.push(*event);
    }

    fn proves_path(&self, sent_at: Instant) -> bool {
        sent_at >= self.proven_from
    }
}

/// The recovery of a path whose handshake is confirmed, with three spaces.
struct Bench {
    recovery: Recovery,
    spaces: [Sent<u64>; 3],
    path: Path,
    confirmed: bool,
    /// Whether the peer has shown that it has validated our address.
    validated: bool,
}

impl Bench {
    /// A path with NewReno, without pacing.
    fn new() -> Self {
        Self::with(Algorithm::NewReno, None)
    }

    fn with(algorithm: Algorithm, pacer: Option<Pacer>) -> Self {
        let controller = algorithm.build(ControllerConfig::new(SIZE.into()));
        Self::with_controller(controller, pacer)
    }

    fn with_controller(controller: Box<dyn Controller>, pacer: Option<Pacer>) -> Self {
        Self {
            recovery: Recovery::new(Self::config_of(controller, pacer)),
            spaces: [Sent::new(), Sent::new(), Sent::new()],
            path: Path {
                size: SIZE,
                ..Path::default()
            },
            confirmed: true,
            validated: true,
        }
    }

    /// A path with round-trip times of `rtt`, measured with one packet that was sent at 0 and acknowledged.
    fn with_rtt(rtt: u64) -> Self {
        let mut bench = Self::new();
        bench.send(at(0));
        bench.ack(at(rtt), 0..=0);
        bench.path.acked.clear();
        bench.path.events.clear();
        bench
    }

    /// Sends an ack-eliciting packet with a token equal to its number; returns the number.
    fn send(&mut self, now: Instant) -> u64 {
        self.send_as(now, outgoing(SpaceId::Data))
    }

    fn send_many(&mut self, now: Instant, count: u64) {
        for _ in 0..count {
            self.send(now);
        }
    }

    fn send_as(&mut self, now: Instant, outgoing: OutgoingPacket) -> u64 {
        let sent = &mut self.spaces[outgoing.space as usize];
        let number = sent.next_number();
        sent.push_token(number);
        self.recovery.on_sent(now, &outgoing, sent);
        number
    }

    /// Sends an ACK-only packet.
    fn send_ack_only(&mut self, now: Instant) -> u64 {
        self.send_as(
            now,
            OutgoingPacket {
                ack_eliciting: false,
                in_flight: false,
                ..outgoing(SpaceId::Data)
            },
        )
    }

    fn ack(&mut self, now: Instant, range: RangeInclusive<u64>) -> Option<Outcome> {
        self.ack_in(now, SpaceId::Data, range)
    }

    fn ack_in(
        &mut self,
        now: Instant,
        space: SpaceId,
        range: RangeInclusive<u64>,
    ) -> Option<Outcome> {
        self.try_ack(now, space, range, Duration::ZERO, None)
            .expect("the packets were sent")
    }

    fn try_ack(
        &mut self,
        now: Instant,
        space: SpaceId,
        range: RangeInclusive<u64>,
        ack_delay: Duration,
        ecn: Option<EcnCounts>,
    ) -> Result<Option<Outcome>, BadAck> {
        self.try_ack_ranges(now, space, &[range], ack_delay, ecn)
    }

    /// Acknowledges several ranges, the largest first.
    fn try_ack_ranges(
        &mut self,
        now: Instant,
        space: SpaceId,
        ranges: &[RangeInclusive<u64>],
        ack_delay: Duration,
        ecn: Option<EcnCounts>,
    ) -> Result<Option<Outcome>, BadAck> {
        let mut bytes = Vec::new();
        Ack::encode(ranges.iter().cloned(), 0, ecn, &mut bytes);
        let Some(Ok(Frame::Ack(frame))) = Frames::new(&bytes).next() else {
            panic!("an ACK frame was written");
        };
        let received = AckReceived {
            space,
            frame: &frame,
            ack_delay,
            max_ack_delay: MAX_ACK_DELAY,
            handshake_confirmed: self.confirmed,
            peer_validated_address: self.validated,
        };
        let sent = &mut self.spaces[space as usize];
        self.recovery
            .on_ack_received(now, &received, sent, &mut self.path)
    }

    fn detect(&mut self, now: Instant) {
        let sent = &mut self.spaces[SpaceId::Data as usize];
        self.recovery
            .detect_lost(now, SpaceId::Data, MAX_ACK_DELAY, sent, &mut self.path);
    }

    fn conditions(&self) -> ProbeConditions {
        let eliciting = |space: &Sent<u64>| space.has_ack_eliciting_in_flight();
        ProbeConditions {
            eliciting: self.spaces.each_ref().map(eliciting),
            probes_data: self.confirmed,
            unblocks: (!self.validated).then_some(SpaceId::Handshake),
            max_ack_delay: MAX_ACK_DELAY,
            probe_interval: None,
            longest_pause: None,
        }
    }

    /// The expiry of the loss detection timer, when set at `now`.
    fn timer(&mut self, now: Instant) -> Option<Instant> {
        let conditions = self.conditions();
        self.timer_under(now, &conditions)
    }

    fn timer_under(&mut self, now: Instant, conditions: &ProbeConditions) -> Option<Instant> {
        self.recovery.set_timer(now, Some(conditions));
        self.recovery.next_timeout()
    }

    /// Expires the timer at `now`.
    fn fire(&mut self, now: Instant) -> Option<Expired> {
        let conditions = self.conditions();
        self.recovery.on_timeout(now, Some(&conditions))
    }

    fn window(&self) -> u64 {
        self.recovery.controller().window()
    }

    /// The configuration used by [`Self::new`].
    fn config() -> RecoveryConfig {
        Self::config_of(
            Algorithm::NewReno.build(ControllerConfig::new(SIZE.into())),
            None,
        )
    }

    fn config_of(controller: Box<dyn Controller>, pacer: Option<Pacer>) -> RecoveryConfig {
        let window = controller.window();
        RecoveryConfig {
            two_probes: true,
            initial_rtt: INITIAL_RTT,
            controller,
            detector: Box::new(loss::Fixed::rfc9002()),
            pacer,
            initial_window: InitialWindowChoice {
                bytes: window,
                default: window,
            },
        }
    }

    /// The loss samples passed to the controller.
    fn losses(&self) -> Vec<crate::samples::LossSample> {
        let loss = |event: &CongestionEvent| match event {
            CongestionEvent::Lost(sample, _) => Some(*sample),
            _ => None,
        };
        self.path.events.iter().filter_map(loss).collect()
    }
}

/// An ack-eliciting packet of application data on a 4-tuple.
fn on_tuple(tuple: u32) -> OutgoingPacket {
    OutgoingPacket {
        tuple,
        ..outgoing(SpaceId::Data)
    }
}

/// An ack-eliciting packet.
fn outgoing(space: SpaceId) -> OutgoingPacket {
    OutgoingPacket {
        space,
        size: SIZE,
        ack_eliciting: true,
        in_flight: true,
        ecn: false,
        mtu_probe: false,
        tuple: 0,
    }
}
