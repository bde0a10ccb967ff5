//! The acknowledgment frequency that we request of the peer with ACK_FREQUENCY frames.

use std::time::Duration;

use super::{DEFAULT_MAX_ACK_DELAY, Requested};
use crate::Instant;
use crate::samples::scaled;
use crate::settings::{Domain, Settings, field};

/// Factor by which the threshold or the delay must change for a new request.
const RELEVANT: u32 = 2;

/// Minimum threshold of a request, which every receiver applies by default (RFC 9000, section 13.2.2).
const FEWEST_PACKETS: u64 = 2;

/// The request of ACK_FREQUENCY frames (draft-ietf-quic-ack-frequency-14).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckFrequencyConfig {
    /// Ack-eliciting packets that may arrive without an immediate ACK.
    pub threshold: u64,
    /// Maximum delay of an ACK.
    pub max_delay: Duration,
    /// Reordering, in packet numbers, at which an ACK is sent immediately; 0 disables that.
    pub reordering_threshold: u64,
    /// Minimum number of ACKs per congestion window: small windows request a smaller threshold, down to one ACK for two
    /// packets within `max_delay`, which is the receiver's default. 0 disables that.
    pub acks_per_window: u64,
    /// Maximum delay of an ACK as a divisor of the smoothed round-trip time, besides `max_delay`; 0 disables that.
    pub rtt_fraction: f64,
    /// Packets to send before the first request.
    pub start_after: u64,
}

impl AckFrequencyConfig {
    /// The keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        field!(threshold: Domain::integer(0, 1_000_000), "Ack-eliciting packets that may arrive without an immediate ACK"),
        field!(max_delay: Domain::time(Duration::from_micros(1), Duration::from_secs(16)), "Maximum delay of an ACK"),
        field!(
            reordering_threshold: Domain::integer(0, 1_000_000),
            "Reordering, in packet numbers, at which an ACK is sent immediately; 0 disables it"
        ),
        field!(
            acks_per_window: Domain::integer(0, 1000),
            "Minimum number of ACKs per congestion window, so that small windows request more; 0 disables it"
        ),
        field!(
            rtt_fraction: Domain::number(0.0, 1.0),
            "Maximum delay of an ACK as a divisor of the smoothed round-trip time; 0 disables it"
        ),
        field!(start_after: Domain::integer(0, 1_000_000), "Packets to send before the first request"),
    ];
}

impl Default for AckFrequencyConfig {
    /// One ACK for ten packets, but at least sixteen per window of more than 32, within a quarter of the round-trip
    /// time, and immediately for a gap. On a radio that carries one packet at a time, ACKs take airtime from data.
    fn default() -> Self {
        Self {
            threshold: 9,
            max_delay: DEFAULT_MAX_ACK_DELAY,
            reordering_threshold: 1,
            acks_per_window: 16,
            rtt_fraction: 0.25,
            start_after: 0,
        }
    }
}

/// Send state on which a request depends; with several paths, the smallest window and the shortest round-trip time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendView {
    /// Congestion window, in full datagrams.
    pub(crate) window_packets: u64,
    /// Smoothed round-trip time.
    pub(crate) rtt: Duration,
    /// Packets sent on the path with the most.
    pub(crate) sent: u64,
}

/// The receiver's acknowledgment delays from its transport parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverView {
    /// Minimum delay that may be requested (`min_ack_delay`).
    pub(crate) shortest: Duration,
    /// Default delay (`max_ack_delay`).
    pub(crate) usual: Duration,
}

/// Our last request.
#[derive(Debug, Default)]
pub(crate) struct OwnRequest {
    asked: Option<Asked>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    requested: Requested,
    at: Instant,
}

impl OwnRequest {
    /// The request to send to `receiver` now; `None` if no request is wanted, if it hardly differs from the last one,
    /// or if both the wanted delay and the default one are below the receiver's minimum.
    ///
    /// A request follows the window and the round-trip time: it is renewed when they change (slow start and its
    /// end, losses, migration), at most once per round trip.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        wanted: &AckFrequencyConfig,
        receiver: &ReceiverView,
        sending: &SendView,
    ) -> Option<Requested> {
        let patience = wanted.max_delay.max(DEFAULT_MAX_ACK_DELAY);
        if sending.sent < wanted.start_after || receiver.shortest > patience {
            return None;
        }
        let requested = wanted.at(sending, receiver);
        let is_due = match &self.asked {
            Some(asked) => now >= asked.at + sending.rtt && asked.is_outdated(&requested, wanted),
            None => !wanted.is_reduced_to_usual(&requested),
        };
        is_due.then(|| {
            self.asked = Some(Asked { requested, at: now });
            requested
        })
    }
}

