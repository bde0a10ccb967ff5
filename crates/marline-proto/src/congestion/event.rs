//! Congestion events that a controller has handled, for coordinators and observers.

use crate::level::SpaceId;
use crate::samples::{AckSample, LossSample};

/// An event that the congestion controller has handled, and its reaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CongestionEvent {
    /// Packets were marked Congestion Experienced (CE).
    Ce(Option<Reaction>),
    /// Packets were lost.
    Lost(LossSample, Option<Reaction>),
    /// Packets in this space were acknowledged.
    Acked(SpaceId, AckSample, Option<Reaction>),
}

impl CongestionEvent {
    /// The controller's reaction, if it reacted.
    pub(crate) fn reaction(&self) -> Option<&Reaction> {
        match self {
            Self::Ce(reaction) | Self::Lost(_, reaction) | Self::Acked(_, _, reaction) => {
                reaction.as_ref()
            }
        }
    }
}

/// The reaction of the controller to a new congestion event, or to a round-trip time that ended slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reaction {
    /// Whether congestion is persistent (RFC 9002, section 7.6).
    pub(crate) persistent: bool,
    /// Window before, in bytes.
    pub(crate) before: u64,
    /// Window afterwards, in bytes.
    pub(crate) after: u64,
}
