//! Addresses to listen on, as flags and configuration files have them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::str::FromStr;

use marline::settings::text_values;
use marline_http::tcp::socket2::SockRef;

/// The form of such an address.
pub(crate) const ADDRESS: &str = "an address with a port, as \"127.0.0.1:4433\" or \"[::1]:4433\", localhost:PORT, or \":PORT\" for all addresses";

/// The form of an address that serves metrics.
pub(crate) const METRICS_ADDRESS: &str = "PORT, :PORT or localhost:PORT for this host alone, an address with a port, as \"192.0.2.1:9100\" or \"[2001:db8::1]:9100\", or \"*:PORT\" for all addresses";

/// Addresses to listen on: one, and one of the other family with the same port if the host has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) first: SocketAddr,
    pub(crate) also: Option<IpAddr>,
}

impl Listen {
    /// Both addresses of localhost.
    pub(crate) const fn localhost(port: u16) -> Self {
        Self {
            first: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            also: Some(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        }
    }

    /// All addresses of this host, of both families.
    pub(crate) fn everywhere(port: u16) -> Self {
        let (v4, v6) = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into());
        let only_v6 = UdpSocket::bind(SocketAddr::new(v6, 0))
            .and_then(|socket| SockRef::from(&socket).only_v6());
        let (first, also) = match only_v6 {
            // One socket takes both.
            Ok(false) => (v6, None),
            Ok(true) => (v4, Some(v6)),
            // The host has no IPv6.
            Err(_) => (v4, None),
        };
        Self {
            first: SocketAddr::new(first, port),
            also,
        }
    }

    /// Whether `address` is one of these.
    pub(crate) fn has(self, address: SocketAddr) -> bool {
        let also = self.also.map(|ip| SocketAddr::new(ip, self.first.port()));
        address == self.first || Some(address) == also
    }

    /// Whether only programs of this host reach it.
    pub(crate) fn is_loopback(self) -> bool {
        let mut addresses = self.also.into_iter().chain([self.first.ip()]);
        addresses.all(|address| address.is_loopback())
    }
}

/// Addresses that serve metrics, which tell about clients: without an address, those of localhost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetricsListen(Listen);

impl MetricsListen {
    pub(crate) const fn addresses(self) -> Listen {
        self.0
    }
}

impl FromStr for MetricsListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let only_port = text.strip_prefix(':').unwrap_or(text);
        match parse_port(only_port) {
            Some(port) => Ok(Self(Listen::localhost(port))),
            None => Listen::parse(text, METRICS_ADDRESS).map(Self),
        }
    }
}

impl fmt::Display for MetricsListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<SocketAddr> for Listen {
    fn from(first: SocketAddr) -> Self {
        Self { first, also: None }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, ADDRESS)
    }
}

impl Listen {
    /// Reads an address of the described `form`.
    fn parse(text: &str, form: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        if let Some((address, _)) = text.split_once(char::is_whitespace) {
            return Err(format!(
                "must be {form}; write \"{address}\" alone: TLS and all versions of HTTP are spoken there"
            ));
        }
        let is_port = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match text.rsplit_once(':') {
            _ if is_port => ("", text),
            Some(pieces) => pieces,
            None => return Err(format!("must be {form}; it has no port")),
        };
        let port = parse_port(port)
            .ok_or_else(|| format!("must be {form}; a port is a number up to 65535"))?;
        if let Some(zoned) = Zoned::of(host) {
            let address = (zoned.address, port).to_socket_addrs();
            let address = address.ok().and_then(|mut found| found.next());
            let unknown = || {
                format!(
                    "must be {form}; this host has no interface {}",
                    zoned.interface
                )
            };
            return address.map(Self::from).ok_or_else(unknown);
        }
        match host {
            "" | "*" => Ok(Self::everywhere(port)),
            host if host.eq_ignore_ascii_case("localhost") => Ok(Self::localhost(port)),
            host if host.parse::<Ipv6Addr>().is_ok() => Err(format!(
                "must be {form}; write IPv6 in brackets, as \"[{host}]:{port}\""
            )),
            _ => Err(format!("must be {form}; no other name is one")),
        }
    }
}

/// An address in brackets with the name of an interface (RFC 4007, section 11).
struct Zoned<'a> {
    /// Both, without the brackets.
    address: &'a str,
    interface: &'a str,
}

impl<'a> Zoned<'a> {
    fn of(host: &'a str) -> Option<Self> {
        let address = host.strip_prefix('[')?.strip_suffix(']')?;
        let (ip, interface) = address.split_once('%')?;
        ip.parse::<Ipv6Addr>().ok()?;
        Some(Self { address, interface })
    }
}

/// The number of a port, in digits alone.
fn parse_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.first.port();
        match *self == Self::localhost(port) {
            true => write!(f, "localhost:{port}"),
            false => self.first.fmt(f),
        }
    }
}

text_values!(Listen);
text_values!(MetricsListen);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_other_servers_take_them() {
        let one = |text: &str| Listen::from(text.parse::<SocketAddr>().unwrap());
        for (text, expected) in [
            ("127.0.0.1:4433", one("127.0.0.1:4433")),
            ("0.0.0.0:443", one("0.0.0.0:443")),
            ("[::1]:443", one("[::1]:443")),
            ("[::]:443", one("[::]:443")),
            ("[fe80::1%2]:443", one("[fe80::1%2]:443")),
            // The loopback interface is the first of each network namespace.
            ("[fe80::1%lo]:443", one("[fe80::1%1]:443")),
            ("localhost:443", Listen::localhost(443)),
            ("LocalHost:0", Listen::localhost(0)),
            (":443", Listen::everywhere(443)),
            ("*:443", Listen::everywhere(443)),
            ("443", Listen::everywhere(443)),
            ("0", Listen::everywhere(0)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert!(Listen::everywhere(1).first.ip().is_unspecified());
        assert!(Listen::localhost(1).is_loopback() && !Listen::everywhere(1).is_loopback());
    }

    #[test]
    fn metrics_are_for_this_host_unless_an_address_is_given() {
        let everywhere = Listen::everywhere(9100);
        for (text, expected) in [
            ("9100", Listen::localhost(9100)),
            (":9100", Listen::localhost(9100)),
            ("localhost:9100", Listen::localhost(9100)),
            ("*:9100", everywhere),
            (
                "0.0.0.0:9100",
                Listen::from(SocketAddr::from(([0; 4], 9100))),
            ),
        ] {
            let parsed: MetricsListen = text.parse().unwrap();
            assert_eq!(parsed.addresses(), expected, "{text}");
        }
        for text in ["", ":", "+1", ":+1", "70000", "localhost", "a:1"] {
            let refused = text.parse::<MetricsListen>().unwrap_err();
            assert!(refused.contains(METRICS_ADDRESS), "{text}: {refused}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "it has no port"),
            ("localhost", "it has no port"),
            ("127.0.0.1", "it has no port"),
            ("localhost:", "a port is a number"),
            ("localhost:http", "a port is a number"),
            (":65536", "a port is a number"),
            (":+1", "a port is a number"),
            ("70000", "a port is a number"),
            ("::1:443", "write IPv6 in brackets"),
            ("[fe80::1%none0]:443", "no interface none0"),
            ("example.org:443", "no other name"),
            ("https://localhost:443", "no other name"),
            ("[::1:443", "no other name"),
            ("1.2.3:443", "no other name"),
            ("443 ssl http2", "write \"443\" alone"),
        ] {
            let refused = text.parse::<Listen>().unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
            assert!(refused.contains(ADDRESS), "{text}: {refused}");
        }
    }
}
