//! Which of several paths of equal cost a flow takes.

use std::net::IpAddr;

#[cfg(test)]
mod tests;

/// What names a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes to.
    pub destination: IpAddr,
    /// The port it comes from.
    pub source_port: u16,
    /// The port it goes to.
    pub destination_port: u16,
    /// The IP protocol: 6 for TCP, 17 for UDP.
    pub protocol: u8,
}

/// How routers hash a flow to choose among paths of equal cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcmpHash {
    /// The exclusive or of the five numbers, as the literature writes it. For two paths only the
    /// parities count: between two given addresses, that of the source port alone. Systems that hand
    /// out ports of one parity put all their flows on one path.
    Xor,
    /// Every bit of the five counts, as in routers.
    #[default]
    Mixed,
}

impl EcmpHash {
    /// The hash of a flow, for [`Packet::flow`](crate::Packet::flow).
    pub fn hash(self, flow: &FiveTuple) -> u64 {
        let [source, destination] = [flow.source, flow.destination].map(number);
        let ports = [flow.source_port, flow.destination_port].map(u64::from);
        let numbers = [
            source,
            destination,
            ports[0],
            ports[1],
            u64::from(flow.protocol),
        ];
        match self {
            Self::Xor => numbers.into_iter().fold(0, |hash, number| hash ^ number),
            Self::Mixed => numbers
                .into_iter()
                .fold(0x6d61_726c_696e_6500, |hash, number| mix(hash ^ number)),
        }
    }

    /// The path, below `paths`, of which there is at least one.
    pub fn path(self, flow: &FiveTuple, paths: usize) -> usize {
        (self.hash(flow) % paths.max(1) as u64) as usize
    }
}

/// An address as a number; of IPv6, both halves folded into one.
fn number(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits >> 64) as u64 ^ bits as u64
        }
    }
}

/// The finalizer of MurmurHash3.
const fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
