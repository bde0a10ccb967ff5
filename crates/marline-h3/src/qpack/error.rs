//! The errors of a peer, and their error codes.

use std::fmt;

/// A connection error of QPACK (RFC 9204, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An encoded field section cannot be decoded.
    DecompressionFailed(Problem),
    /// An instruction on the peer's encoder stream is wrong.
    EncoderStream(Problem),
    /// An instruction on the peer's decoder stream is wrong.
    DecoderStream(Problem),
}

impl Error {
    /// The HTTP/3 error code with which the connection is closed.
    pub const fn code(&self) -> u64 {
        match self {
            Self::DecompressionFailed(_) => 0x200,
            Self::EncoderStream(_) => 0x201,
            Self::DecoderStream(_) => 0x202,
        }
    }

    /// The problem.
    pub const fn problem(&self) -> Problem {
        match self {
            Self::DecompressionFailed(problem)
            | Self::EncoderStream(problem)
            | Self::DecoderStream(problem) => *problem,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self {
            Self::DecompressionFailed(_) => "field section",
            Self::EncoderStream(_) => "QPACK encoder stream",
            Self::DecoderStream(_) => "QPACK decoder stream",
        };
        write!(f, "{place}: {}", self.problem())
    }
}

impl std::error::Error for Error {}

/// A problem of a field section or an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The section ends within a field line.
    Truncated,
    /// An integer above 2^62 - 1, or one padded with zeros (RFC 9204, section 4.1.1).
    IntegerTooLarge,
    /// Huffman padding that is longer than 7 bits or not all ones (RFC 7541, section 5.2).
    HuffmanPadding,
    /// The end-of-string symbol inside of a Huffman-coded string (RFC 7541, section 5.2).
    HuffmanEndOfString,
    /// An index beyond the static table (RFC 9204, section 3.1).
    StaticIndex(u64),
    /// An index of the dynamic table, as written, whose entry is evicted, was never inserted, or lies beyond the
    /// Required Insert Count (RFC 9204, section 2.2.3).
    DynamicIndex(u64),
    /// No conformant encoder writes this Required Insert Count (RFC 9204, section 4.5.1.1).
    RequiredInsertCount(u64),
    /// The Base, given as Delta Base, would be negative (RFC 9204, section 4.5.1.2).
    Base(u64),
    /// More streams are blocked than the decoder allows (RFC 9204, section 2.1.2).
    TooManyBlockedStreams,
    /// The sections of blocked streams take more bytes than the decoder keeps.
    TooManyBlockedBytes,
    /// A capacity above the maximum that the decoder announced (RFC 9204, section 4.3.1).
    Capacity(u64),
    /// An entry larger than the capacity of the dynamic table (RFC 9204, section 3.2.2).
    EntryTooLarge,
    /// An Insert Count Increment of 0, or one beyond what was inserted (RFC 9204, section 4.4.3).
    InsertCountIncrement(u64),
    /// An acknowledgment for this stream, on which no section awaits one (RFC 9204, section 4.4.1).
    SectionAcknowledgment(u64),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("ends within a field line"),
            Self::IntegerTooLarge => f.write_str("an integer exceeds 2^62 - 1 or is padded"),
            Self::HuffmanPadding => {
                f.write_str("the padding of a Huffman-coded string is not up to 7 bits of ones")
            }
            Self::HuffmanEndOfString => {
                f.write_str("a Huffman-coded string contains the end-of-string symbol")
            }
            Self::StaticIndex(index) => write!(f, "static index {index} is above 98"),
            Self::DynamicIndex(index) => {
                write!(f, "dynamic index {index} refers to no usable entry")
            }
            Self::RequiredInsertCount(count) => {
                write!(f, "the encoded Required Insert Count {count} is impossible")
            }
            Self::Base(delta) => write!(f, "the Delta Base {delta} makes the Base negative"),
            Self::TooManyBlockedStreams => {
                f.write_str("more streams are blocked than the settings allow")
            }
            Self::TooManyBlockedBytes => {
                f.write_str("blocked field sections take more bytes than are kept")
            }
            Self::Capacity(capacity) => {
                write!(
                    f,
                    "table capacity {capacity} is above the maximum in the settings"
                )
            }
            Self::EntryTooLarge => f.write_str("an entry is larger than the table's capacity"),
            Self::InsertCountIncrement(increment) => write!(
                f,
                "an Insert Count Increment of {increment} is zero or more than was inserted"
            ),
            Self::SectionAcknowledgment(stream) => {
                write!(f, "no section of stream {stream} awaits an acknowledgment")
            }
        }
    }
}
