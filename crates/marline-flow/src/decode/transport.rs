//! The headers of TCP (RFC 9293) and UDP (RFC 768).

use std::net::{IpAddr, Ipv6Addr};

use super::ip::{Carrier, FragmentKey};
use super::layers::Layers;
use super::part::Part;
use super::{Decoded, Malformed, tunnel};

/// The transport of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP, including that of QUIC.
    Udp,
}

impl Transport {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }

    /// Its number in IANA's registry of protocols.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// An address and a port; addresses of IPv4 are mapped into those of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    address: u128,
    port: u16,
}

impl Endpoint {
    /// The endpoint of an address as in a header, or mapped.
    pub(crate) const fn new(address: u128, port: u16) -> Self {
        Self { address, port }
    }

    /// The address.
    pub(crate) fn ip(self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(self.address)).to_canonical()
    }

    /// The port.
    pub(crate) const fn port(self) -> u16 {
        self.port
    }

    /// The bits of the address.
    pub(crate) const fn bits(self) -> u128 {
        self.address
    }

    /// Whether it is the first of the ends of a flow: by address, then by port.
    #[inline]
    pub(crate) const fn is_first_of(self, other: Self) -> bool {
        // Not by equality, which would read 16 bytes at a time what was just written by eight.
        self.address < other.address || self.address <= other.address && self.port <= other.port
    }
}

/// Flags of TCP.
pub(crate) mod flags {
    pub(crate) const FIN: u8 = 0x01;
    pub(crate) const SYN: u8 = 0x02;
    pub(crate) const RST: u8 = 0x04;
    pub(crate) const PSH: u8 = 0x08;
    pub(crate) const ACK: u8 = 0x10;
}

/// A segment of TCP or a datagram of UDP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) source: Endpoint,
    pub(crate) destination: Endpoint,
    /// The fields of TCP; `None` for UDP.
    pub(crate) tcp: Option<TcpFields>,
    /// Length of the packet of IP.
    pub(crate) ip_bytes: u64,
    /// Length of the content, captured or not.
    pub(crate) payload_bytes: u64,
    /// The content as far as it was captured; empty for a fragment.
    pub(crate) payload: &'a [u8],
    /// The key of the packet, if this is its first fragment.
    pub(crate) fragment: Option<FragmentKey>,
}

impl Segment<'_> {
    pub(crate) const fn transport(&self) -> Transport {
        match self.tcp {
            Some(_) => Transport::Tcp,
            None => Transport::Udp,
        }
    }
}

/// The fields of a TCP header that the state of a connection requires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpFields {
    pub(crate) sequence: u32,
    pub(crate) acknowledgment: u32,
    pub(crate) flags: u8,
}

const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// A header was not captured as a whole, or its packet is too short for it.
fn cut<'a>(bytes: usize, header: usize) -> Decoded<'a> {
    Decoded::Malformed(match bytes < header {
        true => Malformed::Transport,
        false => Malformed::Cut,
    })
}

#[inline(always)]
pub(super) fn tcp(carrier: Carrier, part: Part<'_>) -> Decoded<'_> {
    let (content, bytes) = (part.data, part.length);
    // The flags are the last field that is needed; the rest of the header may be beyond what was captured.
    let Some(header) = content.first_chunk::<14>() else {
        return cut(bytes, TCP_HEADER);
    };
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < TCP_HEADER || header_len > bytes {
        return Decoded::Malformed(Malformed::Transport);
    }
    Decoded::Segment(Segment {
        source: Endpoint::new(carrier.source, u16::from_be_bytes([header[0], header[1]])),
        destination: Endpoint::new(
            carrier.destination,
            u16::from_be_bytes([header[2], header[3]]),
        ),
        tcp: Some(TcpFields {
            sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            acknowledgment: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
            flags: header[13],
        }),
        ip_bytes: carrier.ip_bytes,
        payload_bytes: (bytes - header_len) as u64,
        payload: payload(&carrier, content, header_len),
        fragment: carrier.fragment(),
    })
}

#[inline(always)]
pub(super) fn udp<'a>(carrier: Carrier, part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    let (content, bytes) = (part.data, part.length);
    let Some(header) = content.first_chunk::<4>() else {
        return cut(bytes, UDP_HEADER);
    };
    if bytes < UDP_HEADER {
        return Decoded::Malformed(Malformed::Transport);
    }
    let source = u16::from_be_bytes([header[0], header[1]]);
    let destination = u16::from_be_bytes([header[2], header[3]]);
    if let Some(port) = tunnel::port(source, destination)
        && let Ok(datagram) = part.after(UDP_HEADER)
        && let Some(decoded) = tunnel::datagram(&carrier, port, datagram, layers)
    {
        return decoded;
    }
    Decoded::Segment(Segment {
        source: Endpoint::new(carrier.source, source),
        destination: Endpoint::new(carrier.destination, destination),
        tcp: None,
        ip_bytes: carrier.ip_bytes,
        payload_bytes: (bytes - UDP_HEADER) as u64,
        payload: payload(&carrier, content, UDP_HEADER),
        fragment: carrier.fragment(),
    })
}

#[inline]
fn payload<'a>(carrier: &Carrier, content: &'a [u8], header_len: usize) -> &'a [u8] {
    match carrier.fragment {
        None => content.get(header_len..).unwrap_or_default(),
        Some(_) => &[],
    }
}
