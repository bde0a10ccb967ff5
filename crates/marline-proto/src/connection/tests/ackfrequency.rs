//! Fewer acknowledgments, because the sender asks for fewer.

use super::*;
use crate::config::AckFrequencyConfig;

/// A download of three megabytes.
#[derive(Debug)]
struct Download {
    /// Datagrams that the client sent.
    acknowledgments: u64,
    /// ACK_FREQUENCY frames that it received.
    requests: u64,
    took: Duration,
}

fn acknowledged(ack_frequency: Option<AckFrequencyConfig>, loss: f64) -> Download {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            ack_frequency,
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 60_000,
        delay: Duration::from_millis(15),
        ..Conditions::default()
    });
    pair.network.conditions(Direction::ToClient).loss = loss;
    let ends = pair.establish();
    let before = pair.network.counts(Direction::ToServer).sent;
    let took = download(&mut pair, ends, &pattern(3_000_000));
    let requests = pair
        .client(ends.client)
        .stats()
        .frames_received
        .ack_frequency;
    assert_eq!(requests > 0, ack_frequency.is_some());
    Download {
        acknowledgments: pair.network.counts(Direction::ToServer).sent - before,
        requests,
        took,
    }
}

const RARELY: AckFrequencyConfig = AckFrequencyConfig {
    threshold: 19,
    max_delay: Duration::from_millis(20),
    reordering_threshold: 3,
    acks_per_window: 0,
    rtt_fraction: 0.0,
    start_after: 0,
};

#[test]
fn ack_frequency_saves_three_quarters_of_acknowledgments_at_the_same_rate() {
    let usual = acknowledged(None, 0.0);
    let rare = acknowledged(Some(RARELY), 0.0);
    assert!(usual.acknowledgments > 900, "{usual:?}");
    assert!(
        rare.acknowledgments < usual.acknowledgments / 4,
        "{rare:?}, {usual:?}"
    );
    assert!(rare.took < usual.took.mul_f64(1.15), "{rare:?}, {usual:?}");
}

#[test]
fn ack_frequency_slows_a_transfer_with_losses_by_at_most_60_percent() {
    let usual = acknowledged(None, 0.005);
    let rare = acknowledged(Some(RARELY), 0.005);
    assert!(
        rare.acknowledgments < usual.acknowledgments / 2,
        "{rare:?}, {usual:?}"
    );
    assert!(rare.took < usual.took.mul_f64(1.6), "{rare:?}, {usual:?}");
}

/// Ten packets at most, and an eighth of the window.
const BY_WINDOW: AckFrequencyConfig = AckFrequencyConfig {
    threshold: 9,
    acks_per_window: 8,
    rtt_fraction: 0.25,
    reordering_threshold: 0,
    ..RARELY
};

#[test]
fn a_request_follows_the_window_and_costs_no_rate() {
    let usual = acknowledged(None, 0.0);
    let rare = acknowledged(Some(BY_WINDOW), 0.0);
    assert!((2..=6).contains(&rare.requests), "{rare:?}");
    assert!(
        rare.acknowledgments < usual.acknowledgments / 2,
        "{rare:?}, {usual:?}"
    );
    assert!(rare.took < usual.took.mul_f64(1.02), "{rare:?}, {usual:?}");
}

#[test]
fn a_window_that_losses_keep_small_is_acknowledged_nearly_as_often_as_without_a_request() {
    let usual = acknowledged(None, 0.02);
    let by_window = acknowledged(Some(BY_WINDOW), 0.02);
    let whatever = acknowledged(Some(RARELY), 0.02);
    assert!(
        by_window.took < usual.took.mul_f64(1.1),
        "{by_window:?}, {usual:?}"
    );
    assert!(
        whatever.took > by_window.took,
        "{whatever:?}, {by_window:?}"
    );
}

#[test]
fn a_peer_without_the_extension_is_asked_nothing() {
    for takes_requests in [true, false] {
        let mut pair = Pair::with(PairConfig {
            server: TransportConfig {
                ack_frequency: Some(AckFrequencyConfig {
                    start_after: 50,
                    ..BY_WINDOW
                }),
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        });
        let ends = pair.establish();
        if !takes_requests {
            pair.server(ends.server).peer.min_ack_delay = None;
        }
        download(&mut pair, ends, &pattern(300_000));
        let received = pair.client(ends.client).stats().frames_received;
        assert_eq!(received.ack_frequency > 0, takes_requests);
    }
}
