//! Models of random loss.
//!
//! Every model takes a fixed number of draws per packet from its own generator, independent of size
//! and outcome: equal seeds lose the same packets, by order of arrival.

mod bernoulli;
mod correlated;
mod four_state;
mod gilbert_elliott;
mod listed;
mod rows;
mod timed;

#[cfg(test)]
mod tests;

pub use bernoulli::Bernoulli;
pub use correlated::Correlated;
pub use four_state::{FourState, TransitionProbabilities};
pub use gilbert_elliott::GilbertElliott;
pub use listed::{Every, Listed};
pub use rows::Rows;
pub use timed::Timed;

use crate::{DropReason, Filter, Packet, Time};

/// Decides for each packet in turn whether it is lost.
pub trait LossModel: Send {
    /// Whether the packet that arrives at `now` is lost. Called once per packet.
    fn loses(&mut self, now: Time) -> bool;
}

impl<M: LossModel + ?Sized> LossModel for Box<M> {
    fn loses(&mut self, now: Time) -> bool {
        (**self).loses(now)
    }
}

/// A [`Filter`] that drops the packets which a [`LossModel`] loses.
pub struct Loss<M>(pub M);

impl<M: LossModel> Filter for Loss<M> {
    fn inspect<B>(&mut self, now: Time, _packet: &mut Packet<B>) -> Option<DropReason> {
        self.0.loses(now).then_some(DropReason::Loss)
    }
}
