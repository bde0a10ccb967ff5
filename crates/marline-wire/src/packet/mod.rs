//! Packets: headers as far as they can be read and written without keys (RFC 9000, section 17).
//!
//! A datagram holds one packet or several; [`parse`] reads the first and says where the next
//! begins. Nothing here panics on what a peer sent. Encoding and patching trust the caller with
//! offsets into its own buffer, and say so where they panic.

pub mod bits;
pub mod header;
pub mod number;
pub mod retry;
pub mod version;

pub use header::{
    HeaderError, LongHeader, LongHeaderEnd, LongType, Packet, ProtectedHeader, ProtectedKind,
    ShortHeader, ShortHeaderEnd, Span, VERSION_1, destination, parse, patch_length,
};
pub use number::{TruncatedNumber, expand, truncate};
pub use retry::Retry;
pub use version::VersionNegotiation;

#[cfg(test)]
mod tests;
