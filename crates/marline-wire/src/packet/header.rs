//! Long and short headers (RFC 8999; RFC 9000, sections 17.2 and 17.3; RFC 9369, section 3.2).
//!
//! ```text
//! Long Header Packet {                 1-RTT Packet {
//!   Header Form (1) = 1,                 Header Form (1) = 0,
//!   Fixed Bit (1) = 1,                   Fixed Bit (1) = 1,
//!   Long Packet Type (2),                Spin Bit (1),
//!   Reserved Bits (2),                   Reserved Bits (2),
//!   Packet Number Length (2),            Key Phase (1),
//!   Version (32),                        Packet Number Length (2),
//!   DCID Len (8), DCID (0..160),         DCID (0..160),
//!   SCID Len (8), SCID (0..160),         Packet Number (8..32),
//!   Token Length (i), Token (..),        Payload (8..),
//!   Length (i),                        }
//!   Packet Number (8..32),
//!   Payload (8..),
//! }
//! ```
//!
//! Only Initial packets have a token.

use std::{fmt, ops::Range};

use super::{Retry, TruncatedNumber, Version, VersionNegotiation, bits};
use crate::{ConnectionId, Reader, Truncated, varint};

/// The kinds of packet with a long header, a packet number and a payload; the values are the type bits of
/// version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongType {
    /// The first flight and its acknowledgments (section 17.2.2).
    Initial = 0,
    /// Early data (section 17.2.3).
    ZeroRtt = 1,
    /// The remainder of the handshake (section 17.2.4).
    Handshake = 2,
}

/// The type bits of a Retry packet of version 1.
pub(super) const RETRY: u8 = 3;

/// Header form and fixed bit of the first byte of a header to be sent.
pub(super) const fn form_bits(long: bool, clear_fixed_bit: bool) -> u8 {
    let form = if long { bits::LONG_FORM } else { 0 };
    let fixed = if clear_fixed_bit { 0 } else { bits::FIXED };
    form | fixed
}

/// The position of a field, as byte offsets from the start of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The span as a range, for indexing.
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// The type of a protected packet, with the fields specific to the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectedKind {
    /// An Initial packet.
    Initial {
        /// Position of the address validation token; empty if there is none.
        token: Span,
    },
    /// A 0-RTT packet.
    ZeroRtt,
    /// A Handshake packet.
    Handshake,
    /// A 1-RTT packet.
    Short,
}

/// The header of one packet of a datagram, before its header protection is removed.
///
/// It holds offsets instead of borrows, because the caller decrypts the same bytes in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectedHeader {
    /// The packet type.
    pub kind: ProtectedKind,
    /// Version of a long header; `None` in a short header, which does not contain it.
    pub version: Option<Version>,
    /// Destination connection ID.
    pub dcid: ConnectionId,
    /// Source connection ID; empty in a short header, which has none.
    pub scid: ConnectionId,
    /// The first byte, whose lower bits are still protected.
    pub first_byte: u8,
    /// Offset of the packet number from the start of the packet, in bytes; at most [`len`](Self::len).
    pub number_offset: usize,
    /// Length of the packet in bytes; the next packet of the datagram follows it. A packet with a
    /// short header has no length field and extends to the end of the datagram.
    pub len: usize,
}

impl ProtectedHeader {
    /// The token of an Initial packet that begins `packet`; empty for all other kinds.
    pub fn token<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        match self.kind {
            ProtectedKind::Initial { token } => packet.get(token.range()).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// A packet parsed by [`parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A packet of a known version with header and packet protection.
    Protected(ProtectedHeader),
    /// A Version Negotiation packet; extends to the end of the datagram.
    VersionNegotiation(VersionNegotiation<'a>),
    /// A Retry packet; extends to the end of the datagram.
    Retry(Retry<'a>),
    /// A long header of an unsupported version. The format after the connection IDs is unknown.
    UnsupportedVersion {
        /// The version of the packet.
        version: u32,
        /// Destination connection ID, up to 255 bytes.
        dcid: &'a [u8],
        /// Source connection ID, up to 255 bytes.
        scid: &'a [u8],
    },
}

/// The reason why a packet could not be parsed. Such datagrams are dropped; they do not close the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The datagram ends within the header, or is shorter than its Length field.
    Truncated,
    /// The fixed bit is 0.
    FixedBit,
    /// A connection ID of more than 20 bytes in a known version.
    TooLongConnectionId,
    /// A Retry packet without a token (RFC 9000, section 17.2.5.2).
    EmptyRetryToken,
    /// A Version Negotiation packet whose list is empty or not a multiple of four bytes.
    VersionList,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the datagram ends before the packet does",
            Self::FixedBit => "the fixed bit is 0",
            Self::TooLongConnectionId => "a connection ID is longer than 20 bytes",
            Self::EmptyRetryToken => "the Retry packet has no token",
            Self::VersionList => "the list of versions is empty or not a multiple of four bytes",
        })
    }
}

