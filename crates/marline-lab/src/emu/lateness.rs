//! The lateness of packets in the emulator.

use std::time::Duration;

/// Buckets per power of two: a percentile is at most 1/16 above the true value.
const STEPS: u64 = 16;
/// Enough for every 64-bit number.
const BUCKETS: usize = 61 * STEPS as usize;

/// A histogram of lateness: for each packet, the time of delivery minus the arrival time of the model.
#[derive(Clone, Debug)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            buckets: vec![0; BUCKETS],
            count: 0,
            max: 0,
        }
    }
}

impl Lateness {
    /// Records one packet that was delivered `late` after its arrival time.
    pub fn record(&mut self, late: Duration) {
        let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    /// The number of recorded packets.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The maximum; zero if no packet was recorded.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The lateness below which `per_mille` of 1,000 packets stayed; at most 1/16 above the true value, and
    /// zero if no packet was recorded.
    pub fn percentile(&self, per_mille: u64) -> Duration {
        let wanted = self.count.saturating_mul(per_mille).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(ceiling(index).min(self.max));
            }
        }
        Duration::ZERO
    }
}

/// Each number below [`STEPS`] has its own bucket; above, the leading bit and the next four select one.
fn bucket(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEPS.ilog2();
    (u64::from(shift) * STEPS + (nanos >> shift)) as usize
}

/// The largest number in a bucket.
fn ceiling(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    let lead = index % STEPS + STEPS;
    (lead << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_numbers_without_gaps() {
        let mut next = 0;
        for index in 0..BUCKETS {
            let top = ceiling(index);
            assert_eq!(bucket(next), index, "first of bucket {index}");
            assert_eq!(bucket(top), index, "last of bucket {index}");
            next = top.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends with the largest number");
    }

    #[test]
    fn percentiles_are_at_most_a_sixteenth_too_large() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.percentile(500), Duration::ZERO);
        for micros in 1..=1_000 {
            lateness.record(Duration::from_micros(micros));
        }
        for (per_mille, true_value) in [(500, 500), (990, 990), (999, 999), (1_000, 1_000)] {
            let found = lateness.percentile(per_mille);
            let true_value = Duration::from_micros(true_value);
            assert!(found >= true_value && found <= true_value * 17 / 16);
        }
        assert_eq!(lateness.max(), Duration::from_millis(1));
        assert_eq!(lateness.count(), 1_000);
    }
}
