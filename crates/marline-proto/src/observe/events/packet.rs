//! Packets come and go.

use super::PathId;

/// The kind of a packet (RFC 9000, section 17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// 1-RTT: a short header.
    OneRtt,
    /// Retry.
    Retry,
    /// Version Negotiation.
    VersionNegotiation,
    /// Stateless Reset.
    StatelessReset,
    /// Not to be told from its bytes.
    Unknown,
}

impl PacketKind {
    /// The space it takes its number from; `None` if it has no number.
    pub const fn space(self) -> Option<Space> {
        match self {
            Self::Initial => Some(Space::Initial),
            Self::Handshake => Some(Space::Handshake),
            Self::ZeroRtt | Self::OneRtt => Some(Space::ApplicationData),
            Self::Retry | Self::VersionNegotiation | Self::StatelessReset | Self::Unknown => None,
        }
    }
}

/// A packet number space (RFC 9000, section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Of Initial packets.
    Initial,
    /// Of Handshake packets.
    Handshake,
    /// Of 0-RTT and 1-RTT packets.
    ApplicationData,
}

/// The ECN bits of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN capable.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// Why a packet left that would not have left by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendTrigger {
    /// It repeats what a reordered packet lost (RFC 9002, section 6.1.1).
    RetransmitReordered,
    /// It repeats what a late packet lost (RFC 9002, section 6.1.2).
    RetransmitTimeout,
    /// The probe timeout fired (RFC 9002, section 6.2.4).
    PtoProbe,
    /// It repeats handshake data before the PTO (RFC 9002, section 6.2.3).
    RetransmitCrypto,
}

/// A packet was sealed and handed over.
#[derive(Clone, Copy, Debug)]
pub struct PacketSent<'a> {
    /// The path it takes.
    pub path: PathId,
    /// Its kind.
    pub kind: PacketKind,
    /// Its number, if its kind has one.
    pub number: Option<u64>,
    /// Bytes of the whole packet, header and tag included.
    pub size: usize,
    /// Its frames, in the clear.
    pub payload: &'a [u8],
    /// Marking of the datagram.
    pub ecn: Ecn,
    /// Number of the datagram, shared by packets that are coalesced.
    pub datagram: u32,
    /// Whether it probes for a larger datagram size (RFC 9000, section 14.4).
    pub is_mtu_probe: bool,
    /// What made it leave, if anything special did.
    pub trigger: Option<SendTrigger>,
}

/// A packet was opened.
#[derive(Clone, Copy, Debug)]
pub struct PacketReceived<'a> {
    /// The path it took.
    pub path: PathId,
    /// Its kind.
    pub kind: PacketKind,
    /// Its number, if its kind has one.
    pub number: Option<u64>,
    /// Bytes of the whole packet, header and tag included.
    pub size: usize,
    /// Its frames, in the clear.
    pub payload: &'a [u8],
    /// Marking of the datagram.
    pub ecn: Ecn,
    /// Number of the datagram, shared by packets that were coalesced.
    pub datagram: u32,
}

/// Why a packet was thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropTrigger {
    /// This end failed.
    InternalError,
    /// A limit was reached.
    Rejected,
    /// Its version is unknown.
    Unsupported,
    /// Its header is malformed.
    Invalid,
    /// It was here before.
    Duplicate,
    /// It belongs to no connection.
    ConnectionUnknown,
    /// Its tag does not fit.
    DecryptionFailure,
    /// Its keys are not here yet, or no more.
    KeyUnavailable,
    /// Something else.
    General,
}

/// A packet was thrown away unread.
#[derive(Clone, Copy, Debug)]
pub struct PacketDropped {
    /// The path it took, if one is known.
    pub path: Option<PathId>,
    /// Its kind as far as it can be told.
    pub kind: PacketKind,
    /// Its bytes.
    pub size: usize,
    /// Why.
    pub trigger: DropTrigger,
}

/// Packets were acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub struct PacketsAcked<'a> {
    /// The path they took.
    pub path: PathId,
    /// The space of their numbers.
    pub space: Space,
    /// Their numbers.
    pub numbers: &'a [u64],
}
