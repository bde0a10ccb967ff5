//! A path that delivers out of order, as links of several strands do.

use super::*;
use crate::recovery::LossDetector;
use crate::recovery::loss::{Adaptive, Fixed};

/// The share of 20 Mbit/s that a download gets while every packet takes 20 to 30 ms, and the losses
/// that were none.
fn share(seed: u64, detector: fn() -> Box<dyn LossDetector>) -> (f64, u64) {
    const RATE: u64 = 2_500_000;
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            loss_detector: Arc::new(detector),
            ..TransportConfig::default()
        },
        seed,
        ..PairConfig::default()
    });
    pair.network.set(Conditions {
        rate: Some(RATE),
        queue: 150_000,
        delay: Duration::from_millis(20),
        ..Conditions::default()
    });
    pair.network.conditions(Direction::ToClient).jitter = Duration::from_millis(10);
    let (client, server) = pair.establish();
    let took = download(&mut pair, client, server, &pattern(6_000_000));
    let spurious = pair.server(server).stats().packets_lost_spuriously();
    (6_000_000.0 / took.as_secs_f64() / RATE as f64, spurious)
}

#[test]
fn under_reordering_the_adaptive_detector_keeps_the_rate_and_the_fixed_one_does_not() {
    for seed in 0..3 {
        let (adaptive, few) = share(seed, || Box::new(Adaptive::default()));
        let (fixed, many) = share(seed, || Box::new(Fixed::rfc9002()));
        assert!(
            adaptive > 0.75 && fixed < 0.75,
            "seed {seed}: adaptive {adaptive:.2} with {few} spurious losses, \
             fixed {fixed:.2} with {many}"
        );
        assert!(few * 5 < many, "seed {seed}: {few} and {many} spurious");
    }
}
