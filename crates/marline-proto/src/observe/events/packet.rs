//! Packets that are sent, received, dropped or acknowledged.

use marline_wire::PathId;

use crate::tuple::EcnCodepoint;

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
    /// Unknown: its bytes do not show it.
    Unknown,
}

impl PacketKind {
    /// The packet number space of its number; `None` if it has no number.
    pub const fn space(self) -> Option<PacketNumberSpace> {
        match self {
            Self::Initial => Some(PacketNumberSpace::Initial),
            Self::Handshake => Some(PacketNumberSpace::Handshake),
            Self::ZeroRtt | Self::OneRtt => Some(PacketNumberSpace::ApplicationData),
            Self::Retry | Self::VersionNegotiation | Self::StatelessReset | Self::Unknown => None,
        }
    }
}

/// A packet number space (RFC 9000, section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketNumberSpace {
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

impl Ecn {
    /// What a datagram carries; `None` is not ECN capable.
    pub(crate) const fn of(codepoint: Option<EcnCodepoint>) -> Self {
        match codepoint {
            None => Self::NotEct,
            Some(EcnCodepoint::Ect0) => Self::Ect0,
            Some(EcnCodepoint::Ect1) => Self::Ect1,
            Some(EcnCodepoint::Ce) => Self::Ce,
        }
    }
}

/// What caused a packet to be sent, other than new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendTrigger {
    /// It retransmits a packet lost by packet threshold (RFC 9002, section 6.1.1).
    RetransmitReordered,
    /// It retransmits a packet lost by time threshold (RFC 9002, section 6.1.2).
    RetransmitTimeout,
    /// The probe timeout fired (RFC 9002, section 6.2.4).
    PtoProbe,
    /// It retransmits handshake data before the PTO (RFC 9002, section 6.2.3).
    RetransmitCrypto,
}

/// A packet was sealed and handed over to be sent.
#[derive(Clone, Copy, Debug)]
pub struct PacketSent<'a> {
    /// The path it is sent on.
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
    /// What caused it, other than new data.
    pub trigger: Option<SendTrigger>,
}

/// A packet was opened: its protection was removed.
#[derive(Clone, Copy, Debug)]
pub struct PacketReceived<'a> {
    /// The path it was received on.
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

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropTrigger {
    /// An internal error of this end.
    InternalError,
    /// A limit was reached.
    Rejected,
    /// Its version is unknown.
    Unsupported,
    /// Its header is malformed.
    Invalid,
    /// A packet of this number was received before.
    Duplicate,
    /// It belongs to no connection.
    ConnectionUnknown,
    /// Its authentication tag is wrong.
    DecryptionFailure,
    /// Its keys are not available yet, or were discarded.
    KeyUnavailable,
    /// Something else.
    General,
}

/// A packet was dropped.
#[derive(Clone, Copy, Debug)]
pub struct PacketDropped {
    /// The path it was received on, if known.
    pub path: Option<PathId>,
    /// Its kind, as far as known.
    pub kind: PacketKind,
    /// Its bytes.
    pub size: usize,
    /// Why.
    pub trigger: DropTrigger,
}

/// Packets were acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub struct PacketsAcked<'a> {
    /// The path they were sent on.
    pub path: PathId,
    /// Their packet number space.
    pub space: PacketNumberSpace,
    /// Their numbers.
    pub numbers: &'a [u64],
}
