//! Which MPDUs are not understood, when nobody else speaks.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::Seed;

/// What noise destroys, of each transmission; retries come before anything is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// The probability that an MPDU fails.
    pub mpdu: f64,
    /// The probability that a bit flips; an MPDU fails with any of its bits.
    pub bit: f64,
    /// Bad times that last longer than a PPDU.
    pub fades: Option<Fades>,
}

/// The model of Gilbert and Elliott, a step a PPDU, for each sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fades {
    /// The probability that a good time ends with a PPDU.
    pub begin: f64,
    /// The probability that a bad time ends with a PPDU.
    pub end: f64,
    /// The probability that an MPDU fails in a bad time, besides its other errors.
    pub mpdu: f64,
}

impl Errors {
    /// The probabilities, with their names.
    pub(super) fn probabilities(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let fades = self.fades.map(|fades| {
            [
                ("errors.fades.begin", fades.begin),
                ("errors.fades.end", fades.end),
                ("errors.fades.mpdu", fades.mpdu),
            ]
        });
        [("errors.mpdu", self.mpdu), ("errors.bit", self.bit)]
            .into_iter()
            .chain(fades.into_iter().flatten())
    }
}

/// The air from one station to another.
#[derive(Debug)]
pub(super) struct Channel {
    errors: Errors,
    /// In a bad time.
    fading: bool,
    /// Which MPDUs fail.
    noise: Pcg64Mcg,
    /// When times change.
    weather: Pcg64Mcg,
}

impl Channel {
    /// Begins in a good time.
    pub(super) fn new(errors: Errors, seed: Seed) -> Self {
        Self {
            errors,
            fading: false,
            noise: seed.of("noise").rng(),
            weather: seed.of("fades").rng(),
        }
    }

    /// Another PPDU passes.
    pub(super) fn step(&mut self) {
        if let Some(fades) = self.errors.fades {
            let change = if self.fading { fades.end } else { fades.begin };
            self.fading ^= self.weather.random::<f64>() < change;
        }
    }

    /// Whether the probability that an MPDU fails depends on its size.
    pub(super) fn minds_size(&self) -> bool {
        self.errors.bit > 0.0
    }

    /// Whether the next MPDU, of `bytes`, fails.
    pub(super) fn fails(&mut self, bytes: u32) -> bool {
        let mut passes = 1.0 - self.errors.mpdu;
        if self.errors.bit > 0.0 {
            passes *= libm::exp(libm::log1p(-self.errors.bit) * 8.0 * f64::from(bytes));
        }
        if let (true, Some(fades)) = (self.fading, self.errors.fades) {
            passes *= 1.0 - fades.mpdu;
        }
        passes < 1.0 && self.noise.random::<f64>() >= passes
    }
}

#[cfg(test)]
mod tests {
    use super::{Channel, Errors, Fades};
    use crate::Seed;

    /// The share of MPDUs that fail, ten a PPDU, and the number of PPDUs in a row that lose all of theirs.
    fn measure(errors: Errors, bytes: u32) -> (f64, f64) {
        let mut channel = Channel::new(errors, Seed::new(7));
        let ppdus = 100_000;
        let (mut failed, mut bad, mut runs, mut before) = (0, 0, 0, false);
        for _ in 0..ppdus {
            channel.step();
            let lost = (0..10).filter(|_| channel.fails(bytes)).count();
            failed += lost;
            let all = lost == 10;
            bad += usize::from(all);
            runs += usize::from(all && !before);
            before = all;
        }
        (
            failed as f64 / (10 * ppdus) as f64,
            bad as f64 / runs.max(1) as f64,
        )
    }

    #[test]
    fn mpdus_fail_as_often_as_asked() {
        let (share, _) = measure(
            Errors {
                mpdu: 0.1,
                ..Errors::default()
            },
            1538,
        );
        assert!((share - 0.1).abs() < 0.002, "{share}");
    }

    #[test]
    fn longer_mpdus_have_more_bits_to_lose() {
        let errors = Errors {
            bit: 1e-5,
            ..Errors::default()
        };
        // 1 - (1 - 1e-5)^(8 * 1538) = 0.1158.
        let (long, _) = measure(errors, 1538);
        assert!((long - 0.1158).abs() < 0.002, "{long}");
        let (short, _) = measure(errors, 102);
        assert!((short - 0.0081).abs() < 0.001, "{short}");
    }

    #[test]
    fn fades_last() {
        let (share, run) = measure(
            Errors {
                fades: Some(Fades {
                    begin: 0.01 * 0.25 / 0.99,
                    end: 0.25,
                    mpdu: 1.0,
                }),
                ..Errors::default()
            },
            1538,
        );
        assert!((share - 0.01).abs() < 0.001, "{share}");
        assert!((run - 4.0).abs() < 0.3, "{run}");
    }
}
