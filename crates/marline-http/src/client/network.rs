//! How servers are reached: their addresses, and those of this machine.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::authority::parse_port;
use crate::runtime::RuntimeHandle;

/// The addresses that a client uses; by default those that the system chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Addresses of servers, before those of [`ClientConfig::resolve`](super::ClientConfig::resolve) and of the system.
    pub resolve: Vec<Resolve>,
    /// Servers that are connected to instead of others. The request, and the name in TLS, stay.
    pub connect_to: Vec<ConnectTo>,
    /// The only family of addresses that is used.
    pub family: Option<Family>,
    /// This end's address.
    pub local: Option<Local>,
    /// A socket of Unix that is connected to instead of all servers, for versions over TCP.
    pub unix_socket: Option<PathBuf>,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Addresses of a server, written as `HOST:PORT:ADDRESS[,ADDRESS]`; the host `*` is any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolve {
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
}

/// A server that is connected to instead of another, written as `HOST:PORT:OTHER:PORT`. What is left out is any, or as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    from: Endpoint,
    to: Endpoint,
}

/// A host and a port; `None` is any, or the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Endpoint {
    host: Option<String>,
    port: Option<u16>,
}

/// A host and a port to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
}

/// An address of this machine, or a network interface, as curl writes them: `eth0`, `if!eth0`, `192.0.2.1`, `host!192.0.2.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// An address.
    Address(IpAddr),
    /// The name of an interface.
    Interface(String),
}

impl FromStr for Resolve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write it as HOST:PORT:ADDRESS".to_owned();
        let text = text.strip_prefix('+').unwrap_or(text);
        let mut parts = Parts::of(text);
        let (host, port) = (
            parts.next().ok_or_else(wrong)?,
            parts.next().ok_or_else(wrong)?,
        );
        let addresses = parts.left.ok_or_else(wrong)?.split(',').map(|address| {
            let address = address.trim().trim_start_matches('[').trim_end_matches(']');
            address
                .parse()
                .map_err(|_| format!("{address} is not an address"))
        });
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port: parse_port(port).map_err(|_| wrong())?,
            addresses: addresses.collect::<Result<_, _>>()?,
        })
    }
}

impl FromStr for ConnectTo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Parts::of(text);
        let mut endpoint = || {
            let host = parts.next()?.to_ascii_lowercase();
            let port = match parts.next()? {
                "" => None,
                port => Some(parse_port(port).ok()?),
            };
            Some(Endpoint {
                host: Some(host).filter(|host| !host.is_empty()),
                port,
            })
        };
        let both = endpoint().zip(endpoint());
        let both = both.filter(|_| parts.left.is_none());
        let (from, to) = both.ok_or("write it as HOST:PORT:OTHER:PORT; each may be left out")?;
        Ok(Self { from, to })
    }
}

impl FromStr for Local {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("if!") {
            return Ok(Self::Interface(name.to_owned()));
        }
        let (address, is_address) = match text.strip_prefix("host!") {
            Some(address) => (address, true),
            None => (text, false),
        };
        match address
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse()
        {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) if is_address => Err(format!("{address} is not an address")),
            Err(_) => Ok(Self::Interface(address.to_owned())),
        }
    }
}

/// The parts of a text between colons; colons in brackets belong to an address.
struct Parts<'a> {
    /// The rest; `None` after the last part.
    left: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        Self { left: Some(text) }
    }

    fn next(&mut self) -> Option<&'a str> {
        let left = self.left?;
        if let Some(inner) = left.strip_prefix('[') {
            let (host, rest) = inner.split_once(']')?;
            self.left = rest.strip_prefix(':');
            return Some(host);
        }
        let (part, rest) = match left.split_once(':') {
            Some((part, rest)) => (part, Some(rest)),
            None => (left, None),
        };
        self.left = rest;
        Some(part)
    }
}

