//! Bytes and number sets that several rooms keep: ordered ranges, data kept until it is
//! acknowledged, data put back in order.

mod assembler;
mod ranges;
mod send_buffer;

pub(crate) use assembler::Assembler;
pub(crate) use ranges::RangeSet;
pub(crate) use send_buffer::SendBuffer;
