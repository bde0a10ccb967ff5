//! Transfers over a network that loses, corrupts, duplicates and reorders packets.

use super::*;

/// Transfers 2 MB over 10 Mbit/s and 30 ms; returns the time it took.
fn transfer(seed: u64, conditions: Conditions) -> Duration {
    let mut pair = seeded(seed);
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 50_000,
        delay: Duration::from_millis(15),
        ..conditions
    });
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(2_000_000))
}

#[test]
fn a_transfer_with_two_percent_of_loss_takes_less_than_seven_seconds() {
    for seed in 0..5 {
        let took = transfer(
            seed,
            Conditions {
                loss: 0.02,
                ..Conditions::default()
            },
        );
        assert!(took < Duration::from_secs(7), "seed {seed}: took {took:?}");
    }
}

#[test]
fn a_transfer_with_two_percent_of_corruption_takes_less_than_seven_seconds() {
    for seed in 0..5 {
        let took = transfer(
            seed,
            Conditions {
                corrupt: 0.02,
                ..Conditions::default()
            },
        );
        assert!(took < Duration::from_secs(7), "seed {seed}: took {took:?}");
    }
}

#[test]
fn data_arrives_intact_under_loss_reordering_duplication_and_corruption() {
    for seed in 0..20 {
        let mut pair = seeded(seed);
        pair.network.set(Conditions {
            loss: 0.03,
            jitter: Duration::from_millis(8),
            duplicate: 0.02,
            corrupt: 0.02,
            rate: Some(2_000_000),
            ..Conditions::default()
        });
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(300_000));
    }
}
