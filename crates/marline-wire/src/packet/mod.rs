//! Packet headers, as far as they can be decoded and encoded without keys (RFC 9000, section 17; RFC 9369,
//! section 3).
//!
//! A datagram holds one or more packets; [`parse`] decodes the first and returns its length. No
//! function here panics on input from a peer. Encoding functions that take offsets into the caller's
//! buffer document their panics.

pub mod bits;
pub mod header;
pub mod number;
pub mod retry;
pub mod version;

pub use header::{
    HeaderError, LongHeader, LongHeaderEnd, LongType, Packet, ProtectedHeader, ProtectedKind,
    ShortHeader, ShortHeaderEnd, Span, destination, parse, patch_length,
};
pub use number::{TruncatedNumber, expand, truncate, truncate_for_reordering};
pub use retry::Retry;
pub use version::{VERSION_1, VERSION_2, Version, VersionNegotiation};

#[cfg(test)]
mod tests;
