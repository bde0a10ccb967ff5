//! `Range: bytes=...` (RFC 9110 section 14.1.2).

use http::header::HeaderValue;

use crate::limits;

/// One range, as the client wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeSpec {
    /// From the first offset to the second, inclusive, or to the end.
    From(u64, Option<u64>),
    /// This many bytes at the end.
    Last(u64),
}

impl RangeSpec {
    /// Whether it is for bytes at the end, as many as there are.
    pub(super) fn is_end(&self) -> bool {
        matches!(self, Self::Last(1..))
    }
}

/// The bytes `first` to `last` of a file of known size, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct ByteRange {
    pub(in crate::server) first: u64,
    pub(in crate::server) last: u64,
}

impl ByteRange {
    /// The range that `value` requests, if it is exactly one that a file of `size` bytes has.
    pub(in crate::server) fn only(value: &HeaderValue, size: u64) -> Option<Self> {
        match resolve(&parse(value.as_bytes())?, size)[..] {
            [range] => Some(range),
            _ => None,
        }
    }

    pub(in crate::server) fn len(&self) -> u64 {
        self.last - self.first + 1
    }

    pub(super) fn header_value(self) -> HeaderValue {
        HeaderValue::try_from(format!("bytes={}-{}", self.first, self.last))
            .unwrap_or_else(|_| HeaderValue::from_static("bytes=0-"))
    }
}

/// Parses the ranges of a header value; `None` if it is to be ignored: another unit, invalid syntax, too
/// many.
pub(super) fn parse(value: &[u8]) -> Option<Vec<RangeSpec>> {
    let value = std::str::from_utf8(value).ok()?.trim();
    let (unit, set) = value.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut specs = Vec::new();
    // Lists may contain empty elements (RFC 9110 section 5.6.1).
    for element in set.split(',').map(str::trim).filter(|e| !e.is_empty()) {
        if specs.len() == limits::MAX_RANGES {
            return None;
        }
        let (first, last) = element.split_once('-')?;
        specs.push(match (first, last) {
            ("", last) => RangeSpec::Last(number(last)?),
            (first, "") => RangeSpec::From(number(first)?, None),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return None;
                }
                RangeSpec::From(first, Some(last))
            }
        });
    }
    (!specs.is_empty()).then_some(specs)
}

/// The ranges that exist in a file of `size` bytes, in the requested order.
pub(super) fn resolve(specs: &[RangeSpec], size: u64) -> Vec<ByteRange> {
    let end = |last: Option<u64>| last.map_or(size - 1, |last| last.min(size - 1));
    specs
        .iter()
        .filter_map(|spec| match *spec {
            RangeSpec::From(first, last) if first < size => Some(ByteRange {
                first,
                last: end(last),
            }),
            RangeSpec::Last(count) if count > 0 && size > 0 => Some(ByteRange {
                first: size.saturating_sub(count),
                last: size - 1,
            }),
            _ => None,
        })
        .collect()
}

/// Parses digits only: `str::parse` would accept a sign.
fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // A number that overflows is valid, and beyond any file's size.
    Some(digits.parse().unwrap_or(u64::MAX))
}