impl std::error::Error for HeaderError {}

impl From<Truncated> for HeaderError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

fn connection_id(bytes: &[u8]) -> Result<ConnectionId, HeaderError> {
    ConnectionId::new(bytes).ok_or(HeaderError::TooLongConnectionId)
}

/// Parses the first packet of `bytes`, a datagram or the rest of one.
///
/// A short header does not contain the length of its connection ID; `local_cid_len` is that length in
/// bytes. `accept_cleared_fixed_bit` is set by endpoints that sent `grease_quic_bit` (RFC 9287).
///
/// # Errors
///
/// [`HeaderError`] if no packet can be parsed; the rest of the datagram is then unusable.
#[inline]
pub fn parse(
    bytes: &[u8],
    local_cid_len: usize,
    accept_cleared_fixed_bit: bool,
) -> Result<Packet<'_>, HeaderError> {
    let mut reader = Reader::new(bytes);
    let first_byte = reader.u8()?;
    let fixed_bit_holds = accept_cleared_fixed_bit || first_byte & bits::FIXED != 0;
    if first_byte & bits::LONG_FORM != 0 {
        return parse_long(bytes, first_byte, fixed_bit_holds);
    }
    if !fixed_bit_holds {
        return Err(HeaderError::FixedBit);
    }
    let dcid = connection_id(reader.take(local_cid_len)?)?;
    Ok(Packet::Protected(ProtectedHeader {
        kind: ProtectedKind::Short,
        version: None,
        dcid,
        scid: ConnectionId::EMPTY,
        first_byte,
        number_offset: bytes.len() - reader.len(),
        len: bytes.len(),
    }))
}

fn parse_long(
    bytes: &[u8],
    first_byte: u8,
    fixed_bit_holds: bool,
) -> Result<Packet<'_>, HeaderError> {
    let mut reader = Reader::new(bytes);
    reader.u8()?;
    let version = reader.u32()?;
    let dcid_len = reader.u8()?;
    let dcid = reader.take(dcid_len.into())?;
    let scid_len = reader.u8()?;
    let scid = reader.take(scid_len.into())?;
    if version == 0 {
        return VersionNegotiation::decode(dcid, scid, reader.rest())
            .map(Packet::VersionNegotiation);
    }
    let Some(version) = Version::from_number(version) else {
        return Ok(Packet::UnsupportedVersion {
            version,
            dcid,
            scid,
        });
    };
    if !fixed_bit_holds {
        return Err(HeaderError::FixedBit);
    }
    let (dcid, scid) = (connection_id(dcid)?, connection_id(scid)?);
    let kind = match version.type_in_v1((first_byte & bits::LONG_TYPE) >> 4) {
        0 => {
            let token = reader.prefixed()?.len();
            let end = bytes.len() - reader.len();
            ProtectedKind::Initial {
                token: Span {
                    start: end - token,
                    end,
                },
            }
        }
        1 => ProtectedKind::ZeroRtt,
        2 => ProtectedKind::Handshake,
        _ => return Retry::decode(version, dcid, scid, bytes, reader.len()).map(Packet::Retry),
    };
    let length = reader.varint()?;
    let number_offset = bytes.len() - reader.len();
    let length = usize::try_from(length).map_err(|_| Truncated)?;
    reader.take(length)?;
    Ok(Packet::Protected(ProtectedHeader {
        kind,
        version: Some(version),
        dcid,
        scid,
        first_byte,
        number_offset,
        len: number_offset + length,
    }))
}

