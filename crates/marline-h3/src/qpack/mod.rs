//! QPACK: field compression for HTTP/3 (RFC 9204).
//!
//! An [`Encoder`] turns field lines into encoded field sections and instructions on its encoder stream; the [`Decoder`] of
//! the peer turns them back, and acknowledges on its decoder stream. Both are state machines: the layer above moves the
//! bytes of sections and of both streams, and closes the connection with [`Error::code`] when a call fails.
//!
//! The [`Encoder`] chooses which lines it adds to the dynamic table, and when it refers to an entry that the peer may
//! not have yet. The state that a decoder keeps for a peer is bounded by [`DecoderLimits`].

mod decoder;
mod encoder;
mod error;
mod field;
mod huffman;
mod integer;
mod limits;
mod reader;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Decoded, Decoder, DecoderLimits, Unblocked};
pub use encoder::{Encoder, EncoderLimits};
pub use error::{Error, Problem};
pub use field::{FieldLine, FieldRef};
