//! Stations whose packets nobody follows: they only occupy the air.

use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::aggregate::Ppdu;
use super::backoff::{Backoff, Edca};
use super::scan::nanos;
use crate::Seed;

/// Somebody else on the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contender {
    /// A station that always has something to say: it contends, collides, and backs off as others do.
    Saturated {
        /// How eagerly.
        edca: Edca,
        /// MPDUs of each of its PPDUs, within the limits of the medium.
        mpdus: u32,
        /// Bytes of each of its packets, IP header included.
        packet_bytes: u32,
    },
    /// Others, of this cell or of another, who take the medium as soon as it is free and keep it for a while; never
    /// in step with anybody, so that they collide with nobody.
    OnOff {
        /// The mean time for which they keep it, which is exponential.
        busy: Duration,
        /// The share of time they take from a medium that is otherwise idle, below 1; idle times are exponential too.
        duty: f64,
    },
}

impl Contender {
    /// Uploads packets of 1,500 bytes without end.
    pub const SATURATED: Self = Self::Saturated {
        edca: Edca::BEST_EFFORT,
        mpdus: 64,
        packet_bytes: 1500,
    };

    /// How eagerly it contends, if it does.
    pub(super) fn edca(&self) -> Option<Edca> {
        match self {
            Self::Saturated { edca, .. } => Some(*edca),
            Self::OnOff { .. } => None,
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        match self {
            Self::Saturated {
                mpdus,
                packet_bytes,
                ..
            } => *mpdus > 0 && *packet_bytes <= 11_000,
            Self::OnOff { busy, duty } => {
                *busy >= Duration::from_micros(1) && *duty > 0.0 && *duty < 1.0
            }
        }
    }
}

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
    /// `busy` and `duty` are those of [`Contender::OnOff`]; idle at first.
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
