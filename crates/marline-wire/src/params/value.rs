//! Encodings of the value types of transport parameters.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use crate::{ConnectionId, Reader, varint};

/// The value of a parameter, without its ID and length.
pub(super) trait Value: Sized {
    /// Length in bytes.
    fn size(&self) -> usize;
    /// Appends the bytes.
    fn write(&self, buf: &mut Vec<u8>);
    /// Reads the value from a reader that ends with it; `None` if it is malformed.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
}

impl Value for u64 {
    fn size(&self) -> usize {
        varint::size(*self)
    }

    fn write(&self, buf: &mut Vec<u8>) {
        varint::encode(*self, buf);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.varint().ok()
    }
}

/// A variable-length integer of at most 32 bits.
impl Value for u32 {
    fn size(&self) -> usize {
        varint::size((*self).into())
    }

    fn write(&self, buf: &mut Vec<u8>) {
        varint::encode((*self).into(), buf);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.varint().ok()?.try_into().ok()
    }
}

/// Present and empty, or absent.
impl Value for bool {
    fn size(&self) -> usize {
        0
    }

    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut Reader<'_>) -> Option<Self> {
        Some(true)
    }
}

impl Value for ConnectionId {
    fn size(&self) -> usize {
        self.len()
    }

    fn write(&self, buf: &mut Vec<u8>) {
        buf.extend_from_slice(self);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(reader.rest())
    }
}

impl<const N: usize> Value for [u8; N] {
    fn size(&self) -> usize {
        N
    }

    fn write(&self, buf: &mut Vec<u8>) {
        buf.extend_from_slice(self);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.array().ok()
    }
}

/// Absent if `None`; then neither ID nor length is written.
impl<T: Value> Value for Option<T> {
    fn size(&self) -> usize {
        self.as_ref().map_or(0, T::size)
    }

    fn write(&self, buf: &mut Vec<u8>) {
        if let Some(value) = self {
            value.write(buf);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        T::read(reader).map(Some)
    }
}

/// The address to which a server asks its clients to migrate after the handshake (RFC 9000, section 18.2).
///
/// ```text
/// Preferred Address {
///   IPv4 Address (32), IPv4 Port (16),
///   IPv6 Address (128), IPv6 Port (16),
///   Connection ID Length (8), Connection ID (..),
///   Stateless Reset Token (128),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreferredAddress {
    /// IPv4 address; all zeros on the wire if absent.
    pub ipv4: Option<SocketAddrV4>,
    /// IPv6 address; all zeros on the wire if absent. Flow label and scope ID are not sent.
    pub ipv6: Option<SocketAddrV6>,
    /// Connection ID for this address, of 1 to 20 bytes; its sequence number is 1.
    pub connection_id: ConnectionId,
    /// Stateless reset token of this connection ID.
    pub stateless_reset_token: [u8; 16],
}

impl Value for PreferredAddress {
    fn size(&self) -> usize {
        (4 + 2) + (16 + 2) + 1 + self.connection_id.len() + 16
    }

    fn write(&self, buf: &mut Vec<u8>) {
        let (ip, port) = self.ipv4.map_or((Ipv4Addr::UNSPECIFIED, 0), |address| {
            (*address.ip(), address.port())
        });
        buf.extend_from_slice(&ip.octets());
        buf.extend_from_slice(&port.to_be_bytes());
        let (ip, port) = self.ipv6.map_or((Ipv6Addr::UNSPECIFIED, 0), |address| {
            (*address.ip(), address.port())
        });
        buf.extend_from_slice(&ip.octets());
        buf.extend_from_slice(&port.to_be_bytes());
        buf.push(self.connection_id.len() as u8);
        buf.extend_from_slice(&self.connection_id);
        buf.extend_from_slice(&self.stateless_reset_token);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let ip = Ipv4Addr::from(reader.array::<4>().ok()?);
        let port = u16::from_be_bytes(reader.array().ok()?);
        let ipv4 = (!ip.is_unspecified() || port != 0).then(|| SocketAddrV4::new(ip, port));
        let ip = Ipv6Addr::from(reader.array::<16>().ok()?);
        let port = u16::from_be_bytes(reader.array().ok()?);
        let ipv6 = (!ip.is_unspecified() || port != 0).then(|| SocketAddrV6::new(ip, port, 0, 0));
        let len = reader.u8().ok()?;
        let connection_id = ConnectionId::new(reader.take(len.into()).ok()?)?;
        if connection_id.is_empty() {
            return None;
        }
        Some(Self {
            ipv4,
            ipv6,
            connection_id,
            stateless_reset_token: reader.array().ok()?,
        })
    }
}

/// The bundle of a client's connection (an extension of marline).
///
/// ```text
/// Bundle {
///   Bundle ID (128),
///   Connections (i),
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BundleMembership {
    /// Random identifier chosen by the client, equal for all connections of the bundle.
    pub id: [u8; 16],
    /// Number of connections that the client intends to open, at least 1.
    pub connections: u64,
}

impl fmt::Debug for BundleMembership {
    /// Prints only a prefix of the identifier, whose knowledge suffices to join the bundle.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundleMembership")
            .field(
                "id",
                &format_args!("{:02x}{:02x}..", self.id[0], self.id[1]),
            )
            .field("connections", &self.connections)
            .finish()
    }
}

impl Value for BundleMembership {
    fn size(&self) -> usize {
        self.id.len() + varint::size(self.connections)
    }

    fn write(&self, buf: &mut Vec<u8>) {
        buf.extend_from_slice(&self.id);
        varint::encode(self.connections, buf);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let id = reader.array().ok()?;
        let connections = reader.varint().ok()?;
        (connections > 0).then_some(Self { id, connections })
    }
}

/// The Version Information of an endpoint (RFC 9368, section 3).
///
/// ```text
/// Version Information {
///   Chosen Version (32),
///   Available Versions (32) ...,
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInformation {
    /// Client: the version of its first packet. Server: the version of the connection.
    pub chosen: u32,
    /// Client: versions compatible with its first flight, the preferred first. Server: versions
    /// supported by all its instances; may be empty.
    pub available: Vec<u32>,
}

/// A version must not be 0, which marks Version Negotiation packets (RFC 9368, section 4).
impl Value for VersionInformation {
    fn size(&self) -> usize {
        4 + 4 * self.available.len()
    }

    fn write(&self, buf: &mut Vec<u8>) {
        for version in std::iter::once(&self.chosen).chain(&self.available) {
            buf.extend_from_slice(&version.to_be_bytes());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let chosen = reader.u32().ok()?;
        let (versions, rest) = reader.rest().as_chunks();
        let available: Vec<u32> = versions.iter().map(|v| u32::from_be_bytes(*v)).collect();
        let is_valid = rest.is_empty() && chosen != 0 && !available.contains(&0);
        is_valid.then_some(Self { chosen, available })
    }
}
