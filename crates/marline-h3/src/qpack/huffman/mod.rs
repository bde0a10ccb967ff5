//! Huffman coding of strings (RFC 7541, section 5.2).

mod code;
#[cfg(test)]
mod tests;

use super::error::Problem;
use code::{BY_LENGTH, CODES, END_OF_STRING, LENGTHS, LONGEST, SHORT, SORTED};

/// Bits of the shortest code.
const SHORTEST: usize = 5;

/// Padding at most, in bits.
const MAX_PADDING: usize = 7;

/// Why a string was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// It is longer than the caller allows.
    TooLong,
    /// It is not a valid encoding.
    Invalid(Problem),
}

/// Bytes that `string` takes when it is encoded.
pub(super) fn encoded_len(string: &[u8]) -> usize {
    let bits: usize = string
        .iter()
        .map(|&byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// The fewest bytes that `encoded` bytes can decode to.
pub(super) fn shortest_decoded(encoded: u64) -> u64 {
    encoded
        .saturating_mul(8)
        .saturating_sub(MAX_PADDING as u64)
        .div_ceil(LONGEST as u64)
}

/// Appends the encoded `string`, padded with ones.
pub(super) fn encode(string: &[u8], out: &mut Vec<u8>) {
    // Fewer than 8 bits stay over from one symbol to the next, so that 30 more fit.
    let mut bits = 0_u64;
    let mut count = 0;
    for &byte in string {
        let symbol = usize::from(byte);
        bits = bits << LENGTHS[symbol] | u64::from(CODES[symbol]);
        count += u32::from(LENGTHS[symbol]);
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
}

/// Appends the decoded string, at most `limit` bytes.
pub(super) fn decode(encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let end = out.len().saturating_add(limit);
    out.reserve((encoded.len() * 8 / SHORTEST).min(limit));
    let mut input = encoded.iter();
    // The next bits at the high end. Those after the last one are ones, as padding is.
    let mut window = u64::MAX;
    let mut count = 0;
    loop {
        while count <= 56 {
            let Some(&byte) = input.next() else { break };
            let shift = 56 - count;
            window = window & !(0xff << shift) | u64::from(byte) << shift;
            count += 8;
        }
        let next = lookup((window >> 32) as u32);
        if next.length > count {
            // The rest is shorter than a code: padding.
            return if count <= MAX_PADDING && window == u64::MAX {
                Ok(())
            } else {
                Err(DecodeError::Invalid(Problem::HuffmanPadding))
            };
        }
        if next.symbol == END_OF_STRING {
            return Err(DecodeError::Invalid(Problem::HuffmanEndOfString));
        }
        if out.len() == end {
            return Err(DecodeError::TooLong);
        }
        out.push(next.symbol as u8);
        window = window << next.length | ((1 << next.length) - 1);
        count -= next.length;
    }
}

/// A decoded symbol.
struct Symbol {
    symbol: usize,
    /// Bits of its code.
    length: usize,
}

/// The symbol whose code begins `window`.
fn lookup(window: u32) -> Symbol {
    let short = SHORT[(window >> 24) as usize];
    if short.length > 0 {
        return Symbol {
            symbol: usize::from(short.symbol),
            length: usize::from(short.length),
        };
    }
    for (length, codes) in BY_LENGTH.iter().enumerate().skip(9) {
        if u64::from(window) < codes.end {
            let place = (window >> (32 - length)) - codes.first;
            return Symbol {
                symbol: usize::from(SORTED[usize::from(codes.offset) + place as usize]),
                length,
            };
        }
    }
    // The code is complete: the end of the longest codes is 2^32.
    Symbol {
        symbol: END_OF_STRING,
        length: LONGEST,
    }
}
