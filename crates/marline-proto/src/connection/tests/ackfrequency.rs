//! Fewer acknowledgments, because the sender asks for fewer.

use super::*;
use crate::config::AckFrequencyConfig;

/// Datagrams that the client sends during a download, and the time it takes.
fn acknowledged(ack_frequency: Option<AckFrequencyConfig>, loss: f64) -> (u64, Duration) {
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
    let before = pair.network.counts(Direction::ToServer).0;
    let took = download(&mut pair, ends.0, ends.1, &pattern(3_000_000));
    let asked = pair.client(ends.0).stats().frames_received.ack_frequency;
    assert_eq!(asked > 0, ack_frequency.is_some());
    (pair.network.counts(Direction::ToServer).0 - before, took)
}

const RARELY: AckFrequencyConfig = AckFrequencyConfig {
    threshold: 19,
    max_delay: Duration::from_millis(20),
    reordering_threshold: 3,
};

#[test]
fn ack_frequency_saves_three_quarters_of_acknowledgments_at_the_same_rate() {
    let (usually, took) = acknowledged(None, 0.0);
    let (rarely, took_rarely) = acknowledged(Some(RARELY), 0.0);
    assert!(usually > 900, "{usually}");
    assert!(rarely < usually / 4, "{rarely} instead of {usually}");
    assert!(
        took_rarely < took.mul_f64(1.15),
        "{took:?}, with rare acknowledgments {took_rarely:?}"
    );
}

#[test]
fn ack_frequency_slows_a_transfer_with_losses_by_at_most_60_percent() {
    let (usually, took) = acknowledged(None, 0.005);
    let (rarely, took_rarely) = acknowledged(Some(RARELY), 0.005);
    assert!(rarely < usually / 2, "{rarely} instead of {usually}");
    assert!(
        took_rarely < took.mul_f64(1.6),
        "{took:?}, with rare acknowledgments {took_rarely:?}"
    );
}