/// Parses the destination connection ID only, for routing.
///
/// Works for every version (RFC 8999): in a long header the ID may have up to 255 bytes, in a short
/// header it has `local_cid_len` bytes. `None` if the datagram is too short.
#[inline]
pub fn destination(bytes: &[u8], local_cid_len: usize) -> Option<&[u8]> {
    if bytes.first()? & bits::LONG_FORM == 0 {
        return bytes.get(1..)?.get(..local_cid_len);
    }
    let len = usize::from(*bytes.get(5)?);
    bytes.get(6..6 + len)
}

/// A long header to be sent.
#[derive(Clone, Copy, Debug)]
pub struct LongHeader<'a> {
    /// The packet type.
    pub kind: LongType,
    /// The QUIC version. An unknown one is written in the format of version 1.
    pub version: u32,
    /// Destination connection ID.
    pub dcid: ConnectionId,
    /// Source connection ID.
    pub scid: ConnectionId,
    /// The address validation token of an Initial packet; ignored for other types.
    pub token: &'a [u8],
}

/// Offsets of the fields of an encoded long header, in bytes from the start of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongHeaderEnd {
    /// The Length field, for [`patch_length`].
    pub length_offset: usize,
    /// The packet number.
    pub number_offset: usize,
    /// The first byte after the packet number.
    pub payload_offset: usize,
}

impl LongHeader<'_> {
    /// Appends the header including the packet number. The Length field is not known yet: two bytes
    /// are reserved for [`patch_length`].
    pub fn encode(
        &self,
        number: TruncatedNumber,
        clear_fixed_bit: bool,
        buf: &mut Vec<u8>,
    ) -> LongHeaderEnd {
        let form = form_bits(true, clear_fixed_bit);
        let version = Version::from_number(self.version).unwrap_or_default();
        let kind = version.type_bits(self.kind as u8);
        buf.push(form | kind << 4 | number.len_bits());
        buf.extend_from_slice(&self.version.to_be_bytes());
        for id in [&self.dcid, &self.scid] {
            buf.push(id.len() as u8);
            buf.extend_from_slice(id);
        }
        if self.kind == LongType::Initial {
            varint::encode(self.token.len() as u64, buf);
            buf.extend_from_slice(self.token);
        }
        let length_offset = buf.len();
        buf.extend_from_slice(&[0x40, 0]);
        let number_offset = buf.len();
        number.encode(buf);
        LongHeaderEnd {
            length_offset,
            number_offset,
            payload_offset: buf.len(),
        }
    }
}

/// Fills in the Length field that [`LongHeader::encode`] reserved. `length` is the size in bytes of
/// packet number, payload and AEAD tag together.
///
/// # Panics
///
/// If `length_offset` is not inside `buf`; in debug builds, if `length` exceeds 16383, which no
/// datagram of this stack does.
pub fn patch_length(buf: &mut [u8], length_offset: usize, length: usize) {
    debug_assert!(length < 1 << 14, "{length} does not fit a 2-byte integer");
    buf[length_offset..length_offset + 2].copy_from_slice(&(0x4000 | length as u16).to_be_bytes());
}

/// A short header to be sent.
#[derive(Clone, Copy, Debug)]
pub struct ShortHeader {
    /// Destination connection ID.
    pub dcid: ConnectionId,
    /// The spin bit.
    pub spin: bool,
    /// The key phase bit.
    pub key_phase: bool,
}

/// Offsets of the fields of an encoded short header, in bytes from the start of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortHeaderEnd {
    /// The packet number.
    pub number_offset: usize,
    /// The first byte after the packet number.
    pub payload_offset: usize,
}

impl ShortHeader {
    /// Appends the header including the packet number.
    #[inline]
    pub fn encode(
        &self,
        number: TruncatedNumber,
        clear_fixed_bit: bool,
        buf: &mut Vec<u8>,
    ) -> ShortHeaderEnd {
        let spin = if self.spin { bits::SPIN } else { 0 };
        let key_phase = if self.key_phase { bits::KEY_PHASE } else { 0 };
        buf.push(form_bits(false, clear_fixed_bit) | spin | key_phase | number.len_bits());
        buf.extend_from_slice(&self.dcid);
        let number_offset = buf.len();
        number.encode(buf);
        ShortHeaderEnd {
            number_offset,
            payload_offset: buf.len(),
        }
    }
}
