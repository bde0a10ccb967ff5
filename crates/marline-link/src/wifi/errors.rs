//! Transmission errors of MPDUs, without collisions.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::Seed;

/// Error rates per transmission. Failed MPDUs are retransmitted up to the retry limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Probability that an MPDU fails, independent of its size.
    pub mpdu: f64,
    /// Bit error rate; an MPDU fails if any of its bits is wrong.
    pub bit: f64,
    /// Fades that last longer than a PPDU.
    pub fades: Option<Fades>,
}

/// A Gilbert-Elliott model with one step per PPDU, for each pair of sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fades {
    /// Probability per PPDU that a fade begins.
    pub begin: f64,
    /// Probability per PPDU that a fade ends.
    pub end: f64,
    /// Probability that an MPDU fails in a fade, in addition to other errors.
    pub mpdu: f64,
}

impl Errors {
    /// The probabilities with their names, for checks.
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

/// The radio channel from one station to another.
#[derive(Debug)]
pub(super) struct Channel {
    errors: Errors,
    /// Whether a fade is in progress.
    fading: bool,
    /// Generator of MPDU errors.
    errors_rng: Pcg64Mcg,
    /// Generator of fades.
    fades_rng: Pcg64Mcg,
}

impl Channel {
    /// A channel that starts without a fade.
    pub(super) fn new(errors: Errors, seed: Seed) -> Self {
        Self {
            errors,
            fading: false,
            errors_rng: seed.of("noise").rng(),
            fades_rng: seed.of("fades").rng(),
        }
    }

    /// Sets the bit error rate of the following MPDUs.
    pub(super) const fn set_bit_errors(&mut self, rate: f64) {
        self.errors.bit = rate;
    }

    /// Advances the fading process by one PPDU.
    pub(super) fn step(&mut self) {
        if let Some(fades) = self.errors.fades {
            let change = if self.fading { fades.end } else { fades.begin };
            self.fading ^= self.fades_rng.random::<f64>() < change;
        }
    }

    /// Whether the error probability of an MPDU depends on its size.
    pub(super) fn depends_on_size(&self) -> bool {
        self.errors.bit > 0.0
    }

    /// Whether the next MPDU, of `bytes` bytes, fails.
    pub(super) fn fails(&mut self, bytes: u32) -> bool {
        let mut passes = 1.0 - self.errors.mpdu;
        if self.errors.bit > 0.0 {
            passes *= libm::exp(libm::log1p(-self.errors.bit) * 8.0 * f64::from(bytes));
        }
        if let (true, Some(fades)) = (self.fading, self.errors.fades) {
            passes *= 1.0 - fades.mpdu;
        }
        passes < 1.0 && self.errors_rng.random::<f64>() >= passes
    }
}

#[cfg(test)]
mod tests {
    use super::{Channel, Errors, Fades};
    use crate::Seed;

    /// Measured errors.
    struct Measured {
        /// The share of MPDUs that fail.
        share: f64,
        /// The mean number of consecutive PPDUs that lose all MPDUs.
        run: f64,
    }

    /// Measures errors over PPDUs of ten MPDUs each.
    fn measure(errors: Errors, bytes: u32) -> Measured {
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
        Measured {
            share: failed as f64 / (10 * ppdus) as f64,
            run: bad as f64 / runs.max(1) as f64,
        }
    }

    #[test]
    fn mpdus_fail_with_the_configured_probability() {
        let Measured { share, .. } = measure(
            Errors {
                mpdu: 0.1,
                ..Errors::default()
            },
            1538,
        );
        assert!((share - 0.1).abs() < 0.002, "{share}");
    }

    #[test]
    fn bit_errors_affect_longer_mpdus_more() {
        let errors = Errors {
            bit: 1e-5,
            ..Errors::default()
        };
        // 1 - (1 - 1e-5)^(8 * 1538) = 0.1158.
        let long = measure(errors, 1538).share;
        assert!((long - 0.1158).abs() < 0.002, "{long}");
        let short = measure(errors, 102).share;
        assert!((short - 0.0081).abs() < 0.001, "{short}");
    }

    #[test]
    fn fades_have_the_configured_share_and_duration() {
        let Measured { share, run } = measure(
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
