//! Instructions on the encoder stream (RFC 9204, section 4.3).

use crate::qpack::reader::{Literal, ReadError, Reader};

/// An instruction of the peer's encoder.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction<'a> {
    SetCapacity(u64),
    InsertWithStaticName {
        index: u64,
        value: Literal<'a>,
    },
    InsertWithDynamicName {
        relative: u64,
        value: Literal<'a>,
    },
    InsertWithLiteralName {
        name: Literal<'a>,
        value: Literal<'a>,
    },
    Duplicate {
        relative: u64,
    },
}

impl<'a> Instruction<'a> {
    /// Reads one instruction; no string of it is longer than `limit` bytes.
    pub(super) fn read(reader: &mut Reader<'a>, limit: usize) -> Result<Self, ReadError> {
        let first = reader.peek().ok_or(ReadError::Truncated)?;
        Ok(match first >> 5 {
            0b110 | 0b111 => Self::InsertWithStaticName {
                index: reader.integer(6)?,
                value: reader.literal(8, limit)?,
            },
            0b100 | 0b101 => Self::InsertWithDynamicName {
                relative: reader.integer(6)?,
                value: reader.literal(8, limit)?,
            },
            0b010 | 0b011 => Self::InsertWithLiteralName {
                name: reader.literal(6, limit)?,
                value: reader.literal(8, limit)?,
            },
            0b001 => Self::SetCapacity(reader.integer(5)?),
            _ => Self::Duplicate {
                relative: reader.integer(5)?,
            },
        })
    }
}
