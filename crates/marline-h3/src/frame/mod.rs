//! Frames (RFC 9114, section 7.2): their types, how they are written, and how they are found in a stream.

mod parser;

use bytes::Bytes;
use marline_wire::varint;

pub use self::parser::{FrameParser, Piece, Treatment};

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameType(pub u64);

impl FrameType {
    /// Content of a message.
    pub const DATA: Self = Self(0x00);
    /// A field section.
    pub const HEADERS: Self = Self(0x01);
    /// A push is not wanted any more.
    pub const CANCEL_PUSH: Self = Self(0x03);
    /// The settings of the sender.
    pub const SETTINGS: Self = Self(0x04);
    /// A push is announced.
    pub const PUSH_PROMISE: Self = Self(0x05);
    /// The sender accepts no more requests or pushes.
    pub const GOAWAY: Self = Self(0x07);
    /// Pushes that the client allows.
    pub const MAX_PUSH_ID: Self = Self(0x0d);
    /// The priority of a request (RFC 9218, section 7.2).
    pub const PRIORITY_UPDATE_REQUEST: Self = Self(0xf0700);
    /// The priority of a push (RFC 9218, section 7.2).
    pub const PRIORITY_UPDATE_PUSH: Self = Self(0xf0701);

    /// Whether it was a frame of HTTP/2 that HTTP/3 does not have: PRIORITY, PING, WINDOW_UPDATE, CONTINUATION
    /// (section 7.2.8).
    pub const fn is_http2_only(self) -> bool {
        matches!(self.0, 0x02 | 0x06 | 0x08 | 0x09)
    }
}

/// The `n`-th identifier that is reserved to be sent and ignored, of settings, frames and streams
/// (sections 6.2.3, 7.2.4.1 and 7.2.8).
///
/// The identifiers returned have an encoding of eight bytes each, so that the size of what is sent does not depend on
/// `n`.
pub(crate) const fn reserved(n: u64) -> u64 {
    /// The first of them from 2^30 on.
    const FIRST: u64 = 0x1f * ((1 << 30) / 0x1f + 1) + 0x21;
    FIRST + 0x1f * (n & 0xffff_ffff)
}

/// Appends the header of a frame.
pub(crate) fn encode_header(kind: FrameType, length: u64, buffer: &mut Vec<u8>) {
    varint::encode(kind.0, buffer);
    varint::encode(length, buffer);
}

/// Appends a frame.
pub(crate) fn encode(kind: FrameType, payload: &[u8], buffer: &mut Vec<u8>) {
    encode_header(kind, payload.len() as u64, buffer);
    buffer.extend_from_slice(payload);
}

/// The header of a DATA frame, to be followed by `length` bytes of content.
pub fn data_header(length: u64) -> Bytes {
    let mut header = Vec::with_capacity(9);
    encode_header(FrameType::DATA, length, &mut header);
    header.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_identifiers_have_the_form_that_is_reserved_and_one_size() {
        for n in [0, 1, 77, 0xffff_ffff, u64::MAX] {
            let id = reserved(n);
            assert_eq!((id - 0x21) % 0x1f, 0);
            assert_eq!(varint::size(id), 8);
        }
    }
}
