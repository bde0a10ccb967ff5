//! Networks of clients.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use marline::settings::text_values;

/// The addresses with a common prefix, as `192.0.2.0/24`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// A text is not a [`Network`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    /// It is not an address or a prefix.
    #[error(
        "{0:?} is not a network; write an address, as 192.0.2.1, or a prefix with its length, as 192.0.2.0/24 or 2001:db8::/32"
    )]
    Form(String),
    /// It is the address of a host with the length of a prefix: one of them is a mistake.
    #[error(
        "{text:?} has bits of a host after the first {}; write {network} for the network, or {address} for the one address",
        network.prefix_len()
    )]
    HostBits {
        /// As it was written.
        text: String,
        /// The network of this length that has the address.
        network: IpNet,
        /// The address.
        address: IpAddr,
    },
}

impl Network {
    /// Whether it has `address`. An IPv4 address in IPv6 notation is that IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let network = match text.parse::<IpAddr>() {
            Ok(address) => Ok(IpNet::from(address.to_canonical())),
            Err(_) => text.parse::<IpNet>(),
        };
        match network {
            Ok(network) if network.trunc() == network => Ok(Self(network)),
            Ok(network) => Err(InvalidNetwork::HostBits {
                text: text.to_owned(),
                network: network.trunc(),
                address: network.addr(),
            }),
            Err(_) => Err(InvalidNetwork::Form(text.to_owned())),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_values!(Network);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_its_networks() {
        for (network, address, expected) in [
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "::ffff:192.0.2.1", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.1", "192.0.2.1", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
        ] {
            let network: Network = network.parse().unwrap();
            let found = network.contains(address.parse().unwrap());
            assert_eq!(found, expected, "{address} in {network}");
        }
    }

    #[test]
    fn text_that_is_no_network_is_refused() {
        for text in ["", "192.0.2", "192.0.2.1/24", "192.0.2.0/33", "localhost"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
