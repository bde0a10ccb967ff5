//! Patterns of paths, by which routes are chosen.

use std::fmt;
use std::str::FromStr;

use marline::settings::text_values;

/// A path, or paths with a common beginning or end: `/about`, `/api/*`, `*.php`. Paths are compared decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    before: String,
    /// The text behind the `*`, if there is one.
    after: Option<String>,
}

/// A text is not a [`PathPattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a path pattern; begin it with / or *, and use at most one *, as /about, /api/* or *.php"
)]
pub struct InvalidPath(String);

/// The path of a request as routes compare it: decoded, and with one slash where several follow each other, as applications take
/// it.
#[derive(Debug)]
pub(crate) struct RequestPath<'a> {
    encoded: &'a str,
    bytes: Vec<u8>,
    /// Where each of the bytes begins in `encoded`, and the end.
    starts: Vec<usize>,
}

impl<'a> RequestPath<'a> {
    /// Reads a path.
    pub(crate) fn new(encoded: &'a str) -> Self {
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < encoded.len() {
            let (byte, len) = decoded(&encoded.as_bytes()[at..]);
            if byte != b'/' || bytes.last() != Some(&b'/') {
                bytes.push(byte);
                starts.push(at);
            }
            at += len;
        }
        starts.push(at);
        Self {
            encoded,
            bytes,
            starts,
        }
    }

    /// Whether a segment is `.` or `..`: applications and routes could take it for different paths.
    pub(crate) fn has_dot_segments(&self) -> bool {
        let mut segments = self.bytes.split(|&byte| matches!(byte, b'/' | b'\\'));
        segments.any(|segment| matches!(segment, b"." | b".."))
    }

    /// Whether a file or directory on its way begins with a dot. Those of `.well-known` (RFC 8615) are meant to be public.
    pub(crate) fn is_hidden(&self) -> bool {
        let mut segments = self.bytes.split(|&byte| byte == b'/').enumerate();
        segments.any(|(index, segment)| {
            let is_public = index == 1 && segment == b".well-known";
            segment.starts_with(b".") && !is_public
        })
    }
}

/// The first byte of an encoded path, and the bytes that it takes there.
fn decoded(encoded: &[u8]) -> (u8, usize) {
    let hex = |at: usize| {
        let digit = char::from(*encoded.get(at)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    match (encoded[0], hex(1), hex(2)) {
        (b'%', Some(high), Some(low)) => (high << 4 | low, 3),
        (byte, _, _) => (byte, 1),
    }
}

impl PathPattern {
    /// Whether it has a `*`.
    pub(crate) fn has_rest(&self) -> bool {
        self.after.is_some()
    }

    /// Whether every path that `other` matches is one that this one matches, too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (&self.after, &other.after) {
            (None, None) => self.before == other.before,
            (None, Some(_)) => false,
            (Some(after), None) => {
                let path = other.before.as_str();
                let middle = path.strip_prefix(self.before.as_str());
                middle.is_some_and(|middle| middle.ends_with(after.as_str()))
            }
            (Some(after), Some(of_other)) => {
                other.before.starts_with(self.before.as_str()) && of_other.ends_with(after.as_str())
            }
        }
    }

    /// The part of `path` that `*` stands for, encoded, if the path matches; nothing if the pattern has no `*`.
    pub(crate) fn rest<'a>(&self, path: &RequestPath<'a>) -> Option<&'a str> {
        let before = self.before.as_bytes();
        let Some(after) = &self.after else {
            return (path.bytes == before).then_some("");
        };
        let middle = path
            .bytes
            .strip_prefix(before)?
            .strip_suffix(after.as_bytes())?;
        let begin = path.starts[before.len()];
        let end = path.starts[before.len() + middle.len()];
        path.encoded.get(begin..end)
    }
}

impl FromStr for PathPattern {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let (before, after) = match text.split_once('*') {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        let begins = text.starts_with(['/', '*']);
        let is_one = after.is_none_or(|after| !after.contains('*'));
        if !begins || !is_one || text.contains(['?', '#']) {
            return Err(InvalidPath(text.to_owned()));
        }
        Ok(Self {
            before: before.to_owned(),
            after: after.map(str::to_owned),
        })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.before)?;
        match &self.after {
            Some(after) => write!(f, "*{after}"),
            None => Ok(()),
        }
    }
}

