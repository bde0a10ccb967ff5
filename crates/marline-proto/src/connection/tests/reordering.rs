//! A path that reorders packets.

use super::*;
use crate::recovery::LossDetector;
use crate::recovery::loss::{Adaptive, Fixed};

/// A download over 20 Mbit/s on which every packet takes 20 to 30 ms.
#[derive(Debug)]
struct Reordered {
    /// Share of the link's rate.
    share: f64,
    spurious_losses: u64,
    reductions: u64,
    undone: u64,
}

fn download_reordered(seed: u64, detector: fn() -> Box<dyn LossDetector>) -> Reordered {
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
    let ends = pair.establish();
    let took = download(&mut pair, ends, &pattern(6_000_000));
    let stats = pair.server(ends.server).stats();
    Reordered {
        share: 6_000_000.0 / took.as_secs_f64() / RATE as f64,
        spurious_losses: stats.packets_lost_spuriously(),
        reductions: stats.paths.iter().map(|path| path.congestion_events).sum(),
        undone: stats.paths.iter().map(|path| path.undone_reductions).sum(),
    }
}

#[test]
fn under_reordering_the_adaptive_detector_keeps_the_rate_and_the_fixed_one_does_not() {
    for seed in 0..3 {
        let adaptive = download_reordered(seed, || Box::new(Adaptive::default()));
        let fixed = download_reordered(seed, || Box::new(Fixed::rfc9002()));
        assert!(
            adaptive.share > 0.75 && fixed.share < 0.75,
            "seed {seed}: adaptive {adaptive:?}, fixed {fixed:?}"
        );
        assert!(
            adaptive.spurious_losses * 5 < fixed.spurious_losses,
            "seed {seed}: adaptive {adaptive:?}, fixed {fixed:?}"
        );
    }
}

/// Every ACK proves which packet arrived, not only that one did: no reduction outlives the proof that all of its
/// losses were spurious.
#[test]
fn reductions_for_packets_that_were_only_late_are_undone() {
    for seed in 0..3 {
        let time_alone = download_reordered(seed, || Box::new(Fixed::gquic()));
        assert!(
            time_alone.reductions > 0 && time_alone.undone > 0,
            "seed {seed}: {time_alone:?}"
        );
        assert!(
            time_alone.reductions <= time_alone.undone + 2,
            "seed {seed}: {time_alone:?}"
        );
    }
}
