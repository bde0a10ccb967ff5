//! A path that reorders packets.

use super::*;
use crate::congestion::Algorithm;
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
            // Only losses reduce its window.
            controller: Arc::new(Algorithm::Cubic),
            ..TransportConfig::default()
        },
        seed,
        ..PairConfig::default()
    });
    pair.network.set(Conditions {
        rate: Some(RATE),
        queue: 2_000_000,
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

/// Every ACK identifies the packets that arrived: no reduction remains once all of its losses are known to be spurious.
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

/// RFC 9000, section 17.1: the length of a packet number must allow for later packets that arrive first.
#[test]
fn a_packet_that_hundreds_of_later_ones_overtake_is_opened() {
    const PING: [u8; 1] = [0x01];
    for later in [127, 128, 200, 2000] {
        let mut pair = Pair::new();
        let ends = pair.establish();
        pair.drive(Duration::from_secs(1));
        let now = pair.now;
        let mut craft = || pair.server(ends.server).craft(now, SpaceId::Data, &PING);
        let late = craft();
        let others: Vec<_> = (0..later).map(|_| craft()).collect();
        for other in others {
            pair.deliver(Direction::ToClient, other);
        }
        let pings = pair.client(ends.client).stats().frames_received.ping;
        pair.deliver(Direction::ToClient, late);
        let stats = pair.client(ends.client).stats();
        assert_eq!(stats.packets_dropped, 0, "after {later}");
        assert_eq!(stats.frames_received.ping, pings + 1, "after {later}");
    }
}
