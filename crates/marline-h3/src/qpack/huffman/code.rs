//! The Huffman code of header fields (RFC 7541, appendix B).

/// The symbol that no string contains.
pub(super) const END_OF_STRING: usize = 256;

/// Symbols: every byte and [`END_OF_STRING`].
pub(super) const SYMBOLS: usize = 257;

/// Bits of the longest code.
pub(super) const LONGEST: usize = 30;

/// Bits of the code of each symbol. The code is canonical: in the order of length, then symbol, each code is the one
/// before plus one. So the lengths define it.
pub(super) static LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The code of each symbol, in its low bits.
pub(super) static CODES: [u32; SYMBOLS] = codes();

/// Codes of one length.
#[derive(Clone, Copy)]
pub(super) struct Length {
    /// The first of them, in its low bits.
    pub(super) first: u32,
    /// The end of them, exclusive, moved to the high end of 32 bits.
    pub(super) end: u64,
    /// The start of their symbols in [`SORTED`].
    pub(super) offset: u16,
}

/// By number of bits.
pub(super) static BY_LENGTH: [Length; LONGEST + 1] = by_length();

/// All symbols in the order of their codes.
pub(super) static SORTED: [u16; SYMBOLS] = sorted();

/// Symbols whose code has up to 8 bits, by the first 8 bits of input.
pub(super) static SHORT: [Short; 256] = short();

/// An entry of [`SHORT`].
#[derive(Clone, Copy)]
pub(super) struct Short {
    pub(super) symbol: u8,
    /// Bits of the code; 0 if it is longer than 8.
    pub(super) length: u8,
}

const fn codes() -> [u32; SYMBOLS] {
    let mut codes = [0; SYMBOLS];
    let mut next = 0;
    let mut length = 1;
    while length <= LONGEST {
        next <<= 1;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                codes[symbol] = next;
                next += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    codes
}

const fn by_length() -> [Length; LONGEST + 1] {
    let none = Length {
        first: 0,
        end: 0,
        offset: 0,
    };
    let mut lengths = [none; LONGEST + 1];
    let mut next = 0;
    let mut offset = 0;
    let mut length = 1;
    while length <= LONGEST {
        next <<= 1;
        lengths[length].first = next;
        lengths[length].offset = offset;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                next += 1;
                offset += 1;
            }
            symbol += 1;
        }
        lengths[length].end = (next as u64) << (32 - length);
        length += 1;
    }
    lengths
}

const fn sorted() -> [u16; SYMBOLS] {
    let mut sorted = [0; SYMBOLS];
    let mut place = 0;
    let mut length = 1;
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                sorted[place] = symbol as u16;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    sorted
}

const fn short() -> [Short; 256] {
    let mut short = [Short {
        symbol: 0,
        length: 0,
    }; 256];
    let mut symbol = 0;
    while symbol < END_OF_STRING {
        let length = LENGTHS[symbol];
        if length <= 8 {
            let first = (CODES[symbol] as usize) << (8 - length);
            let mut follow = 0;
            while follow < 1 << (8 - length) {
                short[first + follow] = Short {
                    symbol: symbol as u8,
                    length,
                };
                follow += 1;
            }
        }
        symbol += 1;
    }
    short
}
