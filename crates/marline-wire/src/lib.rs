//! Encoding and decoding of QUIC versions 1 and 2: packet headers, frames and transport parameters. No
//! state, no clock, no keys.
//!
//! Decoding borrows from the datagram and never panics, whatever the input; encoding appends to a
//! `Vec<u8>` that the caller reuses. Each kind of header or frame has its own file.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod error;
pub mod frame;
pub mod id;
pub mod packet;
pub mod params;
pub mod reader;
pub mod varint;

pub use error::{ErrorCode, TransportError};
pub use frame::{Frame, FrameError, Frames};
pub use id::{ConnectionId, Dir, LargePathId, PathId, Side, StreamId};
pub use packet::{HeaderError, Packet, ProtectedHeader, Version};
pub use params::TransportParameters;
pub use reader::{Reader, Truncated};
