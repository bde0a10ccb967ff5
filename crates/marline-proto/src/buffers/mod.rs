//! Data structures that several modules use: sets of ranges, data kept until it is acknowledged, and
//! reassembly of data.

mod assembler;
mod ranges;
mod send_buffer;

pub(crate) use assembler::Assembler;
pub(crate) use ranges::RangeSet;
pub(crate) use send_buffer::SendBuffer;
