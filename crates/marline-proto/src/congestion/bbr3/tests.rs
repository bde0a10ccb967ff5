//! By sections of the draft, over a bottleneck with a drop-tail queue, random losses, and one ACK per packet.

mod bounds;
mod coordinator;
mod cross_traffic;
mod fast_reprobe;
mod idle;
mod jitter;
mod links;
mod model;
mod probe_bw;
mod probe_rtt;
mod random_loss;
mod seed;
mod startup;
mod wireless;

use std::collections::VecDeque;

use rand::RngExt;

use super::*;
use crate::congestion::DeliveryRate;
use crate::samples::RateSnapshot;

const MTU: u64 = 1200;
const RTT: Duration = Duration::from_millis(40);
const MS: Duration = Duration::from_millis(1);
/// 20 Mbit/s.
const RATE: u64 = 2_500_000;
/// The bandwidth-delay product, in bytes.
const PRODUCT: u64 = 100_000;

const DOWN: State = State::ProbeBw(ProbeBwPhase::Down);
const CRUISE: State = State::ProbeBw(ProbeBwPhase::Cruise);
const REFILL: State = State::ProbeBw(ProbeBwPhase::Refill);
const UP: State = State::ProbeBw(ProbeBwPhase::Up);

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(millis)
}

/// Marks of packets with ECT(0).
fn mark(new_ce: u64) -> CeSample {
    CeSample {
        sent_at: at(0),
        new_ce,
        l4s: false,
        largest_sent: 0,
    }
}

fn bbr3() -> Bbr3 {
    Bbr3::new(&ControllerConfig::new(MTU))
}

struct Packet {
    number: u64,
    sent_at: Instant,
    /// When its acknowledgment arrives; `None` if it is lost.
    acked_at: Option<Instant>,
    rate: RateSnapshot,
}

/// A sender that always has data, unless it is `paused` or has a rate of its own, and its path.
struct Bench {
    bbr: Bbr3,
    sampler: DeliveryRate,
    /// Rate of the bottleneck, in bytes per second.
    rate: u64,
    /// Round-trip time of the empty path.
    rtt: Duration,
    /// Capacity of the bottleneck's queue, in bytes.
    buffer: u64,
    /// The random loss rate.
    loss: f64,
    /// Bytes per second that the application writes.
    application: Option<u64>,
    paused: bool,
    rng: Pcg32,
    now: Instant,
    in_flight: VecDeque<Packet>,
    next_number: u64,
    free_at: Instant,
    next_send: Instant,
    smoothed: Duration,
    delivered: u64,
    lost: u64,
    states: Vec<State>,
}

impl Bench {
    fn new() -> Self {
        Self::with(RATE, u64::MAX)
    }

    fn with(rate: u64, buffer: u64) -> Self {
        Self {
            bbr: bbr3(),
            sampler: DeliveryRate::new(),
            rate,
            rtt: RTT,
            buffer,
            loss: 0.0,
            application: None,
            paused: false,
            rng: Pcg32::seed_from_u64(7),
            now: Instant::EPOCH,
            in_flight: VecDeque::new(),
            next_number: 0,
            free_at: Instant::EPOCH,
            next_send: Instant::EPOCH,
            smoothed: RTT,
            delivered: 0,
            lost: 0,
            states: vec![State::Startup],
        }
    }

    fn bytes_in_flight(&self) -> u64 {
        self.in_flight.len() as u64 * MTU
    }

    fn rtt_view(&self, latest: Duration) -> RttView {
        RttView {
            latest,
            adjusted: latest,
            smoothed: self.smoothed,
            min: self.rtt,
            variance: Duration::ZERO,
        }
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.run_while(|bench| bench.now < end);
        self.now = self.now.max(end);
    }

    /// Runs until the state is `state`, at most 20 seconds.
    fn until(&mut self, state: State) {
        let end = self.now + Duration::from_secs(20);
        self.run_while(|bench| bench.bbr.state != state && bench.now < end);
        assert_eq!(self.bbr.state, state, "{:?}", self.states);
    }

    fn run_while(&mut self, goes_on: impl Fn(&Self) -> bool) {
        while goes_on(self) {
            let window_is_open = self.bytes_in_flight() + MTU <= self.bbr.window();
            let acked_at = self.in_flight.iter().find_map(|packet| packet.acked_at);
            let sends_first = acked_at.is_none_or(|at| self.next_send.max(self.now) <= at);
            if window_is_open && !self.paused && sends_first {
                self.now = self.now.max(self.next_send);
                self.send();
            } else if let Some(at) = acked_at {
                self.now = self.now.max(at);
                self.acknowledge();
            } else {
                self.now += self.rtt;
                self.lose_before(u64::MAX);
            }
            if self.states.last() != Some(&self.bbr.state) {
                self.states.push(self.bbr.state);
            }
        }
    }

    fn is_app_limited(&self) -> bool {
        self.paused || self.application.is_some()
    }

