//! Hosts and ports (RFC 9110, section 7.2; RFC 3986, section 3.2).

use std::net::Ipv6Addr;

/// Bytes of a host name at most (RFC 1035, section 2.3.4), with the dot of the root.
const MAX_HOST: usize = 254;

/// Whether `text` is the authority of a URI of `http` or `https` as requests have it: a host name or an address of IPv4, or one of
/// IPv6 in brackets; then a port, which may be empty, or nothing. Without user information (RFC 9110, section 4.2.4), and without the characters that
/// RFC 3986 allows beyond host names, which servers take for something else: `%`, `,`, `*` and the like.
pub fn is_authority(text: &[u8]) -> bool {
    let (is_host, rest) = match text.strip_prefix(b"[") {
        Some(address) => {
            let Some(end) = address.iter().position(|&byte| byte == b']') else {
                return false;
            };
            let (address, rest) = address.split_at(end);
            (is_ipv6(address), &rest[1..])
        }
        None => {
            let end = text.iter().position(|&byte| byte == b':');
            let (host, rest) = text.split_at(end.unwrap_or(text.len()));
            (is_host_name(host), rest)
        }
    };
    let is_port = match rest.strip_prefix(b":") {
        Some(port) => is_port(port),
        None => rest.is_empty(),
    };
    is_host && is_port
}

/// `authority` without the colon of an empty port, which means the default one, as no port does (RFC 3986, section 3.2.3).
pub fn without_empty_port(authority: &[u8]) -> &[u8] {
    authority.strip_suffix(b":").unwrap_or(authority)
}

fn is_ipv6(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).ok();
    text.is_some_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Labels are not empty, and may have `_`, as hosts within organisations do.
fn is_host_name(text: &[u8]) -> bool {
    let name = text.strip_suffix(b".").unwrap_or(text);
    let is_label = |label: &[u8]| {
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_~".contains(byte);
        !label.is_empty() && label.iter().all(is_allowed)
    };
    text.len() <= MAX_HOST && name.split(|&byte| byte == b'.').all(is_label)
}

fn is_port(text: &[u8]) -> bool {
    let digits = std::str::from_utf8(text).ok();
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    // An empty one is that of the scheme (RFC 3986, section 3.2.3).
    digits.is_some_and(|digits| digits.is_empty() || digits.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_or_without_a_port_is_an_authority() {
        for text in [
            "a",
            "a.example",
            "a.example.",
            "a:",
            "a:0",
            "a:65535",
            "A-b_c.d:443",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:",
            "[2001:db8::1]:4433",
            "[::ffff:192.0.2.1]",
            "xn--vi-bja.example",
        ] {
            assert!(is_authority(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn everything_else_is_none() {
        for text in [
            "",
            ":",
            ":80",
            "a:b",
            "a:-1",
            "a:+1",
            "a:65536",
            "a:99999",
            "a:1:2",
            "a,b",
            "*",
            "*.a",
            "a b",
            "a%20b",
            "a..b",
            ".a",
            ".",
            "..",
            "user@a",
            "a@",
            "[::1",
            "::1",
            "[]",
            "[a]",
            "[::1]a",
            "[::1]:+1",
            "[fe80::1%25eth0]",
            "[v1.a]",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "a;b",
            "a'b",
            "a\"b",
            "\u{e9}vil",
            "a\0",
            "a\t",
        ] {
            assert!(!is_authority(text.as_bytes()), "{text:?}");
        }
        assert!(!is_authority(&[0xff]));
        assert!(!is_authority("a".repeat(300).as_bytes()));
    }
}
