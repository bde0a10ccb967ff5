//! Losses that come in bursts of packets.

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::{happens, two_units};
use crate::{Seed, Time};

/// The model of Gilbert and Elliott: a good and a bad state, left by chance after each packet.
///
/// The parameters are those of the literature, and of netem's `loss gemodel`.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    /// From good to bad, per packet.
    p: f64,
    /// From bad to good, per packet.
    r: f64,
    /// What the bad state loses.
    bad_loss: f64,
    /// What the good state loses.
    good_loss: f64,
    bad: bool,
    rng: Pcg64Mcg,
}

impl GilbertElliott {
    /// Changes from good to bad with probability `p`, back with `r`; a packet passes in the bad state
    /// with probability `h`, in the good one with `k`. All from 0 to 1; one draw per packet.
    ///
    /// It starts in the bad state as often as it would be found in it, so that the first packets
    /// are lost like any others.
    pub fn new(p: f64, r: f64, h: f64, k: f64, seed: Seed) -> Self {
        let mut rng = seed.rng();
        let bad_share = if p + r > 0.0 { p / (p + r) } else { 0.0 };
        Self {
            p,
            r,
            bad_loss: 1.0 - h,
            good_loss: 1.0 - k,
            bad: happens(&mut rng, bad_share),
            rng,
        }
    }

    /// Loses `share` of the packets, from 0 up to, not including, 1, in runs of `burst` packets on
    /// average, at least 1 (h = 0, k = 1, r = 1/B, p = l r / (1 - l)).
    pub fn of_bursts(share: f64, burst: f64, seed: Seed) -> Self {
        let r = 1.0 / burst;
        Self::new((share * r / (1.0 - share)).min(1.0), r, 0.0, 1.0, seed)
    }

    /// What is lost in the long run.
    pub fn share(&self) -> f64 {
        let sum = self.p + self.r;
        if sum > 0.0 {
            (self.r * self.good_loss + self.p * self.bad_loss) / sum
        } else {
            self.good_loss
        }
    }
}

impl LossModel for GilbertElliott {
    fn loses(&mut self, _now: Time) -> bool {
        let [fate, change] = two_units(&mut self.rng);
        let (loss, leave) = if self.bad {
            (self.bad_loss, self.r)
        } else {
            (self.good_loss, self.p)
        };
        self.bad ^= change < leave;
        fate < loss
    }
}
