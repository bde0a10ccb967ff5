//! Handshake retransmission before the probe timeout, and that of the first request (RFC 9002, section 6.2.3): without
//! a round-trip sample that timeout is long, and one lost datagram of the handshake delays everything after it.

use std::time::Duration;

use super::{Connection, plausible_rtt};
use crate::level::SpaceId;
use crate::limits::{
    FINISHED_COPY, FLIGHT_COPIES, MAX_RETRANSMISSIONS, REQUEST_COPY, REQUEST_PACKETS,
};
use crate::paths::Slot;
use crate::recovery::GRANULARITY;
use crate::time::Instant;

/// Divisor of the round-trip time: allowed delay of the rest of a flight after a part of it arrived.
const LATE: u32 = 4;

/// Schedule of handshake retransmissions before the probe timeout.
#[derive(Debug, Default)]
pub(super) struct HandshakeRetransmission {
    /// Client: further copies of the first flight until the server answers.
    copies: Option<FlightCopies>,
    hello: HelloRepeat,
    repeat: Option<Repeat>,
    repeats: u8,
    finished: FinishedCopy,
    request: FirstRequest,
}

/// Further copies of a client's first flight, at intervals that double like probe timeouts.
#[derive(Clone, Copy, Debug)]
struct FlightCopies {
    next_at: Instant,
    /// Interval before the next copy.
    pause: Duration,
    /// Number of remaining copies.
    left: u8,
}

/// One more retransmission of a client's first flight, caused by packets that need the ServerHello. Anyone may send
/// such packets, so it does not count against the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HelloRepeat {
    #[default]
    NotNeeded,
    At(Instant),
    Done,
}

/// A scheduled retransmission, cancelled if the awaited packet arrives.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    at: Instant,
    part: Part,
}

/// The part of a flight to retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// All outstanding packets.
    All,
    /// Packets sent by this time: for later ones an answer cannot be expected yet.
    SentBy(Instant),
}

/// The client's first application data after the handshake, usually a request in one or two packets: no later packet
/// would reveal its loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstRequest {
    #[default]
    NotSent,
    Sent(RequestTimes),
    Over,
}

/// Retransmission times of a first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RequestTimes {
    /// Unconditional copy of a short request, in case the first one is lost.
    copy_at: Option<Instant>,
    /// Retransmission unless it is acknowledged before.
    repeat_at: Instant,
}

/// The second copy of the client's last flight, sent with its first application data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FinishedCopy {
    #[default]
    NotSent,
    Due,
    Done,
}

impl HandshakeRetransmission {
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let request = match self.request {
            FirstRequest::Sent(times) => Some(times.copy_at.unwrap_or(times.repeat_at)),
            FirstRequest::NotSent | FirstRequest::Over => None,
        };
        let hello = match self.hello {
            HelloRepeat::At(at) => Some(at),
            HelloRepeat::NotNeeded | HelloRepeat::Done => None,
        };
        let repeat = self.repeat.map(|repeat| repeat.at);
        let copy = self.copies.map(|copies| copies.next_at);
        [copy, hello, repeat, request].into_iter().flatten().min()
    }

    fn wait_until(&mut self, at: Instant, part: Part) {
        if self.repeats < MAX_RETRANSMISSIONS {
            self.repeat.get_or_insert(Repeat { at, part });
        }
    }
}

impl Connection {
    /// Client: the first flight was sent, or sent anew after a Retry or Version Negotiation packet. The answer is
    /// expected after `known_rtt`.
    pub(super) fn expect_answer(&mut self, now: Instant, known_rtt: Option<Duration>) {
        let known = known_rtt.map(plausible_rtt).map(|rtt| rtt + late(rtt));
        let pause = self.config.first_flight_copy;
        self.handshake_retransmission.copies = pause.map(|pause| {
            let pause = known.unwrap_or(pause);
            FlightCopies {
                next_at: now + pause,
                pause,
                left: FLIGHT_COPIES,
            }
        });
    }

