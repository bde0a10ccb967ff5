//! Names of hosts, as the sites of a server have them.

use std::fmt;
use std::str::FromStr;

use marline::settings::text_values;

/// The name of a host, or a wildcard for the names one label below one: `example.org`, `*.example.org`. Letters are compared
/// without case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    /// In lower case; without `*.` if it is a wildcard.
    name: String,
    is_wildcard: bool,
}

/// A text is neither the name of a host nor a wildcard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the name of a host; write a name, as example.org, an IP address, or *.example.org for all names one label below"
)]
pub struct InvalidHostPattern(String);

impl HostPattern {
    /// Whether it is a wildcard.
    pub fn is_wildcard(&self) -> bool {
        self.is_wildcard
    }

    /// Whether `host`, a name or an address without a port, is one of its names.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let named = match self.is_wildcard {
            true => host
                .split_once('.')
                .filter(|(label, _)| !label.is_empty())
                .map(|(_, parent)| parent),
            false => Some(host),
        };
        named.is_some_and(|named| named.eq_ignore_ascii_case(&self.name))
    }

    /// The most specific of `patterns` that `host` matches: a name before a wildcard, the first before others.
    pub fn best<'a, T>(host: &str, patterns: impl IntoIterator<Item = (&'a Self, T)>) -> Option<T> {
        let mut wildcard = None;
        for (pattern, value) in patterns {
            if pattern.matches(host) {
                if !pattern.is_wildcard {
                    return Some(value);
                }
                wildcard.get_or_insert(value);
            }
        }
        wildcard
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        let invalid = || InvalidHostPattern(text.to_owned());
        let (is_wildcard, name) = match text.strip_prefix("*.") {
            Some(parent) => (true, parent),
            None => (false, text),
        };
        let is_address = !is_wildcard
            && name
                .trim_start_matches('[')
                .trim_end_matches(']')
                .parse::<std::net::IpAddr>()
                .is_ok();
        let is_label = |label: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(is_allowed)
        };
        let is_name = name.len() <= 253 && name.split('.').all(is_label);
        match is_address || is_name {
            true => Ok(Self {
                name: name.to_ascii_lowercase(),
                is_wildcard,
            }),
            false => Err(invalid()),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wildcard = if self.is_wildcard { "*." } else { "" };
        write!(f, "{wildcard}{}", self.name)
    }
}

text_values!(HostPattern);

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_wildcard_has_exactly_one_label_more() {
        let wildcard = pattern("*.Example.org");
        for (host, expected) in [
            ("www.example.org", true),
            ("WWW.EXAMPLE.ORG.", true),
            ("example.org", false),
            (".example.org", false),
            ("a.b.example.org", false),
            ("www.example.com", false),
        ] {
            assert_eq!(wildcard.matches(host), expected, "{host}");
        }
        assert!(pattern("example.org").matches("Example.ORG"));
        assert!(pattern("[::1]").matches("[::1]"));
    }

    #[test]
    fn a_name_is_more_specific_than_a_wildcard() {
        let patterns = [pattern("*.a.org"), pattern("b.a.org"), pattern("*.a.org")];
        let best = |host| HostPattern::best(host, patterns.iter().zip(0..));
        assert_eq!(best("b.a.org"), Some(1));
        assert_eq!(best("c.a.org"), Some(0));
        assert_eq!(best("a.org"), None);
    }

    #[test]
    fn text_that_is_no_name_is_refused() {
        for text in [
            "",
            "a..b",
            "*",
            "*.*.org",
            "a b",
            "https://a",
            "a:443",
            "a/",
            &"a".repeat(64),
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }
}
