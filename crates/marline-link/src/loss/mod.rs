//! Which packets get lost at random.
//!
//! Every model takes a fixed number of draws per packet from a generator of its own, whatever the
//! packet's size or fate: for equal seeds the same packets are lost, counted as they come.

mod bernoulli;
mod correlated;
mod four_state;
mod gilbert_elliott;
mod listed;
mod timed;

#[cfg(test)]
mod tests;

pub use bernoulli::Bernoulli;
pub use correlated::Correlated;
pub use four_state::{Chances, FourState};
pub use gilbert_elliott::GilbertElliott;
pub use listed::{Every, Listed};
pub use timed::Timed;

use crate::{DropReason, Guard, Packet, Time};

/// Says of one packet after the other whether it is lost.
pub trait LossModel: Send {
    /// Whether the packet that comes now is lost.
    fn loses(&mut self, now: Time) -> bool;
}

impl<M: LossModel + ?Sized> LossModel for Box<M> {
    fn loses(&mut self, now: Time) -> bool {
        (**self).loses(now)
    }
}

/// Drops what a model loses; a [`Guard`] for a [`Gate`](crate::Gate).
pub struct Loss<M>(pub M);

impl<M: LossModel> Guard for Loss<M> {
    fn inspect<B>(&mut self, now: Time, _packet: &mut Packet<B>) -> Option<DropReason> {
        self.0.loses(now).then_some(DropReason::Loss)
    }
}
