//! Version Negotiation packets (RFC 8999, section 6; RFC 9000, section 17.2.1).
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

use super::{HeaderError, bits};

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
