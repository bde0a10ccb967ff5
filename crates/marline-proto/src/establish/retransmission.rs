//! Handshake retransmission before the probe timeout, and that of the first request (RFC 9002, section 6.2.3): without
//! a round-trip sample that timeout is long, and one lost datagram of the handshake delays everything after it.

use std::time::Duration;

use super::Establishment;
use super::start::plausible_rtt;
use crate::level::SpaceId;
use crate::limits::{FINISHED_COPY, FLIGHT_COPIES, MAX_RETRANSMISSIONS, REQUEST_PACKETS};
use crate::recovery::{GRANULARITY, Recovery, RttEstimator};
use crate::time::Instant;

/// Divisor of the round-trip time: allowed delay of the rest of a flight after a part of it arrived.
const LATE: u32 = 4;

/// Schedule of handshake retransmissions before the probe timeout.
#[derive(Debug, Default)]
pub(super) struct Retransmission {
    /// Client: further copies of the first flight until the server answers.
    copies: Option<FlightCopies>,
    hello: HelloRepeat,
    repeat: Option<Repeating>,
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
struct Repeating {
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

impl Retransmission {
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
            self.repeat.get_or_insert(Repeating { at, part });
        }
    }

    /// Called when the peer's hello, or any other answer, has arrived.
    pub(super) fn on_peer_heard(&mut self) {
        self.copies = None;
    }

    /// Called when handshake keys are available.
    pub(super) fn on_hello_complete(&mut self) {
        self.hello = HelloRepeat::Done;
        self.repeat = None;
    }
}

/// Content of the first path that is due again at once, although no probe timeout has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// All outstanding handshake data, and the oldest packet of 0-RTT data.
    Flight,
    /// Handshake data sent by this time. [`Establishment::on_flight_repeated`] is to be called if there is any.
    FlightSentBy(Instant),
    /// The first request.
    Request,
    /// A copy of the first request, if it is short.
    RequestIfShort,
}

impl Establishment {
    /// Client: the first flight was sent, or sent anew after a Retry or Version Negotiation packet. The answer is
    /// expected after `known_rtt`.
    pub(crate) fn expect_answer(&mut self, now: Instant, known_rtt: Option<Duration>) {
        let known = known_rtt.map(plausible_rtt).map(|rtt| rtt + late(rtt));
        let pause = self.config.first_flight_copy;
        self.retransmission.copies = pause.map(|pause| {
            let pause = known.unwrap_or(pause);
            FlightCopies {
                next_at: now + pause,
                pause,
                left: FLIGHT_COPIES,
            }
        });
    }

    /// As [`Self::expect_answer`], after the time that the answer to the former flight took.
    pub(crate) fn expect_answer_anew(&mut self, now: Instant) {
        self.expect_answer(now, Some(now - self.progress.began()));
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
        if self.retransmission.hello == HelloRepeat::NotNeeded {
            let round_trip = now - self.progress.began();
            self.retransmission.hello = HelloRepeat::At(now + late(round_trip));
        }
    }

    /// Handles CRYPTO data that was received before: the answer to it is lost, or still in flight. Data blocked by the
    /// amplification limit is sent first, with the credit of this datagram: repeating the start of the flight would
    /// delay it by a round trip.
    pub(super) fn on_repeated_crypto(&mut self, now: Instant, recovery: &Recovery) {
        let handshake = [SpaceId::Initial, SpaceId::Handshake];
        let is_unsent = handshake.into_iter().any(|id| self.tls.has_crypto(id));
        if !self.config.handshake_retransmission || is_unsent || !self.has_outstanding_flight() {
            return;
        }
        let rtt = recovery.rtt();
        let answered = rtt.smoothed() + late(rtt.smoothed());
        let sent_at = handshake
            .into_iter()
            .filter_map(|id| recovery.last_ack_eliciting_in(id))
            .max();
        let is_expected =
            rtt.has_sample() && sent_at.is_some_and(|sent_at| now < sent_at + answered);
        if !is_expected {
            self.retransmission.wait_until(now, Part::All);
        }
    }