    fn send(&mut self) {
        let before = self.bytes_in_flight();
        if before == 0 && self.next_number > 0 {
            self.bbr.on_idle(self.now, self.rtt);
        }
        if self.is_app_limited() {
            self.sampler.on_app_limited(before);
        }
        let rate = self.sampler.on_sent(self.now, before, MTU);
        let waiting = (self.free_at - self.now).as_secs_f64() * self.rate as f64;
        let is_dropped =
            waiting as u64 > self.buffer || self.loss > 0.0 && self.rng.random_bool(self.loss);
        let acked_at = (!is_dropped).then(|| {
            let transmission = Duration::from_nanos(MTU * 1_000_000_000 / self.rate);
            self.free_at = self.free_at.max(self.now) + transmission;
            self.free_at + self.rtt
        });
        self.in_flight.push_back(Packet {
            number: self.next_number,
            sent_at: self.now,
            acked_at,
            rate,
        });
        self.bbr.on_sent(
            self.now,
            &SentSample {
                packet_number: self.next_number,
                bytes: MTU,
                bytes_in_flight: before + MTU,
                app_limited: self.is_app_limited(),
            },
        );
        self.next_number += 1;
        let pacing = self.bbr.pacing_rate(&self.rtt_view(self.smoothed));
        let pace = self.application.unwrap_or(pacing).min(pacing);
        self.next_send = self.now + Duration::from_nanos(MTU * 1_000_000_000 / pace);
    }

    fn acknowledge(&mut self) {
        let acked = |packet: &Packet| packet.acked_at.is_some();
        let place = self.in_flight.iter().position(acked);
        let packet = place.and_then(|place| self.in_flight.remove(place));
        let packet = packet.expect("one is acknowledged");
        self.delivered += MTU;
        self.smoothed = self.now - packet.sent_at;
        self.sampler
            .on_packet_acked(self.now, &packet.rate, packet.sent_at, MTU);
        let prior_in_flight = self.bytes_in_flight() + MTU;
        self.lose_before(packet.number.saturating_sub(2));
        let rate = self.sampler.finish(self.rtt);
        let ack = AckSample {
            bytes: MTU,
            bytes_in_flight: self.bytes_in_flight(),
            prior_in_flight,
            largest_acked: packet.number,
            largest_sent: self.next_number - 1,
            largest_acked_sent_at: packet.sent_at,
            rtt: self.rtt_view(self.smoothed),
            rtt_updated: true,
            rate,
            app_limited: self.is_app_limited(),
        };
        self.bbr.on_ack(self.now, &ack);
    }

    /// Declares packets below `number` lost.
    fn lose_before(&mut self, number: u64) {
        let mut newest = None;
        while self
            .in_flight
            .front()
            .is_some_and(|packet| packet.number < number && packet.acked_at.is_none())
        {
            let packet = self.in_flight.pop_front().expect("it was just there");
            self.lost += MTU;
            let lost =
                self.sampler
                    .on_packet_lost(packet.number, &packet.rate, packet.sent_at, MTU);
            self.bbr.on_packet_lost(self.now, &lost);
            newest = Some(packet);
        }
        let Some(newest) = newest else { return };
        let loss = LossSample {
            bytes: MTU,
            packets: 1,
            largest_lost: newest.number,
            latest_sent_at: newest.sent_at,
            largest_sent: self.next_number - 1,
            bytes_in_flight: self.bytes_in_flight(),
            persistent: false,
        };
        self.bbr.on_loss(self.now, &loss);
    }

    /// The delivery rate over `duration`, as a part of the bottleneck's rate.
    fn utilization(&mut self, duration: Duration) -> f64 {
        let before = self.delivered;
        self.run(duration);
        (self.delivered - before) as f64 / duration.as_secs_f64() / self.rate as f64
    }

    /// The part of the packets sent in `duration` that is lost.
    fn loss_rate(&mut self, duration: Duration) -> f64 {
        let (lost, delivered) = (self.lost, self.delivered);
        self.run(duration);
        let lost = (self.lost - lost) as f64;
        lost / (lost + (self.delivered - delivered) as f64)
    }
}

/// A sample of the round-trip time of a path of [`RTT`].
fn sampled(rtt: Duration) -> RttView {
    RttView {
        latest: rtt,
        adjusted: rtt,
        smoothed: RTT,
        min: RTT,
        variance: Duration::ZERO,
    }
}

/// An ACK of one packet without a delivery sample.
fn acked(bytes_in_flight: u64) -> AckSample {
    AckSample {
        bytes: MTU,
        bytes_in_flight,
        prior_in_flight: bytes_in_flight + MTU,
        largest_acked: 0,
        largest_sent: 0,
        largest_acked_sent_at: at(0),
        rtt: sampled(RTT),
        rtt_updated: true,
        rate: None,
        app_limited: false,
    }
}

/// A sample of `rate` bytes per second, of a packet sent when `prior` bytes were delivered.
fn rated(rate: u64, prior: u64) -> RateSample {
    RateSample {
        delivered: rate / 25,
        interval: RTT,
        prior_delivered: prior,
        delivered_total: prior + rate / 25,
        in_flight_at_send: rate / 25,
        lost: 0,
        app_limited: false,
    }
}

/// A model of 2.5 MB/s and 40 ms: a product of 100 kB.
fn modelled() -> Bbr3 {
    let mut bbr = bbr3();
    bbr.set_bandwidth(RATE);
    bbr.min_rtt.update(at(0), Some(RTT));
    bbr
}

/// A lost packet; `lost` bytes are lost of the `in_flight` when it was sent.
fn lost_packet(packet_number: u64, lost: u64, in_flight: u64) -> PacketLoss {
    PacketLoss {
        packet_number,
        bytes: MTU,
        sent_at: at(5),
        in_flight_at_send: in_flight,
        lost,
        delivered_total: 0,
        app_limited: false,
    }
}

fn persistent_loss(sent_at: Instant) -> LossSample {
    LossSample {
        bytes: MTU,
        packets: 1,
        largest_lost: 0,
        latest_sent_at: sent_at,
        largest_sent: 0,
        bytes_in_flight: 0,
        persistent: true,
    }
}
