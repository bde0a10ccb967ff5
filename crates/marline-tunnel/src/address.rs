//! The capsules about addresses: ADDRESS_ASSIGN and ADDRESS_REQUEST (RFC 9484, sections 4.7.1 and 4.7.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use ipnet::IpNet;
use marline_h3::capsule::{Capsule, CapsuleType};
use marline_wire::{Reader, Truncated, varint};

/// The type of ADDRESS_ASSIGN.
pub const ADDRESS_ASSIGN: CapsuleType = CapsuleType::new(0x01);

/// The type of ADDRESS_REQUEST.
pub const ADDRESS_REQUEST: CapsuleType = CapsuleType::new(0x02);

/// Addresses of one capsule; a tunnel has one of each family, or a few.
pub const MAX_ADDRESSES: usize = 64;

/// Bytes of the value of a capsule with these: a request ID, version, address, and length of the prefix each.
pub const MAX_ADDRESSES_BYTES: usize = MAX_ADDRESSES * (8 + 1 + 16 + 1);

/// An address, or a prefix of addresses, that is assigned or requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The number of the request: that of ADDRESS_REQUEST, at least 1, in both capsules; or 0 in an assignment that nobody
    /// requested.
    pub request: u64,
    /// The address with the length of its prefix. In a request, an address of zeros is any of its family; in an assignment,
    /// one refuses the request.
    pub prefix: IpNet,
}

/// Why the value of a capsule is malformed. The receiver abandons the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It ends within an address.
    #[error("the capsule ends within an address")]
    Truncated,
    /// The version of IP is neither 4 nor 6.
    #[error("{0} is no version of IP")]
    Version(u8),
    /// The prefix is longer than an address, or the address has bits after its prefix.
    #[error("{address}/{length} is no prefix")]
    Prefix {
        /// The address.
        address: IpAddr,
        /// The length of its prefix.
        length: u8,
    },
    /// A request has the number 0.
    #[error("a request for an address has the number 0")]
    NoNumber,
    /// A number of a request is repeated.
    #[error("two requests have the number {0}")]
    Repeated(u64),
    /// A request for no address.
    #[error("a request for no address")]
    Empty,
    /// More than [`MAX_ADDRESSES`].
    #[error("more than {MAX_ADDRESSES} addresses in one capsule")]
    TooMany,
}

impl From<Truncated> for AddressError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// The capsule ADDRESS_ASSIGN with all addresses that the receiver has from now on.
pub fn assign(addresses: &[Address]) -> Capsule {
    capsule(ADDRESS_ASSIGN, addresses)
}

/// The capsule ADDRESS_REQUEST.
pub fn request(addresses: &[Address]) -> Capsule {
    capsule(ADDRESS_REQUEST, addresses)
}

fn capsule(kind: CapsuleType, addresses: &[Address]) -> Capsule {
    let mut value = Vec::new();
    for address in addresses {
        varint::encode(address.request, &mut value);
        encode_address(address.prefix.addr(), true, &mut value);
        value.push(address.prefix.prefix_len());
    }
    Capsule {
        kind,
        value: value.into(),
    }
}

/// Reads the value of ADDRESS_ASSIGN.
///
/// # Errors
/// See [`AddressError`].
pub fn decode_assign(value: &Bytes) -> Result<Vec<Address>, AddressError> {
    decode(value)
}

/// Reads the value of ADDRESS_REQUEST.
///
/// # Errors
/// See [`AddressError`].
pub fn decode_request(value: &Bytes) -> Result<Vec<Address>, AddressError> {
    let addresses = decode(value)?;
    if addresses.is_empty() {
        return Err(AddressError::Empty);
    }
    if addresses.iter().any(|address| address.request == 0) {
        return Err(AddressError::NoNumber);
    }
    let mut numbers: Vec<_> = addresses.iter().map(|address| address.request).collect();
    numbers.sort_unstable();
    match numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(AddressError::Repeated(pair[0])),
        None => Ok(addresses),
    }
}

