//! Which connections learn from each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of a server name, at most: those of the longest in the DNS (RFC 1035, section 2.3.4). A longer one
/// is none.
const MAX_SERVER_NAME: usize = 255;

/// The leading bits of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// The first `bits` bits of `address`, all of them if it has fewer. An IPv4 address in IPv6 clothes is
    /// the IPv4 address.
    pub fn new(address: IpAddr, bits: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                Self {
                    address: Ipv4Addr::from_bits(address.to_bits() & mask).into(),
                    bits,
                }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                Self {
                    address: Ipv6Addr::from_bits(address.to_bits() & mask).into(),
                    bits,
                }
            }
        }
    }

    /// The lowest address in it.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits it has.
    pub fn bits(&self) -> u8 {
        self.bits
    }
}

/// Whose connections learn from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathScope {
    /// Those to peers in one network: neighbors often share the link that is slowest.
    Prefix {
        /// Bits of an IPv4 address that name the network.
        v4: u8,
        /// And of an IPv6 address.
        v6: u8,
    },
    /// Those to one address.
    Address,
    /// All.
    Global,
}

impl Default for PathScope {
    fn default() -> Self {
        Self::Prefix { v4: 24, v6: 48 }
    }
}

impl PathScope {
    /// The name under which a connection to `peer` learns; `server_name` is part of it where it is given.
    pub fn key(&self, peer: SocketAddr, server_name: Option<&str>) -> PathKey {
        let address = peer.ip().to_canonical();
        let network = match (self, address) {
            (Self::Prefix { v4, .. }, IpAddr::V4(_)) => Some(Prefix::new(address, *v4)),
            (Self::Prefix { v6, .. }, IpAddr::V6(_)) => Some(Prefix::new(address, *v6)),
            (Self::Address, _) => Some(Prefix::new(address, u8::MAX)),
            (Self::Global, _) => None,
        };
        let server_name = server_name
            .filter(|name| name.len() <= MAX_SERVER_NAME)
            .map(|name| name.to_ascii_lowercase().into());
        PathKey {
            network,
            server_name,
        }
    }
}

/// Under which name connections share what they learn.
///
/// Nothing in it is of a peer's invention but the server name: the address is one that a handshake
/// validated before anything is learnt from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathKey {
    /// Where the peer is; `None` is anywhere.
    pub network: Option<Prefix>,
    /// The server's name, in lower case; `None` is any.
    pub server_name: Option<Box<str>>,
}

#[cfg(test)]
mod tests;
