//! Packet number spaces and encryption levels.

use marline_wire::packet::ProtectedKind;

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
    /// All spaces, in the order in which a connection uses them.
    pub(crate) const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// An encryption level, which identifies the keys of a packet (RFC 9001, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncryptionLevel {
    Initial,
    ZeroRtt,
    Handshake,
    OneRtt,
}

impl EncryptionLevel {
    /// The packet number space of the level.
    pub(crate) const fn space(self) -> SpaceId {
        match self {
            Self::Initial => SpaceId::Initial,
            Self::Handshake => SpaceId::Handshake,
            Self::ZeroRtt | Self::OneRtt => SpaceId::Data,
        }
    }
}

impl From<ProtectedKind> for EncryptionLevel {
    fn from(kind: ProtectedKind) -> Self {
        match kind {
            ProtectedKind::Initial { .. } => Self::Initial,
            ProtectedKind::ZeroRtt => Self::ZeroRtt,
            ProtectedKind::Handshake => Self::Handshake,
            ProtectedKind::Short => Self::OneRtt,
        }
    }
}
