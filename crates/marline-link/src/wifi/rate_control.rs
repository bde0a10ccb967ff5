//! The choice of the modulation.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::frame;
use super::phy::Phy;
use super::signal::Signal;
use crate::{Seed, Time};

#[cfg(test)]
mod tests;

/// How a station chooses its modulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RateControl {
    /// The configured one.
    #[default]
    Fixed,
    /// The one with the largest expected throughput at the present signal, which real stations do not know.
    Ideal,
    /// By the success of earlier transmissions, as Linux's Minstrel-HT: an average for each modulation every 50 ms, of which
    /// three quarters are the old value; the one with the largest product of average and rate; every tenth transmission
    /// tries another one; after a transmission without success, the safest one. There are no retry chains within a
    /// transmission, and only modulations of the configured number of streams.
    Minstrel,
}

/// The interval of updates of Minstrel, in nanoseconds.
const UPDATE: u64 = 50_000_000;

/// The share of the old value in an average.
const KEPT: f64 = 0.75;

/// One in this many transmissions tries another modulation.
const SAMPLING: u32 = 10;

/// The share of successes below which a modulation is of no use.
const USELESS: f64 = 0.1;

/// The share of successes above which more do not count.
const GOOD: f64 = 0.9;

/// The share of successes from which a modulation is safe.
const SAFE: f64 = 0.95;

/// The modulation of a transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chosen {
    pub(super) phy: Phy,
    /// The bit error rate; `None` if it does not depend on a signal.
    pub(super) bit_errors: Option<f64>,
}

/// The choice for one receiver.
#[derive(Debug)]
pub(super) struct Adaptation {
    signal: Option<Signal>,
    chooser: Chooser,
}

#[derive(Debug)]
enum Chooser {
    Fixed(Phy),
    Ideal(Vec<Phy>),
    Minstrel(Minstrel),
}

impl Adaptation {
    /// `None` if modulation and errors are constant.
    pub(super) fn new(
        control: RateControl,
        phy: Phy,
        signal: Option<Signal>,
        seed: Seed,
    ) -> Option<Self> {
        let chooser = match (control, &signal) {
            (RateControl::Fixed, None) => return None,
            (RateControl::Fixed, Some(_)) => Chooser::Fixed(phy),
            (RateControl::Ideal, _) => Chooser::Ideal(phy.alternatives().collect()),
            (RateControl::Minstrel, _) => Chooser::Minstrel(Minstrel::new(phy, seed)),
        };
        Some(Self { signal, chooser })
    }

    /// The modulation of a transmission that starts at `at`.
    pub(super) fn choose(&mut self, at: u64) -> Chosen {
        let now = Time::from_nanos(at);
        let signal = self.signal.as_ref();
        let errors = |phy: Phy| {
            let snr = signal.map(|signal| signal.snr_db(phy.width, now));
            snr.map(|snr| phy.bit_error_rate(snr))
        };
        let phy = match &mut self.chooser {
            Chooser::Fixed(phy) => *phy,
            Chooser::Minstrel(minstrel) => minstrel.choose(at),
            Chooser::Ideal(all) => {
                let expected = |phy: &Phy| {
                    let bits = 8.0 * f64::from(frame::mpdu(1500));
                    let passes = libm::exp(libm::log1p(-errors(*phy).unwrap_or(0.0)) * bits);
                    passes * phy.bits_per_second()
                };
                let better = |one: &Phy, other: &Phy| expected(one).total_cmp(&expected(other));
                let best = all.iter().copied().max_by(better);
                best.unwrap_or(all[0])
            }
        };
        Chosen {
            phy,
            bit_errors: errors(phy),
        }
    }

    /// The transmission that was chosen last had `mpdus`, of which `received` succeeded.
    pub(super) fn observe(&mut self, mpdus: u32, received: u32) {
        if let Chooser::Minstrel(minstrel) = &mut self.chooser {
            minstrel.observe(mpdus, received);
        }
    }
}

/// Minstrel's statistics of the modulations for one receiver.
#[derive(Debug)]
struct Minstrel {
    /// The slowest first.
    rates: Vec<Statistics>,
    /// Index of the one in use, of the safest, and of that of the present transmission.
    best: usize,
    safest: usize,
    present: usize,
    updated: u64,
    transmissions: u32,
    /// Whether the last transmission had no success.
    has_failed: bool,
    rng: Pcg64Mcg,
}

#[derive(Debug)]
struct Statistics {
    phy: Phy,
    mpdus: u32,
    received: u32,
    /// Average share of successes; `None` if it was never tried.
    success: Option<f64>,
}

impl Statistics {
    /// Expected throughput in bits per second.
    fn throughput(&self) -> f64 {
        match self.success {
            Some(success) if success >= USELESS => success.min(GOOD) * self.phy.bits_per_second(),
            _ => 0.0,
        }
    }
}

impl Minstrel {
    fn new(phy: Phy, seed: Seed) -> Self {
        let rates = phy.alternatives().map(|phy| Statistics {
            phy,
            mpdus: 0,
            received: 0,
            success: None,
        });
        Self {
            rates: rates.collect(),
            best: 0,
            safest: 0,
            present: 0,
            updated: 0,
            transmissions: 0,
            has_failed: false,
            rng: seed.rng(),
        }
    }

    fn choose(&mut self, at: u64) -> Phy {
        if at >= self.updated + UPDATE {
            self.update();
            self.updated = at;
        }
        self.transmissions = self.transmissions.wrapping_add(1);
        self.present = if self.has_failed {
            self.safest
        } else if self.transmissions.is_multiple_of(SAMPLING) {
            self.sample()
        } else {
            self.best
        };
        self.rates[self.present].phy
    }

    /// A modulation to try: one that would be faster, or the next slower one.
    fn sample(&mut self) -> usize {
        let from = self.best.saturating_sub(1);
        let others = (from..self.rates.len()).filter(|index| *index != self.best);
        let others: Vec<_> = others.collect();
        match others.len() {
            0 => self.best,
            count => others[self.rng.random_range(0..count)],
        }
    }

    fn observe(&mut self, mpdus: u32, received: u32) {
        let rate = &mut self.rates[self.present];
        rate.mpdus += mpdus;
        rate.received += received;
        self.has_failed = received == 0;
    }

    fn update(&mut self) {
        for rate in self.rates.iter_mut().filter(|rate| rate.mpdus > 0) {
            let share = f64::from(rate.received) / f64::from(rate.mpdus);
            let average = |old: f64| KEPT * old + (1.0 - KEPT) * share;
            rate.success = Some(rate.success.map_or(share, average));
            (rate.mpdus, rate.received) = (0, 0);
        }
        let (mut best, mut safest) = (0, 0);
        let success = |index: usize| self.rates[index].success.unwrap_or(0.0).min(SAFE);
        for index in 1..self.rates.len() {
            if self.rates[index].throughput() > self.rates[best].throughput() {
                best = index;
            }
            if self.rates[index].success.is_some() && success(index) >= success(safest) {
                safest = index;
            }
        }
        (self.best, self.safest) = (best, safest);
    }
}
