//! Retry packets (RFC 9000, section 17.2.5; RFC 9001, section 5.8; RFC 9369, section 3).
//!
//! ```text
//! Retry Packet {
//!   Header Form (1) = 1,
//!   Fixed Bit (1) = 1,
//!   Long Packet Type (2) = 3 in version 1, 0 in version 2,
//!   Unused (4),
//!   Version (32),
//!   DCID Len (8), DCID (0..160),
//!   SCID Len (8), SCID (0..160),
//!   Retry Token (..),
//!   Retry Integrity Tag (128),
//! }
//! ```

use super::{
    HeaderError, Version,
    header::{RETRY, form_bits},
};
use crate::ConnectionId;

/// Length of the integrity tag in bytes.
const TAG_LEN: usize = 16;

/// A Retry packet: the server asks the client to repeat its Initial packet with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    /// Version of the packet that it answers.
    pub version: Version,
    /// Destination connection ID: the client's source ID.
    pub dcid: ConnectionId,
    /// Source connection ID: the destination of the client's next Initial packet.
    pub scid: ConnectionId,
    /// The token that the next Initial packet must carry; never empty.
    pub token: &'a [u8],
    /// The AEAD tag over the [pseudo-packet](pseudo_packet).
    pub integrity_tag: [u8; TAG_LEN],
    /// The packet without its tag.
    pub without_tag: &'a [u8],
}

impl<'a> Retry<'a> {
    /// `left` is the number of bytes that follow the connection IDs.
    pub(super) fn decode(
        version: Version,
        dcid: ConnectionId,
        scid: ConnectionId,
        packet: &'a [u8],
        left: usize,
    ) -> Result<Self, HeaderError> {
        let (without_tag, tag) = packet
            .split_last_chunk::<TAG_LEN>()
            .ok_or(HeaderError::Truncated)?;
        let token = without_tag
            .get(packet.len() - left..)
            .ok_or(HeaderError::Truncated)?;
        if token.is_empty() {
            return Err(HeaderError::EmptyRetryToken);
        }
        Ok(Self {
            version,
            dcid,
            scid,
            token,
            integrity_tag: *tag,
            without_tag,
        })
    }

    /// Appends the packet without its integrity tag, which the caller appends.
    ///
    /// The lower four bits of `random` fill the unused bits of the first byte.
    pub fn encode_without_tag(
        version: Version,
        dcid: ConnectionId,
        scid: ConnectionId,
        token: &[u8],
        random: u8,
        buf: &mut Vec<u8>,
    ) {
        buf.push(form_bits(true, false) | version.type_bits(RETRY) << 4 | random & 0x0f);
        buf.extend_from_slice(&version.number().to_be_bytes());
        for id in [dcid, scid] {
            buf.push(id.len() as u8);
            buf.extend_from_slice(&id);
        }
        buf.extend_from_slice(token);
    }
}

/// The Retry pseudo-packet that the integrity tag authenticates: the original destination connection
/// ID, followed by the packet without its tag (RFC 9001, section 5.8).
pub fn pseudo_packet(original_dcid: ConnectionId, retry_without_tag: &[u8]) -> Vec<u8> {
    let mut pseudo = Vec::with_capacity(1 + original_dcid.len() + retry_without_tag.len());
    pseudo.push(original_dcid.len() as u8);
    pseudo.extend_from_slice(&original_dcid);
    pseudo.extend_from_slice(retry_without_tag);
    pseudo
}
