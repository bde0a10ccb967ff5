//! Rules that every acknowledgment policy must keep.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::{AckDecision, AckPolicy, ReceivedView, Requested};
use crate::Instant;

const STEPS: usize = 20_000;

/// Runs all checks on the policies that `make` creates.
///
/// # Panics
///
/// If a policy breaks a rule; the message names the rule.
pub fn conformance(make: impl Fn() -> Box<dyn AckPolicy>) {
    let mut rng = Pcg32::seed_from_u64(1);
    let mut policy = make();
    assert!(!policy.name().is_empty(), "a policy has a name");
    for _ in 0..STEPS {
        match rng.random_range(0..16_u32) {
            0 => policy.on_ack_sent(),
            1 => policy.on_frequency(&Requested {
                threshold: magnitude(&mut rng),
                max_delay: Duration::from_micros(magnitude(&mut rng) >> 20),
                reordering_threshold: magnitude(&mut rng),
            }),
            _ => check(policy.as_mut(), &random_packet(&mut rng)),
        }
    }
}

fn check(policy: &mut dyn AckPolicy, packet: &ReceivedView) {
    let due_at = packet.oldest_unacked_at + policy.max_ack_delay();
    match policy.on_packet(packet) {
        AckDecision::Now => assert!(packet.unacked > 0, "there is something to acknowledge"),
        AckDecision::By(at) => {
            assert!(at > packet.now, "what is due is due now: {packet:?}");
            assert!(
                at <= due_at,
                "no packet waits longer than promised: {packet:?}"
            );
            assert!(packet.unacked > 0, "there is something to acknowledge");
        }
        AckDecision::NotNeeded => assert_eq!(
            packet.unacked, 0,
            "every ack-eliciting packet is acknowledged (RFC 9000, section 13.2.1)"
        ),
    }
}

fn magnitude(rng: &mut Pcg32) -> u64 {
    rng.random::<u64>() >> rng.random_range(2..64_u32)
}

fn random_packet(rng: &mut Pcg32) -> ReceivedView {
    let number = magnitude(rng);
    let largest = number.saturating_add(magnitude(rng));
    let now = Instant::from_nanos(magnitude(rng));
    let unacked = magnitude(rng);
    ReceivedView {
        now,
        number,
        largest,
        largest_acked: rng.random::<bool>().then(|| magnitude(rng)),
        smallest_missing: rng.random::<bool>().then(|| magnitude(rng).min(largest)),
        unacked,
        oldest_unacked_at: now - Duration::from_nanos(magnitude(rng) >> 20),
        total_received: unacked.saturating_add(magnitude(rng)),
        out_of_order: rng.random_range(0..8_u32) == 0,
        ce: rng.random_range(0..8_u32) == 0,
        min_rtt: Duration::from_nanos(magnitude(rng)),
    }
}
