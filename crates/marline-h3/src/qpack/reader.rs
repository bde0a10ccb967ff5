//! Reads integers and strings of field sections and instructions, borrowed from the input.

use super::error::Problem;
use super::huffman;
use super::integer;

/// Why nothing could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadError {
    /// The input ends first: an error in a field section, a reason to wait on a stream.
    Truncated,
    /// More input will not help.
    Invalid(Problem),
}

impl From<Problem> for ReadError {
    fn from(problem: Problem) -> Self {
        Self::Invalid(problem)
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Truncated => Self::Truncated,
            ReadError::Invalid(problem) => problem,
        }
    }
}

/// A cursor over encoded bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that have not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next byte, which stays unread: its high bits determine what follows.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Reads an integer with a prefix of `bits` (RFC 7541, section 5.1).
    pub(super) fn integer(&mut self, bits: u32) -> Result<u64, ReadError> {
        let (&first, after) = self.rest.split_first().ok_or(ReadError::Truncated)?;
        let full = (1_u64 << bits) - 1;
        let mut value = u64::from(first) & full;
        if value < full {
            self.rest = after;
            return Ok(value);
        }
        for (place, &byte) in after.iter().enumerate().take(integer::MAX_CONTINUATION) {
            // Nine groups of seven bits and a prefix cannot overflow.
            value += u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                if value > integer::MAX {
                    return Err(Problem::IntegerTooLarge.into());
                }
                self.rest = &after[place + 1..];
                return Ok(value);
            }
        }
        if after.len() < integer::MAX_CONTINUATION {
            Err(ReadError::Truncated)
        } else {
            Err(Problem::IntegerTooLarge.into())
        }
    }

    /// Reads a string literal with a prefix of `bits`, the Huffman flag included (RFC 9204, section 4.1.2).
    ///
    /// # Errors
    ///
    /// [`Problem::EntryTooLarge`] before the string is complete if it decodes to more than `limit` bytes in any case.
    pub(super) fn literal(&mut self, bits: u32, limit: usize) -> Result<Literal<'a>, ReadError> {
        let first = self.peek().ok_or(ReadError::Truncated)?;
        let is_huffman = first & 1 << (bits - 1) != 0;
        let length = self.integer(bits - 1)?;
        let shortest = if is_huffman {
            huffman::shortest_decoded(length)
        } else {
            length
        };
        if shortest > limit as u64 {
            return Err(Problem::EntryTooLarge.into());
        }
        let (bytes, after) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or(ReadError::Truncated)?;
        self.rest = after;
        Ok(Literal { is_huffman, bytes })
    }
}

/// A string as on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literal<'a> {
    is_huffman: bool,
    bytes: &'a [u8],
}

impl<'a> Literal<'a> {
    /// The bytes of the string if they are not Huffman-coded.
    pub(super) fn plain(&self) -> Option<&'a [u8]> {
        (!self.is_huffman).then_some(self.bytes)
    }

    /// Appends the string to `out`, at most `limit` bytes of it.
    pub(super) fn decode_into(
        &self,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), huffman::DecodeError> {
        if self.is_huffman {
            return huffman::decode(self.bytes, limit, out);
        }
        if self.bytes.len() > limit {
            return Err(huffman::DecodeError::TooLong);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}
