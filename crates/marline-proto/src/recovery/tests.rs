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

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use marline_wire::frame::{Ack, EcnCounts, Frame, Frames};

use super::*;
use crate::config::TransportConfig;
use crate::congestion::{Algorithm, Controller, ControllerConfig, ControllerFactory, Pacer};
use crate::congestion::{CongestionEvent, Reaction};
use crate::level::SpaceId;
use crate::paths::Tuple;
use crate::spaces::{BadAck, Sent};
use crate::time::Instant;
use crate::tuple::{EcnLedger, FourTuple, MtuDiscovery};

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

/// The results of recovery, in order.
#[derive(Debug, Default)]
struct Seen {
    /// Tokens of acknowledged frames, and of those that are due again.
    acked: Vec<u64>,
    due_again: Vec<u64>,
    /// Numbers of lost packets, and of spuriously lost ones.
    lost: Vec<u64>,
    spurious: Vec<u64>,
    events: Vec<CongestionEvent>,
}

impl Seen {
    fn add(&mut self, resolved: &mut Resolved<u64>) {
        self.lost
            .extend(resolved.lost.iter().map(|lost| lost.number));
        let spurious = resolved.spuriously_lost.iter();
        self.spurious.extend(spurious.map(|lost| lost.number));
        self.events.append(&mut resolved.events);
        for token in resolved.tokens.drain(..) {
            match token {
                ResolvedToken::Acked(token) => self.acked.push(token),
                ResolvedToken::Lost(token) | ResolvedToken::Due(token) => {
                    self.due_again.push(token);
                }
            }
        }
        resolved.clear();
    }
}

/// An active 4-tuple that is the `generation`th of its path.
fn tuple(generation: u32) -> Tuple {
    let address = SocketAddr::from(([192, 0, 2, 1], 443));
    let addresses = FourTuple {
        local: address,
        remote: address,
    };
    Tuple::new(&TransportConfig::default(), generation, addresses)
}

/// The recovery of a path whose handshake is confirmed, with three spaces.
struct Bench {
    recovery: Recovery,
    spaces: [Sent<u64>; 3],
    tuple: Tuple,
    ledgers: [EcnLedger; 3],
    resolved: Resolved<u64>,
    seen: Seen,
    /// Packets that the peer has reported as CE-marked.
    reported_ce: u64,
    /// Send time from which on an acknowledged packet shows that the path works.
    proven_from: Option<Instant>,
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
            tuple: tuple(0),
            ledgers: [EcnLedger::new(); 3],
            resolved: Resolved::default(),
            seen: Seen::default(),
            reported_ce: 0,
            proven_from: None,
            confirmed: true,
            validated: true,
        }
    }

    /// A path with round-trip times of `rtt`, measured with one packet that was sent at 0 and acknowledged.
    fn with_rtt(rtt: u64) -> Self {
        let mut bench = Self::new();
        bench.send(at(0));
        bench.ack(at(rtt), 0..=0);
        bench.seen.acked.clear();
        bench.seen.events.clear();
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
        // The peer may report any of them as marked.
        let ledger = &mut self.ledgers[outgoing.space as usize];
        self.tuple.ecn.on_sent(ledger, now, INITIAL_RTT);
        number
    }

    /// The path has another active 4-tuple.
    fn move_to(&mut self, generation: u32) {
        self.tuple = tuple(generation);
    }

    /// The peer's ECN counts, which report `new_ce` more packets as CE-marked.
    fn marked(&mut self, new_ce: u64) -> Option<EcnCounts> {
        self.reported_ce += new_ce;
        Some(EcnCounts {
            ect0: 0,
            ect1: 0,
            ce: self.reported_ce,
        })
    }

    /// Probes for datagrams of `size` bytes; the probe is acknowledged 50 ms later.
    fn raise_mtu(&mut self, now: u64, size: u16) {
        self.tuple.mtu = MtuDiscovery::new(size);
        assert_eq!(self.tuple.mtu.poll_probe(at(now)), Some(size));
        let probe = OutgoingPacket {
            mtu_probe: true,
            size,
            ..outgoing(SpaceId::Data)
        };
        let number = self.send_as(at(now), probe);
        self.tuple.mtu.on_probe_sent(number);
        self.ack(at(now + 50), number..=number);
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
            proven_from: self.proven_from,
        };
        let sent = &mut self.spaces[space as usize];
        let mut path = PathParts {
            tuple: self.tuple.generation,
            mtu: &mut self.tuple.mtu,
            ecn: &mut self.tuple.ecn,
            ledger: &mut self.ledgers[space as usize],
            careful_resume: None,
        };
        let resolved = &mut self.resolved;
        let outcome = self
            .recovery
            .on_ack_received(now, &received, sent, &mut path, resolved);
        self.seen.add(resolved);
        outcome
    }

    fn detect(&mut self, now: Instant) {
        const SPACE: SpaceId = SpaceId::Data;
        let sent = &mut self.spaces[SPACE as usize];
        let mut path = PathParts {
            tuple: self.tuple.generation,
            mtu: &mut self.tuple.mtu,
            ecn: &mut self.tuple.ecn,
            ledger: &mut self.ledgers[SPACE as usize],
            careful_resume: None,
        };
        let resolved = &mut self.resolved;
        self.recovery
            .detect_lost(now, SPACE, MAX_ACK_DELAY, sent, &mut path, resolved);
        self.seen.add(resolved);
    }

    /// Makes the probes of `space` due after a probe timeout of `expired`.
    fn probe(&mut self, expired: SpaceId, space: SpaceId) {
        let sent = &self.spaces[space as usize];
        self.recovery
            .probe(expired, space, sent, &mut self.resolved);
        self.seen.add(&mut self.resolved);
    }

    /// Handles a Retry packet.
    fn retry(&mut self) {
        let sent = &mut self.spaces[SpaceId::Initial as usize];
        self.recovery.on_retry(sent, &mut self.resolved);
        self.seen.add(&mut self.resolved);
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
        self.seen.events.iter().filter_map(loss).collect()
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
