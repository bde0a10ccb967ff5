//! The maximum over a sliding window, in constant space.

/// The largest sample of the last `length` rounds, approximately: it keeps the best three samples,
/// each newer than the one before (Kathleen Nichols' algorithm, as in Linux).
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFilter {
    length: u64,
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u64,
    value: u64,
}

impl MaxFilter {
    pub(super) fn new(length: u64) -> Self {
        Self {
            length,
            best: [Sample::default(); 3],
        }
    }

    /// The largest value; 0 before the first.
    pub(super) fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Removes all samples but `value` of `round`.
    pub(super) fn reset(&mut self, round: u64, value: u64) {
        self.best = [Sample { round, value }; 3];
    }

    /// Adds `value` of `round`; rounds do not decrease.
    pub(super) fn update(&mut self, round: u64, value: u64) {
        let new = Sample { round, value };
        let is_stale = round.saturating_sub(self.best[2].round) > self.length;
        if value >= self.best[0].value || is_stale {
            self.reset(round, value);
            return;
        }
        if value >= self.best[1].value {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        self.expire(new);
    }

    /// Removes old samples, and keeps the others spread over the window.
    fn expire(&mut self, new: Sample) {
        let age = new.round.saturating_sub(self.best[0].round);
        if age > self.length {
            self.best = [self.best[1], self.best[2], new];
            if new.round.saturating_sub(self.best[0].round) > self.length {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].round == self.best[0].round && age > self.length / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].round == self.best[1].round && age > self.length / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_window_wins_and_ages_out() {
        let mut filter = MaxFilter::new(10);
        filter.update(0, 100);
        for round in 1..=10 {
            filter.update(round, 50);
            assert_eq!(filter.get(), 100, "round {round}");
        }
        filter.update(11, 50);
        assert_eq!(filter.get(), 50);
    }

    #[test]
    fn reset_replaces_larger_values() {
        let mut filter = MaxFilter::new(10);
        filter.update(0, 100);
        filter.reset(1, 10);
        assert_eq!(filter.get(), 10);
    }

    /// The filter never exceeds the true maximum, and never falls below the newest sample.
    #[test]
    fn bounded_by_the_true_maximum() {
        let mut history = Vec::new();
        let mut filter = MaxFilter::new(10);
        let mut value = 12_345_u64;
        for round in 0..500 {
            value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1)
                >> 1;
            let sample = value % 1000;
            history.push(sample);
            filter.update(round, sample);
            let window = history.len().saturating_sub(11);
            let largest = history[window..].iter().copied().max().unwrap_or_default();
            assert!(filter.get() <= largest && filter.get() >= sample);
        }
    }
    fn rounds(filter: &MaxFilter) -> [u64; 3] {
        filter.best.map(|sample| sample.round)
    }

    /// The best of round 0, the second of round 4, and the third of round 8, in a window of 12 rounds.
    fn spread() -> MaxFilter {
        let mut filter = MaxFilter::new(12);
        filter.update(0, 100);
        filter.update(3, 70);
        assert_eq!(rounds(&filter), [0, 0, 0], "a quarter of the window");
        filter.update(4, 70);
        assert_eq!(rounds(&filter), [0, 4, 4]);
        filter.update(6, 60);
        assert_eq!(rounds(&filter), [0, 4, 4], "half of the window");
        filter.update(7, 60);
        assert_eq!(rounds(&filter), [0, 4, 7]);
        filter.update(8, 65);
        assert_eq!(rounds(&filter), [0, 4, 8], "it is larger");
        filter.update(9, 60);
        assert_eq!(filter.best.map(|sample| sample.value), [100, 70, 65]);
        filter
    }

    #[test]
    fn younger_samples_replace_those_that_leave_the_window() {
        let after = |round| {
            let mut filter = spread();
            filter.update(round, 10);
            filter.get()
        };
        let largest = [12, 13, 16, 17, 20, 21].map(after);
        assert_eq!(largest, [100, 70, 70, 65, 65, 10]);
    }
}
