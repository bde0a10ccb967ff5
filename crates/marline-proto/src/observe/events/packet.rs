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
    /// Unknown: not recognizable from its bytes.
    Unknown,
}

impl PacketKind {
    /// The packet number space of this kind; `None` if it has no packet number.
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
    /// Space of Initial packets.
    Initial,
    /// Space of Handshake packets.
    Handshake,
    /// Space of 0-RTT and 1-RTT packets.
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
    /// Congestion Experienced (CE).
    Ce,
}

impl Ecn {
    /// The codepoint of a datagram; `None` is not ECN capable.
    pub(crate) const fn of(codepoint: Option<EcnCodepoint>) -> Self {
        match codepoint {
            None => Self::NotEct,
            Some(EcnCodepoint::Ect0) => Self::Ect0,
            Some(EcnCodepoint::Ect1) => Self::Ect1,
            Some(EcnCodepoint::Ce) => Self::Ce,
        }
    }
}

/// The cause of a sent packet, other than new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendTrigger {
    /// Retransmission of a packet lost by packet threshold (RFC 9002, section 6.1.1).
    RetransmitReordered,
    /// Retransmission of a packet lost by time threshold (RFC 9002, section 6.1.2).
    RetransmitTimeout,
    /// The probe timeout fired (RFC 9002, section 6.2.4).
    PtoProbe,
    /// Retransmission of handshake data before the PTO (RFC 9002, section 6.2.3).
    RetransmitCrypto,
}

/// A packet was protected and passed on for sending.
#[derive(Clone, Copy, Debug)]
pub struct PacketSent<'a> {
    /// Path on which it is sent.
    pub path: PathId,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Packet number, if its kind has one.
    pub number: Option<u64>,
    /// Size of the whole packet including header and tag, in bytes.
    pub size: usize,
    /// Frames in plaintext.
    pub payload: &'a [u8],
    /// ECN codepoint of the datagram.
    pub ecn: Ecn,
    /// Number of the datagram, shared by coalesced packets.
    pub datagram: u32,
    /// Whether it is a PMTU probe (RFC 9000, section 14.4).
    pub is_mtu_probe: bool,
    /// Cause, other than new data.
    pub trigger: Option<SendTrigger>,
}

/// A packet was received and its protection removed.
#[derive(Clone, Copy, Debug)]
pub struct PacketReceived<'a> {
    /// Path on which it was received.
    pub path: PathId,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Packet number, if its kind has one.
    pub number: Option<u64>,
    /// Size of the whole packet including header and tag, in bytes.
    pub size: usize,
    /// Frames in plaintext.
    pub payload: &'a [u8],
    /// ECN codepoint of the datagram.
    pub ecn: Ecn,
    /// Number of the datagram, shared by coalesced packets.
    pub datagram: u32,
}

/// The reason why a packet was dropped.
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
    /// Its authentication tag is invalid.
    DecryptionFailure,
    /// Its keys are not available yet, or were discarded.
    KeyUnavailable,
    /// Another reason.
    General,
}

/// A packet was dropped.
#[derive(Clone, Copy, Debug)]
pub struct PacketDropped {
    /// Path on which it was received, if known.
    pub path: Option<PathId>,
    /// Kind of the packet, as far as known.
    pub kind: PacketKind,
    /// Size of the packet in bytes.
    pub size: usize,
    /// Reason.
    pub trigger: DropTrigger,
}

/// Packets were acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub struct PacketsAcked<'a> {
    /// Path on which they were sent.
    pub path: PathId,
    /// Packet number space.
    pub space: PacketNumberSpace,
    /// Packet numbers.
    pub numbers: &'a [u64],
}
