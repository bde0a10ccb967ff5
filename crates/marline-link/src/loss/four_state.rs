//! Bursts that let some packets through, and single losses between them.

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::unit;
use crate::{Seed, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Received, between bursts.
    Gap,
    /// Received, within a burst.
    InBurst,
    /// Lost, within a burst.
    Burst,
    /// Lost, on its own.
    Single,
}

/// The four-state Markov model of netem's `loss state`. One draw per packet.
pub struct FourState {
    chances: Chances,
    state: State,
    rng: Pcg64Mcg,
}

/// The chances of [`FourState`], from 0 to 1 per packet, by netem's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chances {
    /// From a gap into a burst of losses.
    pub p13: f64,
    /// From a burst back to a gap.
    pub p31: f64,
    /// From a loss in a burst to a packet that passes in it.
    pub p32: f64,
    /// From a packet that passes in a burst to a loss in it.
    pub p23: f64,
    /// From a gap to a loss on its own.
    pub p14: f64,
}

impl FourState {
    /// Starts between bursts.
    pub fn new(chances: Chances, seed: Seed) -> Self {
        Self {
            chances,
            state: State::Gap,
            rng: seed.rng(),
        }
    }
}

impl LossModel for FourState {
    fn loses(&mut self, _now: Time) -> bool {
        let Chances {
            p13,
            p31,
            p32,
            p23,
            p14,
        } = self.chances;
        let draw = unit(&mut self.rng);
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