    /// Handles a packet whose keys are missing: if a client's first flight is in flight, the ServerHello is lost
    /// or reordered.
    pub(super) fn on_undecryptable(&mut self, now: Instant) {
        if self.side.is_server()
            || self.keys.handshake.is_some()
            || !self.config.handshake_retransmission
        {
            return;
        }
        if self.handshake_retransmission.hello == HelloRepeat::NotNeeded {
            let round_trip = now - self.progress.began();
            self.handshake_retransmission.hello = HelloRepeat::At(now + late(round_trip));
        }
    }

    /// Called when the peer's hello, or any other answer, has arrived.
    pub(super) fn on_peer_heard(&mut self) {
        self.handshake_retransmission.copies = None;
    }

    /// Called when handshake keys are available.
    pub(super) fn on_hello_complete(&mut self) {
        self.handshake_retransmission.hello = HelloRepeat::Done;
        self.handshake_retransmission.repeat = None;
    }

    /// Handles CRYPTO data that was received before: the answer to it is lost, or still in flight. Data blocked by the
    /// amplification limit is sent first, with the credit of this datagram: repeating the start of the flight would
    /// delay it by a round trip.
    pub(super) fn on_repeated_crypto(&mut self, now: Instant) {
        let is_unsent = [SpaceId::Initial, SpaceId::Handshake]
            .into_iter()
            .any(|id| self.handshake.has_crypto(id));
        if !self.config.handshake_retransmission || is_unsent || !self.has_outstanding_flight() {
            return;
        }
        let rtt = self.paths[Slot::FIRST].recovery.rtt();
        let answered = rtt.smoothed() + late(rtt.smoothed());
        let is_expected = rtt.has_sample()
            && self
                .flight_sent_at()
                .is_some_and(|sent_at| now < sent_at + answered);
        if !is_expected {
            self.handshake_retransmission.wait_until(now, Part::All);
        }
    }

    /// Handles acknowledgments of a flight: those of packets sent with it should follow soon.
    pub(super) fn on_flight_acked(&mut self, now: Instant) {
        if !self.config.handshake_retransmission {
            return;
        }
        if !self.has_outstanding_flight() {
            self.handshake_retransmission.repeat = None;
            return;
        }
        // Packets sent together arrive one after the other on a slow link.
        let rtt = self.paths[Slot::FIRST].recovery.rtt();
        let (at, left_by) = (now + rtt.smoothed() / 2, now - rtt.latest());
        if self.handshake_retransmission.repeats < MAX_RETRANSMISSIONS {
            self.handshake_retransmission.repeat = Some(Repeat {
                at,
                part: Part::SentBy(left_by),
            });
        }
    }

    /// Client: a Handshake packet of `size` bytes was sent.
    pub(super) fn on_handshake_packet_sent(&mut self, size: usize, ack_eliciting: bool) {
        self.handshake_retransmission.finished = match self.handshake_retransmission.finished {
            FinishedCopy::NotSent if ack_eliciting && size <= FINISHED_COPY => FinishedCopy::Due,
            FinishedCopy::NotSent if !ack_eliciting => FinishedCopy::NotSent,
            _ => FinishedCopy::Done,
        };
    }

    /// Whether the next datagram with application data carries the client's last flight again.
    pub(super) fn is_finished_copy_due(&self) -> bool {
        self.handshake_retransmission.finished == FinishedCopy::Due
            && self.config.finished_copy
            && self.side.is_client()
    }