    /// Handles acknowledgments of a flight: those of packets sent with it should follow soon.
    pub(crate) fn on_flight_acked(&mut self, now: Instant, rtt: &RttEstimator) {
        if !self.config.handshake_retransmission {
            return;
        }
        if !self.has_outstanding_flight() {
            self.retransmission.repeat = None;
            return;
        }
        // Packets sent together arrive one after the other on a slow link.
        let (at, left_by) = (now + rtt.smoothed() / 2, now - rtt.latest());
        if self.retransmission.repeats < MAX_RETRANSMISSIONS {
            self.retransmission.repeat = Some(Repeating {
                at,
                part: Part::SentBy(left_by),
            });
        }
    }

    /// Client: a Handshake packet of `size` bytes was sent.
    pub(crate) fn on_handshake_packet_sent(&mut self, size: usize, ack_eliciting: bool) {
        self.retransmission.finished = match self.retransmission.finished {
            FinishedCopy::NotSent if ack_eliciting && size <= FINISHED_COPY => FinishedCopy::Due,
            FinishedCopy::NotSent if !ack_eliciting => FinishedCopy::NotSent,
            _ => FinishedCopy::Done,
        };
    }

    /// Whether the next datagram with application data carries the client's last flight again.
    pub(crate) fn is_finished_copy_due(&self) -> bool {
        self.retransmission.finished == FinishedCopy::Due
            && self.config.finished_copy
            && self.side.is_client()
    }

    /// Client: an ack-eliciting 1-RTT packet was sent.
    pub(crate) fn on_data_sent(&mut self, now: Instant, rtt: &RttEstimator) {
        if self.retransmission.request != FirstRequest::NotSent {
            return;
        }
        let answered = rtt.smoothed() + late(rtt.smoothed()) + self.peer.max_ack_delay;
        let copied = now + late(rtt.smoothed());
        self.retransmission.request = match self.config.handshake_retransmission && rtt.has_sample()
        {
            true => FirstRequest::Sent(RequestTimes {
                copy_at: self.config.request_copy.then_some(copied),
                repeat_at: now + answered,
            }),
            false => FirstRequest::Over,
        };
    }

    /// Called when packets of application data are acknowledged, and `outstanding` are not.
    pub(crate) fn on_data_acked(&mut self, outstanding: u64) {
        let repeats = 1..=u64::from(REQUEST_PACKETS);
        if self.retransmission.request != FirstRequest::Over && !repeats.contains(&outstanding) {
            self.retransmission.request = FirstRequest::Over;
        }
    }

    /// The next content that is due again by `now`.
    pub(crate) fn poll_repeat(&mut self, now: Instant) -> Option<Repeat> {
        let state = &mut self.retransmission;
        if let Some(copies) = state.copies
            && copies.next_at <= now
        {
            let pause = copies.pause * 2;
            let further = FlightCopies {
                next_at: now + pause,
                pause,
                left: copies.left - 1,
            };
            state.copies = (further.left > 0).then_some(further);
            return Some(Repeat::Flight);
        }
        if let HelloRepeat::At(at) = state.hello
            && at <= now
        {
            state.hello = HelloRepeat::Done;
            return Some(Repeat::Flight);
        }
        if let Some(repeat) = state.repeat.take_if(|repeat| repeat.at <= now) {
            return Some(match repeat.part {
                Part::All => {
                    state.repeats += 1;
                    Repeat::Flight
                }
                Part::SentBy(time) => Repeat::FlightSentBy(time),
            });
        }
        if let FirstRequest::Sent(times) = &mut state.request {
            if times.repeat_at <= now {
                state.request = FirstRequest::Over;
                return Some(Repeat::Request);
            }
            if times.copy_at.take_if(|at| *at <= now).is_some() {
                return Some(Repeat::RequestIfShort);
            }
        }
        None
    }

    /// A part of the flight was made due again, as [`Repeat::FlightSentBy`] demanded.
    pub(crate) fn on_flight_repeated(&mut self) {
        self.retransmission.repeats += 1;
    }

    fn has_outstanding_flight(&self) -> bool {
        let mut spaces = self.spaces.iter();
        spaces.any(|(_, space)| space.sent.has_ack_eliciting_in_flight())
    }
}

/// Allowed delay of the rest of a flight after a part of it arrived.
fn late(round_trip: Duration) -> Duration {
    (round_trip / LATE).max(GRANULARITY)
}