impl Network {
    /// The server that is connected to instead of `host` and `port`.
    pub(super) fn server(&self, host: &str, port: u16) -> Server {
        let matching = self.connect_to.iter().find(|one| {
            one.from.host.as_deref().is_none_or(|from| from == host)
                && one.from.port.is_none_or(|from| from == port)
        });
        let to = matching.map(|one| &one.to);
        Server {
            host: to
                .and_then(|to| to.host.clone())
                .unwrap_or_else(|| host.to_owned()),
            port: to.and_then(|to| to.port).unwrap_or(port),
        }
    }

    /// The addresses of a server that are known without asking.
    pub(super) fn known(&self, host: &str, port: u16) -> Option<Vec<SocketAddr>> {
        let mut last_first = self.resolve.iter().rev();
        let entry =
            last_first.find(|one| one.port == port && (one.host == host || one.host == "*"))?;
        let addresses = entry.addresses.iter();
        Some(addresses.map(|ip| SocketAddr::new(*ip, port)).collect())
    }

    /// Whether `address` is of the family that is used.
    pub(super) fn may_use(&self, address: &SocketAddr) -> bool {
        match self.family {
            None => true,
            Some(Family::V4) => address.is_ipv4(),
            Some(Family::V6) => address.is_ipv6(),
        }
    }
}

impl Local {
    /// The address from which `remote` is reached.
    ///
    /// # Errors
    /// The interface has none of its family.
    pub(super) fn address(
        &self,
        remote: SocketAddr,
        runtime: &RuntimeHandle,
    ) -> io::Result<IpAddr> {
        match self {
            Self::Address(address) => Ok(*address),
            Self::Interface(name) => {
                let known = runtime.shared().interfaces()?;
                let mut own = known.into_iter().filter(|one| one.name == *name);
                let found = own.find(|one| one.address.is_ipv4() == remote.is_ipv4());
                let text = format!(
                    "there is no network interface {} with an address of this family",
                    name.escape_debug()
                );
                let missing = || io::Error::new(io::ErrorKind::NotFound, text);
                found.map(|one| one.address).ok_or_else(missing)
            }
        }
    }
}

/// As it is written.
impl std::fmt::Display for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Interface(name) => name.escape_debug().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_the_addresses_that_are_given() {
        let network = Network {
            resolve: [
                "a.test:443:192.0.2.1,[2001:db8::1]",
                "*:80:192.0.2.2",
                "[::1]:1:192.0.2.3",
            ]
            .map(|text| text.parse().unwrap())
            .into(),
            ..Network::default()
        };
        let addresses = |host: &str, port| network.known(host, port).map(|all| all.len());
        assert_eq!(addresses("a.test", 443), Some(2));
        assert_eq!(addresses("a.test", 80), Some(1));
        assert_eq!(addresses("::1", 1), Some(1));
        assert_eq!(addresses("a.test", 444), None);
        for wrong in [
            "a.test",
            "a.test:443",
            "a.test:x:192.0.2.1",
            "a.test:443:b.test",
        ] {
            assert!(wrong.parse::<Resolve>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_servers_are_connected_to_as_for_curl() {
        for (text, host, port) in [
            ("a.test:443:b.test:8443", "b.test", 8443),
            ("::b.test:8443", "b.test", 8443),
            (":443::8443", "a.test", 8443),
            ("a.test:443:[::1]:", "::1", 443),
            ("b.test:443:c.test:1", "a.test", 443),
        ] {
            let network = Network {
                connect_to: vec![text.parse().unwrap()],
                ..Network::default()
            };
            let Server {
                host: other,
                port: number,
            } = network.server("a.test", 443);
            assert_eq!((other.as_str(), number), (host, port), "{text}");
        }
        for wrong in ["a.test:443", "a:1:b:2:c", "a:1:b", "a:x:b:1"] {
            assert!(wrong.parse::<ConnectTo>().is_err(), "{wrong}");
        }
    }
}