text_values!(PathPattern);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rest<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
        let path = RequestPath::new(path);
        pattern.parse::<PathPattern>().unwrap().rest(&path)
    }

    #[test]
    fn a_pattern_matches_decoded_paths() {
        assert_eq!(rest("/about", "/about"), Some(""));
        assert_eq!(rest("/about", "/ab%6Fut"), Some(""));
        assert_eq!(rest("/about", "/about/"), None);
        assert_eq!(rest("/api/*", "/api/v1/x%2Fy"), Some("v1/x%2Fy"));
        assert_eq!(rest("/api/*", "/%61pi//v1"), Some("v1"));
        assert_eq!(rest("/api/*", "//api%2fv1"), Some("v1"));
        assert_eq!(rest("/api/*", "/apis"), None);
        assert_eq!(rest("*.php", "/a/b.php"), Some("/a/b"));
        assert_eq!(rest("/a*a", "/a"), None, "the two ends do not overlap");
        assert_eq!(rest("*", "/"), Some("/"));
        assert_eq!(rest("/*", "/%ff%"), Some("%ff%"));
    }

    #[test]
    fn a_pattern_covers_those_whose_paths_it_matches() {
        let pattern = |text: &str| text.parse::<PathPattern>().unwrap();
        for (one, other, covers) in [
            ("/*", "/api/*", true),
            ("/*", "/", true),
            ("*", "/*", true),
            ("/*", "*", false),
            ("/api/*", "/api/v1/*", true),
            ("/api/*", "/api/", true),
            ("/api/*", "/api", false),
            ("/api/*", "/*", false),
            ("*.php", "/a/*.php", true),
            ("*.php", "/a/*", false),
            ("/a", "/a", true),
            ("/a", "/*", false),
            ("/a*a", "/a", false),
        ] {
            assert_eq!(
                pattern(one).covers(&pattern(other)),
                covers,
                "{one} {other}"
            );
        }
    }

    #[test]
    fn dots_are_seen_through_their_encoding() {
        let path = |text| RequestPath::new(text);
        for text in [
            "/a/../b",
            "/a/%2e%2E/b",
            "/./a",
            "/a/..",
            "/a\\..\\b",
            "/a%5c..%5cb",
            "/%2e",
        ] {
            assert!(path(text).has_dot_segments(), "{text}");
        }
        assert!(!path("/a..b/...c/.git").has_dot_segments());
        for (text, hidden) in [
            ("/.git/config", true),
            ("/a/%2egit", true),
            ("//.env", true),
            ("/.well-known/security.txt", false),
            ("/.well-known/.x", true),
            ("/a/.well-known/x", true),
            ("/a.b", false),
        ] {
            assert_eq!(path(text).is_hidden(), hidden, "{text}");
        }
    }

    #[test]
    fn text_that_is_no_pattern_is_refused() {
        for text in ["", "about", "/a*b*", "/a?b", "/a#b"] {
            assert!(text.parse::<PathPattern>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_path_has_a_rest_or_none(path in "[/%a-f0-9*\u{e4}]{0,20}", before in "/[a-f%]{0,4}", after in "[a-f]{0,2}") {
            let pattern: PathPattern = format!("{before}*{after}").parse().unwrap();
            if let Some(rest) = pattern.rest(&RequestPath::new(&path)) {
                prop_assert!(path.contains(rest));
            }
        }

        #[test]
        fn a_pattern_matches_what_those_that_it_covers_match(
            one in "/[ab]{0,2}\\*?[ab]{0,2}", other in "/[ab]{0,3}\\*?[ab]{0,2}", path in "/[ab]{0,6}"
        ) {
            let (one, other): (PathPattern, PathPattern) = (one.parse().unwrap(), other.parse().unwrap());
            let path = RequestPath::new(&path);
            if one.covers(&other) && other.rest(&path).is_some() {
                prop_assert!(one.rest(&path).is_some(), "{one} {other}");
            }
        }
    }
}
