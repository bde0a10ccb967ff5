//! The field lines that are inserted into the dynamic table.

use crate::qpack::limits::{HISTORY, SHORTEST_INDEXED_COOKIE};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The condition for inserting a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indexing {
    /// Never: its value is secret, or differs from message to message.
    Never,
    /// When it has been seen before.
    WhenRepeated,
    /// The first time.
    AtOnce,
}

/// Fields that keep their value for a connection, in all likelihood: inserting them at the first use saves bytes from
/// the second on. Sorted.
const CONSTANT: [&[u8]; 22] = [
    b":authority",
    b"accept",
    b"accept-encoding",
    b"accept-language",
    b"access-control-allow-origin",
    b"alt-svc",
    b"content-security-policy",
    b"content-type",
    b"cookie",
    b"dnt",
    b"origin",
    b"referrer-policy",
    b"sec-ch-ua",
    b"sec-ch-ua-mobile",
    b"sec-ch-ua-platform",
    b"server",
    b"strict-transport-security",
    b"user-agent",
    b"vary",
    b"via",
    b"x-forwarded-proto",
    b"x-powered-by",
];

/// Fields whose value is a secret worth guessing, or belongs to one message or one version of a resource. Sorted.
const NEVER: [&[u8]; 17] = [
    b"age",
    b"authorization",
    b"content-length",
    b"content-range",
    b"date",
    b"etag",
    b"expires",
    b"if-match",
    b"if-modified-since",
    b"if-none-match",
    b"if-range",
    b"if-unmodified-since",
    b"last-modified",
    b"proxy-authorization",
    b"range",
    b"retry-after",
    b"set-cookie",
];

/// The condition for inserting a line that is not marked as sensitive.
pub(super) fn indexing(name: &[u8], value: &[u8]) -> Indexing {
    if name == b"cookie" && value.len() < SHORTEST_INDEXED_COOKIE {
        return Indexing::Never;
    }
    if NEVER.binary_search(&name).is_ok() {
        Indexing::Never
    } else if CONSTANT.binary_search(&name).is_ok() {
        Indexing::AtOnce
    } else {
        Indexing::WhenRepeated
    }
}

/// Hashes of the field lines sent last, and of their names.
#[derive(Debug, Default)]
pub(super) struct History {
    lines: Recent,
    names: Recent,
}

/// The parts of a line that were sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) line: bool,
    pub(super) name: bool,
}

impl History {
    /// Records a line. A hash collision costs only an insertion.
    pub(super) fn record(&mut self, name: &[u8], value: &[u8]) -> Seen {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let name = hasher.finish();
        value.hash(&mut hasher);
        Seen {
            line: self.lines.record(hasher.finish()),
            name: self.names.record(name),
        }
    }
}

/// The latest hashes, without repetitions.
#[derive(Debug, Default)]
struct Recent {
    hashes: VecDeque<u64>,
}

impl Recent {
    /// Whether the hash was there before.
    fn record(&mut self, hash: u64) -> bool {
        if self.hashes.contains(&hash) {
            return true;
        }
        if self.hashes.len() == HISTORY {
            self.hashes.pop_front();
        }
        self.hashes.push_back(hash);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_for_the_search() {
        assert!(CONSTANT.is_sorted());
        assert!(NEVER.is_sorted());
    }

    #[test]
    fn secrets_and_short_cookies_are_never_inserted() {
        for name in ["authorization", "proxy-authorization", "set-cookie"] {
            assert_eq!(indexing(name.as_bytes(), b"value"), Indexing::Never);
        }
        assert_eq!(indexing(b"cookie", &[b'a'; 19]), Indexing::Never);
        assert_eq!(indexing(b"cookie", &[b'a'; 20]), Indexing::AtOnce);
    }

    #[test]
    fn a_line_is_repeated_until_it_is_forgotten() {
        let mut history = History::default();
        let first = history.record(b"x-a", b"1");
        assert!(!first.line && !first.name);
        let other_value = history.record(b"x-a", b"2");
        assert!(!other_value.line && other_value.name);
        assert!(history.record(b"x-a", b"1").line);
        for value in 0..HISTORY as u64 {
            history.record(b"x-b", &value.to_be_bytes());
        }
        assert!(!history.record(b"x-a", b"1").line);
    }
}
