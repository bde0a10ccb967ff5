//! Observing and filtering packets.

use marline_link::{DropReason, Packet, Time};

use super::{MediumId, Node};

/// Called for every packet that enters a medium, leaves it, or is lost, in the order of their times.
pub type Tap<B> = Box<dyn FnMut(&Passage<'_, B>) + Send>;

/// Returns whether a packet that a node sent over a medium is lost; see
/// [`Fabric::set_filter`](super::Fabric::set_filter).
pub type Filter<B> = Box<dyn FnMut(Node, &Packet<B>) -> bool + Send>;

/// A packet enters a medium, leaves it, or is lost.
#[derive(Debug)]
pub struct Passage<'a, B> {
    /// When it happened.
    pub at: Time,
    /// The medium; `None` if the packet had no route.
    pub medium: Option<MediumId>,
    /// The node that sent it over this medium.
    pub from: Node,
    /// The node at the other end of this medium; `None` if it had no route.
    pub to: Option<Node>,
    /// The packet.
    pub packet: &'a Packet<B>,
    /// What happened.
    pub verdict: Verdict,
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It entered the medium.
    Entered,
    /// It arrived at the other side.
    Left,
    /// It was lost.
    Dropped(DropReason),
}