    /// Client: an ack-eliciting 1-RTT packet was sent.
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        if self.handshake_retransmission.request != FirstRequest::NotSent {
            return;
        }
        let rtt = self.paths[Slot::FIRST].recovery.rtt();
        let answered = rtt.smoothed() + late(rtt.smoothed()) + self.peer.max_ack_delay;
        let copied = now + late(rtt.smoothed());
        self.handshake_retransmission.request =
            match self.config.handshake_retransmission && rtt.has_sample() {
                true => FirstRequest::Sent(RequestTimes {
                    copy_at: self.config.request_copy.then_some(copied),
                    repeat_at: now + answered,
                }),
                false => FirstRequest::Over,
            };
    }

    /// Called when packets of application data are acknowledged.
    pub(super) fn on_data_acked(&mut self) {
        let outstanding = self.paths[Slot::FIRST].space.sent.ack_eliciting_in_flight();
        let repeats = 1..=u64::from(REQUEST_PACKETS);
        if self.handshake_retransmission.request != FirstRequest::Over
            && !repeats.contains(&outstanding)
        {
            self.handshake_retransmission.request = FirstRequest::Over;
        }
    }

    pub(super) fn on_early_timeout(&mut self, now: Instant) {
        if let Some(copies) = self.handshake_retransmission.copies
            && copies.next_at <= now
        {
            let pause = copies.pause * 2;
            let further = FlightCopies {
                next_at: now + pause,
                pause,
                left: copies.left - 1,
            };
            self.handshake_retransmission.copies = (further.left > 0).then_some(further);
            self.repeat_flight();
        }
        if let HelloRepeat::At(at) = self.handshake_retransmission.hello
            && at <= now
        {
            self.handshake_retransmission.hello = HelloRepeat::Done;
            self.repeat_flight();
        }
        if let Some(repeat) = self.handshake_retransmission.repeat
            && repeat.at <= now
        {
            self.handshake_retransmission.repeat = None;
            let repeats_any = match repeat.part {
                Part::All => {
                    self.repeat_flight();
                    true
                }
                Part::SentBy(time) => {
                    let initial = self.retransmit_sent_by(Slot::FIRST, SpaceId::Initial, time);
                    self.retransmit_sent_by(Slot::FIRST, SpaceId::Handshake, time) || initial
                }
            };
            self.handshake_retransmission.repeats += u8::from(repeats_any);
        }
        if let FirstRequest::Sent(times) = &mut self.handshake_retransmission.request {
            if times.repeat_at <= now {
                self.handshake_retransmission.request = FirstRequest::Over;
                self.retransmit_oldest(Slot::FIRST, SpaceId::Data, REQUEST_PACKETS.into());
            } else if times.copy_at.take_if(|at| *at <= now).is_some() {
                self.copy_request();
            }
        }
    }

    /// Schedules a copy of the first request, if it is short.
    fn copy_request(&mut self) {
        let sent = &self.paths[Slot::FIRST].space.sent;
        if sent.ack_eliciting_in_flight() > REQUEST_PACKETS.into() {
            return;
        }
        let mut bytes = 0;
        sent.oldest_outstanding(REQUEST_PACKETS.into(), |token| {
            bytes += token.segment().map_or(0, |segment| segment.len);
        });
        if (1..=REQUEST_COPY).contains(&bytes) {
            self.retransmit_oldest(Slot::FIRST, SpaceId::Data, REQUEST_PACKETS.into());
        }
    }

    /// Makes all outstanding handshake data due again, and the oldest packet of 0-RTT data.
    fn repeat_flight(&mut self) {
        self.retransmit_flight(Slot::FIRST, SpaceId::Initial);
        self.retransmit_flight(Slot::FIRST, SpaceId::Handshake);
        if self.keys.zero_rtt.is_some() && self.side.is_client() {
            self.retransmit_oldest(Slot::FIRST, SpaceId::Data, 1);
        }
    }

    fn has_outstanding_flight(&self) -> bool {
        [SpaceId::Initial, SpaceId::Handshake]
            .into_iter()
            .filter_map(|id| self.handshake_spaces.get(id))
            .any(|space| space.sent.has_ack_eliciting_in_flight())
    }

    /// Time at which the last ack-eliciting handshake packet was sent.
    fn flight_sent_at(&self) -> Option<Instant> {
        let recovery = &self.paths[Slot::FIRST].recovery;
        [SpaceId::Initial, SpaceId::Handshake]
            .into_iter()
            .filter_map(|id| recovery.last_ack_eliciting_in(id))
            .max()
    }
}

/// Allowed delay of the rest of a flight after a part of it arrived.
fn late(round_trip: Duration) -> Duration {
    (round_trip / LATE).max(GRANULARITY)
}
