//! Rules that every loss detector must keep.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::{LossDetector, PacketView, Spurious, Verdict};
use crate::Instant;
use crate::samples::RttView;

const STEPS: usize = 20_000;

/// Runs all checks on the detectors that `make` creates.
///
/// # Panics
///
/// If a detector breaks a rule; the message names the rule.
pub fn conformance(make: impl Fn() -> Box<dyn LossDetector>) {
    let mut rng = Pcg32::seed_from_u64(1);
    let mut detector = make();
    assert!(!detector.name().is_empty(), "a detector has a name");
    for _ in 0..STEPS {
        let rtt = random_rtt(&mut rng);
        match rng.random_range(0..4_u32) {
            0 => detector.on_loss(),
            1 => detector.on_spurious_loss(
                &Spurious {
                    packets_after: magnitude(&mut rng),
                    elapsed: Duration::from_nanos(magnitude(&mut rng)),
                },
                &rtt,
            ),
            _ => {}
        }
        check(detector.as_ref(), &rtt, &mut rng);
    }
}

fn check(detector: &dyn LossDetector, rtt: &RttView, rng: &mut Pcg32) {
    let threshold = detector.time_threshold(rtt);
    assert!(
        threshold >= rtt.latest.max(rtt.smoothed),
        "a packet gets a round trip at least"
    );
    assert!(
        detector
            .packet_threshold()
            .is_none_or(|packets| packets >= 3),
        "fewer than 3 packets are no sign of loss (RFC 9002, section 6.1.1)"
    );

    let sent_at = Instant::from_nanos(magnitude(rng));
    let packet = |packets_after| PacketView {
        packets_after,
        sent_at,
    };
    let deadline = sent_at + threshold;
    assert_eq!(
        detector.is_lost(&packet(0), rtt, deadline),
        Verdict::Keep,
        "nothing later is acknowledged"
    );
    let early = Instant::from_nanos(deadline.as_nanos().saturating_sub(1));
    assert_eq!(
        detector.is_lost(&packet(1), rtt, early),
        if early < deadline {
            Verdict::Until(deadline)
        } else {
            Verdict::Lost(super::Cause::Time)
        },
        "one packet later is not enough, and the deadline is the time threshold's"
    );
    for packets_after in [1, 2, magnitude(rng) | 1, u64::MAX] {
        assert!(
            matches!(
                detector.is_lost(&packet(packets_after), rtt, deadline),
                Verdict::Lost(_)
            ),
            "at the deadline a packet is lost"
        );
    }
}

fn magnitude(rng: &mut Pcg32) -> u64 {
    rng.random::<u64>() >> rng.random_range(2..64_u32)
}

/// Random round-trip times from zero to half an hour.
fn random_rtt(rng: &mut Pcg32) -> RttView {
    let mut time = || Duration::from_nanos(magnitude(rng) >> 21);
    RttView {
        latest: time(),
        adjusted: time(),
        smoothed: time(),
        min: time(),
        variance: time(),
    }
}
