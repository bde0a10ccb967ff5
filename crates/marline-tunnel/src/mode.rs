//! The use of several networks.

use crate::copies::Copied;

/// The use of several networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Their rates together.
    #[default]
    Fast,
    /// The lowest delay and jitter: packets of flows with up to 4 Mbit/s, such as video calls, go by the network on which they arrive
    /// first, and by a second one.
    Steady,
    /// Mobile networks carry packets only while no other network does.
    Save,
}

impl Mode {
    /// The packets that are sent twice.
    pub(crate) const fn copied(self) -> Copied {
        match self {
            Self::Fast | Self::Save => Copied::Small,
            Self::Steady => Copied::Interactive,
        }
    }
}