fn decode(value: &[u8]) -> Result<Vec<Address>, AddressError> {
    let mut reader = Reader::new(value);
    let mut addresses = Vec::new();
    while !reader.is_empty() {
        if addresses.len() == MAX_ADDRESSES {
            return Err(AddressError::TooMany);
        }
        let request = reader.varint()?;
        let version = reader.u8()?;
        let address = read_address(&mut reader, version)?;
        let length = reader.u8()?;
        let prefix = IpNet::new(address, length).ok();
        let prefix = prefix.filter(|prefix| prefix.trunc() == *prefix);
        let prefix = prefix.ok_or(AddressError::Prefix { address, length })?;
        addresses.push(Address { request, prefix });
    }
    Ok(addresses)
}

/// Appends an address, after its version if `with_version`.
pub(crate) fn encode_address(address: IpAddr, with_version: bool, value: &mut Vec<u8>) {
    if with_version {
        value.push(if address.is_ipv4() { 4 } else { 6 });
    }
    match address {
        IpAddr::V4(address) => value.extend(address.octets()),
        IpAddr::V6(address) => value.extend(address.octets()),
    }
}

/// Reads an address of this version.
pub(crate) fn read_address(reader: &mut Reader<'_>, version: u8) -> Result<IpAddr, AddressError> {
    match version {
        4 => Ok(Ipv4Addr::from(reader.array::<4>()?).into()),
        6 => Ok(Ipv6Addr::from(reader.array::<16>()?).into()),
        _ => Err(AddressError::Version(version)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_address() -> impl Strategy<Value = Address> {
        let v4 = (any::<u32>(), 0..=32_u8).prop_map(|(bits, length)| {
            IpNet::new(Ipv4Addr::from(bits).into(), length)
                .unwrap()
                .trunc()
        });
        let v6 = (any::<u128>(), 0..=128_u8).prop_map(|(bits, length)| {
            IpNet::new(Ipv6Addr::from(bits).into(), length)
                .unwrap()
                .trunc()
        });
        (0..varint::MAX, prop_oneof![v4, v6])
            .prop_map(|(request, prefix)| Address { request, prefix })
    }

    proptest! {
        #[test]
        fn addresses_that_are_encoded_decode_to_the_same(
            addresses in proptest::collection::vec(any_address(), 0..MAX_ADDRESSES),
        ) {
            let capsule = assign(&addresses);
            prop_assert!(capsule.value.len() <= MAX_ADDRESSES_BYTES);
            prop_assert_eq!(decode_assign(&capsule.value), Ok(addresses));
        }

        #[test]
        fn any_value_is_read_or_refused(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let value = Bytes::from(value);
            if let Ok(addresses) = decode_assign(&value) {
                prop_assert_eq!(decode_assign(&assign(&addresses).value), Ok(addresses));
            }
            let _ = decode_request(&value);
        }
    }

    /// RFC 9484, sections 4.7.1 and 4.7.2.
    #[test]
    fn malformed_capsules_are_refused() {
        let one = |request: u64, rest: &[u8]| {
            let mut value = Vec::new();
            varint::encode(request, &mut value);
            value.extend(rest);
            value
        };
        let any = [4, 0, 0, 0, 0, 32];
        for (value, expected) in [
            (vec![], AddressError::Empty),
            (one(0, &any), AddressError::NoNumber),
            (
                [one(7, &any), one(7, &any)].concat(),
                AddressError::Repeated(7),
            ),
            (one(1, &any[..5]), AddressError::Truncated),
            (one(1, &[5, 0, 0, 0, 0, 32]), AddressError::Version(5)),
            (
                one(1, &[4, 192, 0, 2, 1, 24]),
                AddressError::Prefix {
                    address: [192, 0, 2, 1].into(),
                    length: 24,
                },
            ),
            (
                one(1, &[4, 0, 0, 0, 0, 33]),
                AddressError::Prefix {
                    address: [0, 0, 0, 0].into(),
                    length: 33,
                },
            ),
            (
                one(1, &any).repeat(MAX_ADDRESSES + 1),
                AddressError::TooMany,
            ),
        ] {
            assert_eq!(decode_request(&value.into()), Err(expected));
        }
        // An assignment may withdraw all addresses, or be one that nobody requested.
        assert_eq!(decode_assign(&Bytes::new()), Ok(vec![]));
        assert!(decode_assign(&one(0, &any).into()).is_ok());
    }
}
