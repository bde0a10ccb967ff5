//! Addresses of servers: those that no server can have, and the zones of link-local ones.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The reason why no server can be reached at `address`; `None` if one might be.
pub(super) fn unusable(address: SocketAddr) -> Option<&'static str> {
    if address.port() == 0 {
        return Some("port 0 is not valid; give a port from 1 to 65535");
    }
    match address.ip().to_canonical() {
        ip if ip.is_unspecified() => Some(
            "it stands for all addresses of a machine, not for a server; write 127.0.0.1 or [::1] for this machine",
        ),
        ip if ip.is_multicast() => Some("it is a multicast address, not one of a server"),
        IpAddr::V4(ip) if ip.is_broadcast() => {
            Some("it is a broadcast address, not one of a server")
        }
        IpAddr::V6(ip) if is_link_local(ip) && scope(address) == 0 => Some(
            "it is link-local, so that the interface must be named too, as in [fe80::1%25eth0]",
        ),
        _ => None,
    }
}

/// Whether `ip` is of one link, so that an interface belongs to it (RFC 4007, section 6).
pub(super) fn is_link_local(ip: Ipv6Addr) -> bool {
    ip.is_unicast_link_local()
}

fn scope(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    }
}

/// The link-local address `ip` in the zone of this name or number, as the system knows interfaces.
///
/// # Errors
/// There is no such interface.
pub(super) fn in_zone(ip: Ipv6Addr, zone: &str, port: u16) -> io::Result<SocketAddr> {
    let text = format!("{ip}%{zone}");
    let missing = || {
        let text = format!("there is no network interface {}", zone.escape_debug());
        io::Error::new(io::ErrorKind::NotFound, text)
    };
    let mut found = (text.as_str(), port)
        .to_socket_addrs()
        .map_err(|_| missing())?;
    found.next().ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_no_server_has_are_known() {
        for address in [
            "127.0.0.1:0",
            "0.0.0.0:443",
            "[::]:443",
            "[::ffff:0.0.0.0]:443",
            "224.0.0.1:443",
            "239.255.255.255:443",
            "255.255.255.255:443",
            "[ff02::1]:443",
            "[fe80::1]:443",
        ] {
            assert!(unusable(address.parse().unwrap()).is_some(), "{address}");
        }
        for address in [
            "127.0.0.1:1",
            "192.0.2.1:65535",
            "[::1]:443",
            "[::ffff:192.0.2.1]:443",
            "[2001:db8::1]:443",
            "[fe80::1%2]:443",
        ] {
            assert_eq!(unusable(address.parse().unwrap()), None, "{address}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn zones_are_names_or_numbers_of_interfaces() {
        let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        let [named, numbered] = ["lo", "1"].map(|zone| in_zone(ip, zone, 443).unwrap());
        assert_eq!(named, "[fe80::1%1]:443".parse().unwrap());
        assert_eq!(named, numbered);
        let error = in_zone(ip, "none-such", 443).unwrap_err().to_string();
        assert!(error.contains("none-such"), "{error}");
    }
}
