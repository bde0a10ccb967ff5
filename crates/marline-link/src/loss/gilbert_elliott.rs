//! Loss bursts measured in packets.

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::{bernoulli, two_uniforms};
use crate::{Seed, Time};

/// The Gilbert-Elliott model: a Markov chain of a good and a bad state with one step per packet.
///
/// Parameters are named as in the literature and in netem's `loss gemodel`.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    /// Probability of the transition from good to bad, per packet.
    p: f64,
    /// Probability of the transition from bad to good, per packet.
    r: f64,
    /// Loss probability in the bad state.
    bad_loss: f64,
    /// Loss probability in the good state.
    good_loss: f64,
    bad: bool,
    rng: Pcg64Mcg,
}

impl GilbertElliott {
    /// Transitions from good to bad with probability `p`, back with `r`; a packet is received in the
    /// bad state with probability `h`, in the good state with `k`. All from 0 to 1. Takes one draw per
    /// packet.
    ///
    /// The initial state is drawn from the stationary distribution, so that the first packets have the
    /// same loss probability as later ones.
    pub fn new(p: f64, r: f64, h: f64, k: f64, seed: Seed) -> Self {
        let mut rng = seed.rng();
        let bad_share = if p + r > 0.0 { p / (p + r) } else { 0.0 };
        Self {
            p,
            r,
            bad_loss: 1.0 - h,
            good_loss: 1.0 - k,
            bad: bernoulli(&mut rng, bad_share),
            rng,
        }
    }

    /// Loses `share` of the packets, in [0, 1), in bursts of `burst` packets on average, at least 1
    /// (h = 0, k = 1, r = 1/burst, p = share r / (1 - share)).
    pub fn of_bursts(share: f64, burst: f64, seed: Seed) -> Self {
        let r = 1.0 / burst;
        Self::new((share * r / (1.0 - share)).min(1.0), r, 0.0, 1.0, seed)
    }

    /// The long-term loss probability.
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
        let [loss_draw, transition_draw] = two_uniforms(&mut self.rng);
        let (loss, leave) = if self.bad {
            (self.bad_loss, self.r)
        } else {
            (self.good_loss, self.p)
        };
        self.bad ^= transition_draw < leave;
        loss_draw < loss
    }
}
