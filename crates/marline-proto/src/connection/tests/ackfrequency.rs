//! Fewer acknowledgments, because the sender asks for fewer.

use super::*;
use crate::config::AckFrequencyConfig;

/// A download of three megabytes.
#[derive(Debug)]
struct Download {
    /// Datagrams that the client sent.
    acknowledgments: u64,
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
        took,
    }
}

const RARELY: AckFrequencyConfig = AckFrequencyConfig {
    threshold: 19,
    max_delay: Duration::from_millis(20),
    reordering_threshold: 3,
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
