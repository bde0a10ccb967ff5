//! Hybrid automatic repeat requests (HARQ).

use super::{LteConfig, Tti};
use crate::Seed;
use crate::random::bernoulli;

/// HARQ round trip: TTIs from one transmission of a block to the next.
pub(super) const ROUND_TRIP: Tti = 8;

/// Outcomes of blocks, and the TTIs that retransmissions occupy.
///
/// Whether a transmission fails depends only on its TTI, not on its content.
pub(super) struct Harq {
    /// Seed of the errors.
    seed: Seed,
    /// Error probabilities of first transmissions and of retransmissions.
    errors: [f64; 2],
    /// Maximum number of transmissions of a block.
    tries: u32,
    /// The first TTI of `taken`.
    base: Tti,
    /// Bit mask of the TTIs from `base` on that retransmissions occupy.
    taken: u64,
}

/// The outcome of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The TTI of its last transmission.
    pub(super) last: Tti,
    /// Whether that failed as well.
    pub(super) failed: bool,
}

impl Harq {
    pub(super) fn new(config: &LteConfig, seed: Seed) -> Self {
        Self {
            seed: seed.of("harq"),
            errors: [config.block_error, config.retry_error],
            tries: config.tries.clamp(1, 8),
            base: 0,
            taken: 0,
        }
    }

    /// The first TTI from `tti` on that no retransmission occupies.
    pub(super) fn free(&self, tti: Tti) -> Tti {
        match tti.checked_sub(self.base) {
            Some(ahead @ 0..64) => tti + Tti::from((self.taken >> ahead).trailing_ones()),
            _ => tti,
        }
    }

    /// Sends a block in `tti`, which must be free and later than all earlier calls.
    pub(super) fn send(&mut self, tti: Tti) -> Outcome {
        let ahead = u32::try_from(tti - self.base).unwrap_or(u32::MAX);
        self.taken = self.taken.checked_shr(ahead).unwrap_or(0);
        self.base = tti;
        let mut outcome = Outcome {
            last: tti,
            failed: self.fails(tti, self.errors[0]),
        };
        for _ in 1..self.tries {
            if !outcome.failed {
                break;
            }
            outcome.last += ROUND_TRIP;
            self.taken |= 1 << (outcome.last - tti);
            outcome.failed = self.fails(outcome.last, self.errors[1]);
        }
        outcome
    }

    /// Whether the transmission in `tti` fails.
    fn fails(&self, tti: Tti, probability: f64) -> bool {
        bernoulli(&mut self.seed.nth(tti).rng(), probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harq(block_error: f64, retry_error: f64) -> Harq {
        let config = LteConfig {
            block_error,
            retry_error,
            ..LteConfig::default()
        };
        Harq::new(&config, Seed::new(1))
    }

    #[test]
    fn retransmissions_occupy_ttis_of_new_blocks() {
        let mut harq = harq(1.0, 1.0);
        let lost = Outcome {
            last: 124,
            failed: true,
        };
        assert_eq!(harq.send(100), lost);
        assert_eq!(harq.free(101), 101);
        assert_eq!(harq.send(101).last, 125);
        for taken in [108, 116, 124] {
            assert_eq!(harq.free(taken), taken + 2);
        }
        assert_eq!(harq.free(126), 126);
        assert_eq!(harq.free(100_000), 100_000);
        harq.send(118);
        assert_eq!(harq.free(124), 127);
        harq.send(100_000);
        assert_eq!(harq.free(100_001), 100_001);
    }

    #[test]
    fn blocks_fail_with_the_configured_probabilities() {
        let mut harq = harq(0.08, 0.5);
        let mut tries = [0; 5];
        for tti in (0..100_000).map(|tti| 100 * tti) {
            let outcome = harq.send(tti);
            let retransmissions = usize::try_from((outcome.last - tti) / ROUND_TRIP).unwrap();
            tries[retransmissions + usize::from(outcome.failed)] += 1;
        }
        for (found, expected) in tries.iter().zip([92_000_i32, 4000, 2000, 1000, 1000]) {
            let error = f64::from(expected - found) / f64::from(expected).sqrt();
            assert!(error.abs() < 4.0, "{tries:?}");
        }
    }
}