impl Asked {
    fn is_outdated(&self, next: &Requested, wanted: &AckFrequencyConfig) -> bool {
        let before = &self.requested;
        let packets =
            [before.threshold, next.threshold].map(|threshold| threshold.saturating_add(1));
        let (fewer, more) = (packets[0].min(packets[1]), packets[0].max(packets[1]));
        let (shorter, longer) = (
            before.max_delay.min(next.max_delay),
            before.max_delay.max(next.max_delay),
        );
        // Reaching the full threshold is worth a request even if it is less than twice the last one.
        let reaches_full = before.threshold < next.threshold && next.threshold == wanted.threshold;
        // A receiver must not wait for a third packet once the window is small.
        let returns_to_usual = next.threshold < before.threshold && next.threshold < FEWEST_PACKETS;
        let is_relevant = reaches_full
            || returns_to_usual
            || more >= fewer.saturating_mul(RELEVANT.into())
            || longer >= shorter.saturating_mul(RELEVANT);
        // Both may be zero, which satisfies the factor.
        is_relevant && before != next
    }
}

impl AckFrequencyConfig {
    /// The request for a window and a round-trip time.
    fn at(&self, sending: &SendView, receiver: &ReceiverView) -> Requested {
        let packets = match self.acks_per_window {
            0 => u64::MAX,
            acks => (sending.window_packets / acks).max(FEWEST_PACKETS),
        };
        let fraction = scaled(sending.rtt, self.rtt_fraction);
        let max_delay = match fraction.is_zero() {
            true => self.max_delay,
            false => self.max_delay.min(fraction),
        };
        let mut requested = Requested {
            threshold: self.threshold.min(packets - 1),
            max_delay,
            reordering_threshold: self.reordering_threshold,
        };
        if self.is_reduced_to_usual(&requested) {
            requested.max_delay = self.max_delay.min(receiver.usual);
        }
        requested.max_delay = requested.max_delay.max(receiver.shortest);
        requested
    }

