//! The destinations of a forward proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::authority::port_of;

/// A host that clients of a forward proxy may connect to, at one port or at those of the web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    /// In lower case, without brackets.
    host: String,
    port: Option<u16>,
}

/// A text is not a host with or without a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a host; write HOST or HOST:PORT without wildcards, and addresses of IPv6 in brackets"
)]
pub struct InvalidHost(String);

impl FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let invalid = || InvalidHost(text.to_owned());
        // Names in a list have no wildcards.
        let target = Target::parse(text).filter(|target| !target.host.contains('*'));
        let target = target.ok_or_else(invalid)?;
        Ok(Self {
            host: target.host,
            port: target.port,
        })
    }
}

/// The destination that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::proxy) struct Target {
    /// In lower case, without brackets and without the dot of the root.
    pub(in crate::proxy) host: String,
    pub(super) port: Option<u16>,
}

impl Target {
    /// Whether it is a host without a port.
    pub(in crate::proxy) fn has_no_port(&self) -> bool {
        self.port.is_none()
    }

    /// Parses a host with an optional port.
    pub(in crate::proxy) fn parse(text: &str) -> Option<Self> {
        let authority: http::uri::Authority = text.parse().ok()?;
        if text.contains('@') || authority.host().is_empty() {
            return None;
        }
        let port = port_of(&authority).ok()?;
        let host = authority.host();
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = inner.unwrap_or(host).trim_end_matches('.');
        (!host.is_empty()).then(|| Self {
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

/// The rules for allowed targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    allowed: Vec<AllowedHost>,
}

/// Whether a target is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// At any address.
    Allowed,
    /// At addresses of the public Internet.
    Public,
    Forbidden,
}

impl Rules {
    pub(super) fn new(allowed: Vec<AllowedHost>) -> Self {
        Self { allowed }
    }

    /// The verdict on `host` at `port`. Hosts in the list may have any address; without a list, all hosts are allowed
    /// at the ports of the web and at public addresses.
    pub(super) fn judge(&self, host: &str, port: u16) -> Verdict {
        let is_web = matches!(port, 80 | 443);
        if self.allowed.is_empty() {
            return if is_web {
                Verdict::Public
            } else {
                Verdict::Forbidden
            };
        }
        let is_named = self.allowed.iter().any(|one| {
            let has_port = one.port.map_or(is_web, |allowed| allowed == port);
            one.host == host && has_port
        });
        match is_named {
            true => Verdict::Allowed,
            false => Verdict::Forbidden,
        }
    }
}

impl Verdict {
    /// The `addresses` that may be connected to.
    pub(super) fn filter(self, addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        let may = |address: &SocketAddr| match self {
            Self::Allowed => true,
            Self::Public => is_public(address.ip()),
            Self::Forbidden => false,
        };
        addresses.into_iter().filter(may).collect()
    }
}

/// Whether an address belongs to the public Internet (RFC 6890, and prefixes that embed IPv4 in
/// IPv6).
fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_unspecified()
        || ip.is_broadcast()
        || ip.is_multicast()
        || ip.is_documentation()
        || a == 0
        // Shared by customers of a provider (RFC 6598).
        || (a == 100 && (64..128).contains(&b))
        // Protocol assignments (RFC 6890), benchmarks (RFC 2544), reserved.
        || (a == 192 && b == 0 && c == 0)
        // Relays of 6to4, which are deprecated (RFC 7526).
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240;
    !is_special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        // NAT64 (RFC 6052), 6to4 (RFC 3056).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Protocol assignments, including Teredo (RFC 2928, RFC 4380); documentation (RFC 3849, RFC 9637).
        [0x2001, 0..0x200, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // Global unicast is 2000::/3 (RFC 4291); unique local, link-local, loopback and multicast addresses are
        // outside.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hosts_with_or_without_a_port() {
        let parse = |text| Target::parse(text).map(|target| (target.host, target.port));
        assert_eq!(
            parse("Example.org.:443"),
            Some(("example.org".to_owned(), Some(443)))
        );
        assert_eq!(parse("[::1]:80"), Some(("::1".to_owned(), Some(80))));
        for text in ["a", "a:"] {
            assert_eq!(parse(text), Some(("a".to_owned(), None)));
        }
        for text in ["", "a:+1", "a:x", "a:99999", "u@a:1", "a/b", ":80", ".:80"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_has_no_wildcards() {
        for text in ["*.example.org", "*", "*:443"] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_list_the_web_of_the_public_internet_is_allowed() {
        let rules = Rules::default();
        assert_eq!(rules.judge("example.org", 443), Verdict::Public);
        assert_eq!(rules.judge("example.org", 22), Verdict::Forbidden);
    }

    #[test]
    fn with_a_list_only_what_it_names_is_allowed() {
        let allowed = ["app:8000", "Example.org"].map(|text| text.parse().unwrap());
        let rules = Rules::new(allowed.to_vec());
        for (host, port, verdict) in [
            ("app", 8000, Verdict::Allowed),
            ("app", 443, Verdict::Forbidden),
            ("example.org", 443, Verdict::Allowed),
            ("example.org", 25, Verdict::Forbidden),
            ("sub.example.org", 443, Verdict::Forbidden),
        ] {
            assert_eq!(rules.judge(host, port), verdict, "{host}:{port}");
        }
    }

    #[test]
    fn addresses_that_are_not_of_the_public_internet_are_known_in_every_form() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:20::1",
            "3fff::1",
            "192.88.99.1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "93.184.216.34",
            "8.8.8.8",
            "2606:4700::1111",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
