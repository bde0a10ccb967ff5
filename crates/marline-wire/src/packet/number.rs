//! Packet numbers: 62 bits, of which the least significant one to four bytes are sent
//! (RFC 9000, section 17.1 and appendices A.2 and A.3).

use crate::varint;

/// The transmitted part of a packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedNumber {
    value: u32,
    len: u8,
}

impl TruncatedNumber {
    /// The `len` least significant bytes of `full`, 1 to 4.
    #[inline]
    const fn new(full: u64, len: u8) -> Self {
        Self {
            value: full as u32 & (u32::MAX >> (32 - 8 * len as u32)),
            len,
        }
    }

    /// The least significant bytes as an integer.
    #[inline]
    pub const fn value(self) -> u32 {
        self.value
    }

    /// Number of transmitted bytes: 1 to 4.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// Appends the bytes, big-endian.
    #[inline]
    pub fn encode(self, buf: &mut Vec<u8>) {
        buf.extend_from_slice(&self.value.to_be_bytes()[4 - self.len()..]);
    }

    /// The Packet Number Length bits of the first byte.
    pub(super) const fn len_bits(self) -> u8 {
        self.len - 1
    }
}

/// Truncates packet number `full` so that a peer known to have received `largest_acked` can
/// reconstruct it (RFC 9000, appendix A.2).
///
/// With more than 2^31 unacknowledged packets, four bytes are sent, which are ambiguous.
#[inline]
pub fn truncate(full: u64, largest_acked: Option<u64>) -> TruncatedNumber {
    TruncatedNumber::new(full, needed_len(unacked(full, largest_acked)))
}

/// As [`truncate`], for a packet that many later ones may overtake (RFC 9000, section 17.1): at least two bytes.
///
/// The peer reconstructs the number even if nearly twice as many later packets as are unacknowledged arrive first, or
/// 32766 if that is more: slow start sends twice as many in the next round trip. With more than 2^30 unacknowledged
/// packets there is no such margin.
#[inline]
pub fn truncate_for_reordering(full: u64, largest_acked: Option<u64>) -> TruncatedNumber {
    let unacked = unacked(full, largest_acked);
    TruncatedNumber::new(full, needed_len(unacked.saturating_mul(2)).max(2))
}

/// Distance from the largest packet number that the peer is known to have received.
const fn unacked(full: u64, largest_acked: Option<u64>) -> u64 {
    match largest_acked {
        Some(largest) => full.saturating_sub(largest),
        None => full.saturating_add(1),
    }
}

/// Number of bytes that represent at least twice `distance`.
const fn needed_len(distance: u64) -> u8 {
    match distance {
        0..=0x80 => 1,
        0x81..=0x8000 => 2,
        0x8001..=0x80_0000 => 3,
        _ => 4,
    }
}

/// Reconstructs a packet number: the one closest to the next expected whose least significant `len`
/// bytes are `truncated` (RFC 9000, appendix A.3).
///
/// `len` is clamped to 1 to 4, and `truncated` must fit in `len` bytes.
#[inline]
pub fn expand(largest_received: Option<u64>, truncated: u32, len: usize) -> u64 {
    let window = 1u64 << (8 * len.clamp(1, 4));
    let half = window / 2;
    let mask = window - 1;
    let expected = largest_received.map_or(0, |largest| largest.saturating_add(1));
    let candidate = expected & !mask | u64::from(truncated) & mask;
    if candidate.saturating_add(half) <= expected && candidate <= varint::MAX - window {
        candidate + window
    } else if candidate > expected.saturating_add(half) && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}
