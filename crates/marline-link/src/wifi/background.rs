//! State of the other transmitters on the channel.

use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::aggregate::Ppdu;
use super::backoff::Backoff;
use super::scan::nanos;
use crate::Seed;

/// A saturated contender.
#[derive(Debug)]
pub(super) struct SaturatedStation {
    pub(super) backoff: Backoff,
    /// PPDU of each transmission.
    pub(super) ppdu: Ppdu,
    /// Whether the contender is transmitting.
    pub(super) transmits: bool,
}

impl SaturatedStation {
    /// A contender that has not transmitted yet.
    pub(super) const fn new(backoff: Backoff, ppdu: Ppdu) -> Self {
        Self {
            backoff,
            ppdu,
            transmits: false,
        }
    }
}

/// Interference that occupies the medium from time to time.
#[derive(Debug)]
pub(super) struct Interferer {
    busy_mean: f64,
    idle_mean: f64,
    /// Time of the next occupation, in nanoseconds.
    pub(super) due_at: u64,
    rng: Pcg64Mcg,
}

impl Interferer {
    /// `busy` and `duty` are those of [`Contender::OnOff`](super::Contender::OnOff); starts idle.
    pub(super) fn new(busy: Duration, duty: f64, seed: Seed) -> Self {
        let busy_mean = nanos(busy) as f64;
        let mut interferer = Self {
            busy_mean,
            idle_mean: busy_mean * (1.0 - duty) / duty,
            due_at: 0,
            rng: seed.rng(),
        };
        interferer.due_at = interferer.exponential(interferer.idle_mean);
        interferer
    }

    /// Occupies the medium at `at`; returns the end of the occupation.
    pub(super) fn occupy(&mut self, at: u64) -> u64 {
        let until = at.saturating_add(self.exponential(self.busy_mean));
        self.due_at = until.saturating_add(self.exponential(self.idle_mean));
        until
    }

    /// An exponential duration, never zero, so that time advances.
    fn exponential(&mut self, mean: f64) -> u64 {
        1 + (-mean * libm::log1p(-self.rng.random::<f64>())) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Interferer;
    use crate::Seed;

    #[test]
    fn interference_has_the_configured_duty_and_duration() {
        let mut interferer = Interferer::new(Duration::from_micros(9600), 0.155, Seed::new(3));
        let (mut busy, mut end) = (0, 0);
        let rounds = 50_000;
        for _ in 0..rounds {
            let at = interferer.due_at;
            end = interferer.occupy(at);
            busy += end - at;
        }
        let duty = busy as f64 / end as f64;
        assert!((duty - 0.155).abs() < 0.003, "{duty}");
        let mean = busy as f64 / f64::from(rounds);
        assert!((mean / 9.6e6 - 1.0).abs() < 0.02, "{mean}");
    }
}
