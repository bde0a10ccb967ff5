//! Sealing and opening one packet in place (RFC 9001, sections 5.3 to 5.5).
//!
//! Every packet of a connection is sealed or opened here, without an allocation or copy. The nonce
//! contains the path ID (draft-ietf-quic-multipath-21, section 2.4); on path 0 it equals the nonce of
//! RFC 9001, which connections without multipath use:
//!
//! ```text
//! nonce = IV xor { Path ID (32), 0 (2), Packet Number (62) }
//! ```

use marline_wire::packet::bits;
use marline_wire::{ErrorCode, PathId, TransportError};

use super::{DirectionalKeys, HeaderProtectionKey, PacketKey};

/// Length of an AEAD's tag, in bytes.
pub(crate) const TAG_LEN: usize = 16;

/// Length of the sample for header protection, in bytes (RFC 9001, section 5.4.2).
const SAMPLE_LEN: usize = 16;

/// Distance from the start of the packet number to the sample: the longest packet number, in bytes.
const SAMPLE_DISTANCE: usize = 4;

/// The reason why a packet could not be opened. The packet is dropped; [`Fatal`](Self::Fatal) also
/// ends the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// Too short to hold a sample, a packet number and a tag.
    TooShort,
    /// Not sealed with this key, or altered.
    Unauthentic,
    /// The peer violated the protocol, or the limit of an AEAD is reached.
    Fatal(TransportError),
}

/// The fields of a packet that header protection covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unprotected {
    /// First byte, unprotected.
    pub(crate) first_byte: u8,
    /// Truncated packet number.
    pub(crate) truncated: u32,
    /// Length of the packet number in bytes, 1 to 4.
    pub(crate) number_len: usize,
}

impl Unprotected {
    /// Checks the reserved bits, which are authenticated only once the packet is opened.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if they are not zero (RFC 9000, sections 17.2 and 17.3.1).
    pub(crate) fn check_reserved_bits(self) -> Result<(), TransportError> {
        let reserved = if self.first_byte & bits::LONG_FORM == 0 {
            bits::RESERVED_SHORT
        } else {
            bits::RESERVED_LONG
        };
        if self.first_byte & reserved == 0 {
            Ok(())
        } else {
            Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "a reserved bit of the header is set",
            ))
        }
    }
}

/// Removes header protection from `packet`, whose packet number begins at `number_offset`.
///
/// # Errors
///
/// [`OpenError::TooShort`] if the packet holds no sample.
#[inline]
pub(crate) fn unprotect(
    header_key: &dyn HeaderProtectionKey,
    packet: &mut [u8],
    number_offset: usize,
) -> Result<Unprotected, OpenError> {
    if number_offset == 0 || packet.len() < number_offset + SAMPLE_DISTANCE + SAMPLE_LEN {
        return Err(OpenError::TooShort);
    }
    let (header, sampled) = packet.split_at_mut(number_offset + SAMPLE_DISTANCE);
    let (start, number) = header.split_at_mut(number_offset);
    header_key
        .decrypt_in_place(&sampled[..SAMPLE_LEN], &mut start[0], number)
        .map_err(|_| OpenError::TooShort)?;
    let number_len = usize::from(start[0] & bits::NUMBER_LEN) + 1;
    let truncated = number[..number_len]
        .iter()
        .fold(0, |value, &byte| value << 8 | u32::from(byte));
    Ok(Unprotected {
        first_byte: start[0],
        truncated,
        number_len,
    })
}

/// Opens `packet` number `number` of path `path_id` in place; its payload begins at
/// `payload_offset`. Returns the payload.
///
/// # Errors
///
/// [`OpenError::TooShort`] or [`OpenError::Unauthentic`]; the payload's bytes are then undefined.
#[inline]
pub(crate) fn open<'a>(
    key: &dyn PacketKey,
    path_id: PathId,
    number: u64,
    packet: &'a mut [u8],
    payload_offset: usize,
) -> Result<&'a [u8], OpenError> {
    if packet.len() < payload_offset + TAG_LEN {
        return Err(OpenError::TooShort);
    }
    let (header, payload) = packet.split_at_mut(payload_offset);
    if path_id == PathId::INITIAL {
        key.decrypt_in_place(number, header, payload)
    } else {
        key.decrypt_in_place_for_path(path_id.0, number, header, payload)
    }
    .map_err(|_| OpenError::Unauthentic)
}

/// A packet to seal: its position in a buffer that may hold others, and its full number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealing {
    /// Path of the packet number; 0 without multipath.
    pub(crate) path_id: PathId,
    /// Full packet number.
    pub(crate) number: u64,
    /// Offset of its first byte in the buffer.
    pub(crate) packet_start: usize,
    /// Offset of its packet number in the buffer.
    pub(crate) number_offset: usize,
    /// Offset of its payload in the buffer.
    pub(crate) payload_offset: usize,
}

/// Seals the packet that ends `buf`: encrypts the payload, appends the tag, protects the header.
///
/// # Panics
///
/// If the payload is too short for a sample: the caller must pad packet number and payload to at least
/// 4 bytes. If the path is not 0 and the ciphers of a custom rustls provider do not implement
/// `encrypt_in_place_for_path`; those of aws-lc-rs and ring do.
#[inline]
pub(crate) fn seal(keys: &DirectionalKeys, packet: Sealing, buf: &mut Vec<u8>) {
    seal_with(&*keys.packet, &*keys.header, packet, buf);
}

/// As [`seal`], with separate keys: key updates replace only the packet key.
#[inline]
pub(super) fn seal_with(
    packet_key: &dyn PacketKey,
    header_key: &dyn HeaderProtectionKey,
    packet: Sealing,
    buf: &mut Vec<u8>,
) {
    let (header, payload) =
        buf[packet.packet_start..].split_at_mut(packet.payload_offset - packet.packet_start);
    let tag = if packet.path_id == PathId::INITIAL {
        packet_key.encrypt_in_place(packet.number, header, payload)
    } else {
        packet_key.encrypt_in_place_for_path(packet.path_id.0, packet.number, header, payload)
    }
    .expect("a datagram is far below the limit of every AEAD");
    buf.extend_from_slice(tag.as_ref());

    let sample_offset = packet.number_offset + SAMPLE_DISTANCE;
    debug_assert!(
        buf.len() >= sample_offset + SAMPLE_LEN,
        "too short to sample: the caller pads"
    );
    let (header, sampled) = buf.split_at_mut(sample_offset);
    let (start, number) = header.split_at_mut(packet.number_offset);
    header_key
        .encrypt_in_place(
            &sampled[..SAMPLE_LEN],
            &mut start[packet.packet_start],
            &mut number[..packet.payload_offset - packet.number_offset],
        )
        .expect("the sample and the packet number have the right lengths");
}

#[cfg(test)]
mod tests;
