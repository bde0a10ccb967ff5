//! Supported versions, and Version Negotiation packets (RFC 8999, section 6; RFC 9000, section 17.2.1).
//!
//! ```text
//! Version Negotiation Packet {
//!   Header Form (1) = 1,
//!   Unused (7),
//!   Version (32) = 0,
//!   DCID Len (8), DCID (0..2040),
//!   SCID Len (8), SCID (0..2040),
//!   Supported Version (32) ...,
//! }
//! ```

use std::fmt;

use super::{HeaderError, bits};

/// QUIC version 1 (RFC 9000, section 15).
pub const VERSION_1: u32 = 1;

/// QUIC version 2 (RFC 9369, section 3.1).
pub const VERSION_2: u32 = 0x6b33_43cf;

/// A supported version of QUIC.
///
/// Frames and transport parameters are the same in both; the type bits of long headers (RFC 9369,
/// section 3.2), salts and key labels differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// RFC 9000.
    #[default]
    V1,
    /// RFC 9369.
    V2,
}

impl Version {
    /// Both versions.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// The version with this number in the Version field; `None` if it is not supported.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            VERSION_1 => Some(Self::V1),
            VERSION_2 => Some(Self::V2),
            _ => None,
        }
    }

    /// The number in the Version field.
    pub const fn number(self) -> u32 {
        match self {
            Self::V1 => VERSION_1,
            Self::V2 => VERSION_2,
        }
    }

    /// Offset of the type bits from those of version 1, modulo 4.
    const fn rotation(self) -> u8 {
        match self {
            Self::V1 => 0,
            Self::V2 => 1,
        }
    }

    /// The type bits of a long header in this version for those of version 1.
    pub(super) const fn type_bits(self, v1: u8) -> u8 {
        (v1 + self.rotation()) & 3
    }

    /// The type bits in version 1 of the type that has `bits` in this version.
    pub(super) const fn type_in_v1(self, bits: u8) -> u8 {
        bits.wrapping_sub(self.rotation()) & 3
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}

/// A Version Negotiation packet: the versions that the server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionNegotiation<'a> {
    /// Destination connection ID: the client's source ID. Up to 255 bytes.
    pub dcid: &'a [u8],
    /// Source connection ID: the client's destination ID. Up to 255 bytes.
    pub scid: &'a [u8],
    versions: &'a [u8],
}

impl<'a> VersionNegotiation<'a> {
    pub(super) fn decode(
        dcid: &'a [u8],
        scid: &'a [u8],
        versions: &'a [u8],
    ) -> Result<Self, HeaderError> {
        if versions.is_empty() || !versions.len().is_multiple_of(4) {
            return Err(HeaderError::VersionList);
        }
        Ok(Self {
            dcid,
            scid,
            versions,
        })
    }

    /// The versions offered, at least one.
    pub fn versions(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (versions, _) = self.versions.as_chunks();
        versions.iter().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Appends a complete packet that offers `versions`.
    ///
    /// The connection IDs are those of the packet it answers, swapped; each is cut to 255 bytes.
    /// `random` fills the unused bits of the first byte.
    pub fn encode(dcid: &[u8], scid: &[u8], versions: &[u32], random: u8, buf: &mut Vec<u8>) {
        buf.push(random | bits::LONG_FORM | bits::FIXED);
        buf.extend_from_slice(&[0; 4]);
        for id in [dcid, scid] {
            let id = &id[..id.len().min(255)];
            buf.push(id.len() as u8);
            buf.extend_from_slice(id);
        }
        for version in versions {
            buf.extend_from_slice(&version.to_be_bytes());
        }
    }
}
