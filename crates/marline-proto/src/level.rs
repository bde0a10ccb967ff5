//! Packet number spaces.

/// A packet number space and the encryption level whose CRYPTO data it carries (RFC 9000,
/// section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SpaceId {
    /// Initial packets.
    Initial = 0,
    /// Handshake packets.
    Handshake = 1,
    /// 0-RTT and 1-RTT packets; CRYPTO data in 1-RTT packets only.
    Data = 2,
}

impl SpaceId {
    /// All, in the order in which a connection uses them.
    pub(crate) const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}
