//! Watching what passes.

use marline_link::{DropReason, Packet, Time};

use super::{MediumId, Node};

/// Sees every packet that enters a medium, leaves it, or is lost; in the order of their times.
pub type Tap<B> = Box<dyn FnMut(&Passage<'_, B>) + Send>;

/// A packet passes.
#[derive(Debug)]
pub struct Passage<'a, B> {
    /// When.
    pub at: Time,
    /// On which medium; `None` if it found no way onto one.
    pub medium: Option<MediumId>,
    /// Who sent it over this medium.
    pub from: Node,
    /// To whom over this medium; `None` if it found no way onto one.
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
