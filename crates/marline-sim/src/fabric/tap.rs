//! Observing and filtering packets.

use marline_link::{DropReason, Packet, Time};

use super::{MediumId, Node};

/// Called for every packet that enters a medium, leaves it, or is lost, in order of time.
pub type Tap<B> = Box<dyn FnMut(&PacketEvent<'_, B>) + Send>;

/// A function that returns whether a packet that a node sent over a medium is lost; see
/// [`Fabric::set_filter`](super::Fabric::set_filter).
pub type Filter<B> = Box<dyn FnMut(Node, &Packet<B>) -> bool + Send>;

/// A packet that enters a medium, leaves it, or is lost.
#[derive(Debug)]
pub struct PacketEvent<'a, B> {
    /// Time of the event.
    pub at: Time,
    /// Medium; `None` if the packet had no route.
    pub medium: Option<MediumId>,
    /// Node that sent it over this medium.
    pub from: Node,
    /// Node at the other end of this medium; `None` if it had no route.
    pub to: Option<Node>,
    /// The packet.
    pub packet: &'a Packet<B>,
    /// Event of the packet.
    pub verdict: Verdict,
}

/// The event of a packet on a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet entered the medium.
    Entered,
    /// The packet arrived at the other end.
    Left,
    /// The packet was lost.
    Dropped(DropReason),
}
