//! The four-state Markov model: loss bursts with some received packets, and isolated losses.

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::uniform;
use crate::{Seed, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Packets are received, outside a burst.
    Gap,
    /// Packets are received, within a burst.
    InBurst,
    /// Packets are lost, within a burst.
    Burst,
    /// An isolated loss.
    Single,
}

/// The four-state Markov model of netem's `loss state`. Takes one draw per packet.
pub struct FourState {
    probabilities: TransitionProbabilities,
    state: State,
    rng: Pcg64Mcg,
}

/// Transition probabilities of [`FourState`] per packet, from 0 to 1, with netem's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransitionProbabilities {
    /// From a gap to a loss burst.
    pub p13: f64,
    /// From a loss burst to a gap.
    pub p31: f64,
    /// From a loss to a received packet within a burst.
    pub p32: f64,
    /// From a received packet to a loss within a burst.
    pub p23: f64,
    /// From a gap to an isolated loss.
    pub p14: f64,
}

impl FourState {
    /// Starts in a gap.
    pub fn new(probabilities: TransitionProbabilities, seed: Seed) -> Self {
        Self {
            probabilities,
            state: State::Gap,
            rng: seed.rng(),
        }
    }
}

impl LossModel for FourState {
    fn loses(&mut self, _now: Time) -> bool {
        let TransitionProbabilities {
            p13,
            p31,
            p32,
            p23,
            p14,
        } = self.probabilities;
        let draw = uniform(&mut self.rng);
        self.state = match self.state {
            State::Gap if draw < p14 => State::Single,
            State::Gap if draw < p14 + p13 => State::Burst,
            State::Gap | State::Single => State::Gap,
            State::InBurst if draw < p23 => State::Burst,
            State::InBurst => State::InBurst,
            State::Burst if draw < p32 => State::InBurst,
            State::Burst if draw < p32 + p31 => State::Gap,
            State::Burst => State::Burst,
        };
        matches!(self.state, State::Burst | State::Single)
    }
}