    /// Whether the window is so small that the `requested` threshold equals the receiver's default.
    fn is_reduced_to_usual(&self, requested: &Requested) -> bool {
        requested.threshold < FEWEST_PACKETS && requested.threshold < self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: ReceiverView = ReceiverView {
        shortest: ms(1),
        usual: ms(25),
    };

    const WIFI: AckFrequencyConfig = AckFrequencyConfig {
        threshold: 9,
        max_delay: ms(25),
        reordering_threshold: 0,
        acks_per_window: 8,
        rtt_fraction: 0.25,
        start_after: 0,
    };

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(millis: u64) -> Instant {
        Instant::EPOCH + ms(millis)
    }

    fn shortest(millis: u64) -> ReceiverView {
        ReceiverView {
            shortest: ms(millis),
            ..PEER
        }
    }

    fn sending(window_packets: u64, rtt: u64) -> SendView {
        SendView {
            window_packets,
            rtt: ms(rtt),
            sent: 1000,
        }
    }

    fn threshold(request: &mut OwnRequest, now: u64, window_packets: u64) -> Option<u64> {
        request
            .update(at(now), &WIFI, &PEER, &sending(window_packets, 40))
            .map(|requested| requested.threshold)
    }

    #[test]
    fn a_window_of_any_size_gets_its_acknowledgments() {
        let threshold = |window| threshold(&mut OwnRequest::default(), 0, window);
        assert_eq!(threshold(1000), Some(9), "ten packets");
        assert_eq!(threshold(80), Some(9));
        assert_eq!(threshold(40), Some(4), "an eighth of the window");
        assert_eq!(threshold(31), Some(2));
        assert_eq!(threshold(23), None, "as without a request");
        assert_eq!(threshold(2), None);
    }

    #[test]
    fn a_request_follows_the_window_in_steps_of_two_at_most_once_a_round_trip() {
        let mut request = OwnRequest::default();
        assert_eq!(threshold(&mut request, 0, 32), Some(3));
        assert_eq!(threshold(&mut request, 39, 64), None, "too soon");
        assert_eq!(threshold(&mut request, 40, 40), None, "not enough");
        assert_eq!(threshold(&mut request, 40, 64), Some(7));
        assert_eq!(threshold(&mut request, 80, 72), None, "not enough");
        assert_eq!(
            threshold(&mut request, 80, 80),
            Some(9),
            "all there is to ask for"
        );
        assert_eq!(threshold(&mut request, 120, 5000), None);
        assert_eq!(threshold(&mut request, 160, 56), None, "not enough");
        assert_eq!(
            threshold(&mut request, 160, 40),
            Some(4),
            "a loss halved the window"
        );
    }

    #[test]
    fn a_delay_is_part_of_a_round_trip_within_what_the_peer_can() {
        let delay = |rtt, min| {
            let mut request = OwnRequest::default();
            let requested = request.update(at(0), &WIFI, &shortest(min), &sending(100, rtt));
            requested.map(|requested| requested.max_delay)
        };
        assert_eq!(delay(40, 1), Some(ms(10)));
        assert_eq!(delay(400, 1), Some(ms(25)));
        assert_eq!(delay(40, 20), Some(ms(20)), "the peer's min_ack_delay");
        assert_eq!(delay(0, 1), Some(ms(25)));
    }

    /// The last request was for three packets, and the round trip is so long that the delay hardly changes.
    #[test]
    fn a_window_that_becomes_small_returns_to_what_the_receiver_does_by_itself() {
        for (usual, expected) in [(25, 25), (5, 5), (60, 25)] {
            let receiver = ReceiverView {
                usual: ms(usual),
                ..PEER
            };
            let mut request = OwnRequest::default();
            let first = request.update(at(0), &WIFI, &receiver, &sending(24, 100));
            assert_eq!(first.map(|it| it.threshold), Some(2));
            let next = request.update(at(100), &WIFI, &receiver, &sending(2, 100));
            let expected = Requested {
                threshold: 1,
                max_delay: ms(expected),
                reordering_threshold: 0,
            };
            assert_eq!(next, Some(expected));
        }
    }

    #[test]
    fn nothing_is_asked_of_a_receiver_that_cannot_be_as_quick() {
        let ask = |min| {
            let mut request = OwnRequest::default();
            request.update(at(0), &WIFI, &shortest(min), &sending(100, 40))
        };
        assert!(ask(25).is_some());
        assert_eq!(ask(26), None);
    }

    #[test]
    fn nothing_is_asked_before_the_first_packets_are_sent() {
        let wanted = AckFrequencyConfig {
            start_after: 1001,
            ..WIFI
        };
        let mut request = OwnRequest::default();
        let view = sending(100, 40);
        assert_eq!(request.update(at(0), &wanted, &PEER, &view), None);
        let view = SendView { sent: 1001, ..view };
        assert!(request.update(at(0), &wanted, &PEER, &view).is_some());
    }

    #[test]
    fn a_request_that_depends_on_nothing_is_made_once() {
        let wanted = AckFrequencyConfig {
            acks_per_window: 0,
            rtt_fraction: 0.0,
            ..WIFI
        };
        let mut request = OwnRequest::default();
        for (round, window) in [10, 1000, 2].into_iter().enumerate() {
            let now = at(1000 * round as u64);
            let made = request.update(now, &wanted, &PEER, &sending(window, 40));
            assert_eq!(made.is_some(), round == 0);
        }
    }

    #[test]
    fn nothing_is_asked_twice_without_a_change() {
        let wanted = AckFrequencyConfig {
            threshold: u64::MAX,
            max_delay: Duration::ZERO,
            acks_per_window: 0,
            rtt_fraction: 0.0,
            ..WIFI
        };
        let mut request = OwnRequest::default();
        let mut ask = |now| request.update(at(now), &wanted, &shortest(0), &sending(100, 40));
        assert!(ask(0).is_some());
        assert_eq!(ask(1000), None);
    }

    #[test]
    fn extreme_settings_ask_for_something_valid() {
        let wanted = AckFrequencyConfig {
            threshold: u64::MAX,
            max_delay: Duration::ZERO,
            acks_per_window: 1,
            rtt_fraction: f64::MAX,
            ..WIFI
        };
        let view = sending(u64::MAX, 40);
        let requested = OwnRequest::default().update(at(0), &wanted, &PEER, &view);
        assert_eq!(requested.map(|it| it.max_delay), Some(PEER.shortest));
    }
}
