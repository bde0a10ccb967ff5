//! Contenders, and when each wants the medium.

use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::aggregate::Ppdu;
use super::backoff::Backoff;
use super::scan::nanos;
use crate::Seed;

/// A contender that always has something to say.
#[derive(Debug)]
pub(super) struct Rival {
    pub(super) backoff: Backoff,
    /// What it says, each time.
    pub(super) ppdu: Ppdu,
    /// It speaks now.
    pub(super) speaks: bool,
}

impl Rival {
    /// Has not spoken.
    pub(super) const fn new(backoff: Backoff, ppdu: Ppdu) -> Self {
        Self {
            backoff,
            ppdu,
            speaks: false,
        }
    }
}

/// When others take the medium, and for how long.
#[derive(Debug)]
pub(super) struct OnOff {
    busy_mean: f64,
    idle_mean: f64,
    /// When they want it next, in nanoseconds.
    pub(super) wants_at: u64,
    rng: Pcg64Mcg,
}

impl OnOff {
    /// `busy` and `duty` are those of [`Contender::OnOff`](super::Contender::OnOff); idle at first.
    pub(super) fn new(busy: Duration, duty: f64, seed: Seed) -> Self {
        let busy_mean = nanos(busy) as f64;
        let mut on_off = Self {
            busy_mean,
            idle_mean: busy_mean * (1.0 - duty) / duty,
            wants_at: 0,
            rng: seed.rng(),
        };
        on_off.wants_at = on_off.exponential(on_off.idle_mean);
        on_off
    }

    /// Takes the medium at `at`; until when.
    pub(super) fn take(&mut self, at: u64) -> u64 {
        let until = at.saturating_add(self.exponential(self.busy_mean));
        self.wants_at = until.saturating_add(self.exponential(self.idle_mean));
        until
    }

    /// Never zero, so that time moves on.
    fn exponential(&mut self, mean: f64) -> u64 {
        1 + (-mean * libm::log1p(-self.rng.random::<f64>())) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::OnOff;
    use crate::Seed;

    #[test]
    fn takes_its_share() {
        let mut on_off = OnOff::new(Duration::from_micros(9600), 0.155, Seed::new(3));
        let (mut busy, mut end) = (0, 0);
        let rounds = 50_000;
        for _ in 0..rounds {
            let at = on_off.wants_at;
            end = on_off.take(at);
            busy += end - at;
        }
        let duty = busy as f64 / end as f64;
        assert!((duty - 0.155).abs() < 0.003, "{duty}");
        let mean = busy as f64 / f64::from(rounds);
        assert!((mean / 9.6e6 - 1.0).abs() < 0.02, "{mean}");
    }
}
