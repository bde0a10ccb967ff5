//! Headers of packets: link layer, IP, TCP and UDP.
//!
//! Functions on the path of each packet are `inline(always)`, here as in [`capture`](crate::capture): with calls between the
//! layers, decoded headers went through memory each time, which took about a tenth of all instructions (callgrind).

mod ip;
mod layers;
mod link;
mod part;
mod transport;
mod tunnel;
mod wifi;

use crate::capture::Packet;

pub(crate) use ip::{Fragment, FragmentKey};
pub(crate) use layers::{Layer, Layers, Tunnel, outer_ends};
pub use transport::Transport;
pub(crate) use transport::{Endpoint, Segment, TcpFields, flags};
pub(crate) use wifi::Aggregate;

/// The result of decoding a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decoded<'a> {
    /// TCP or UDP.
    Segment(Segment<'a>),
    /// A part of a fragmented packet that is not its first.
    Fragment(Fragment),
    /// Several packets.
    Aggregate(Aggregate<'a>),
    /// A packet outside flows.
    Skipped(Skipped),
    /// Its headers contradict each other, or were not captured.
    Malformed(Malformed),
}

/// The reason why a packet belongs to no flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// Neither IPv4 nor IPv6, such as ARP.
    NotIp,
    /// Neither TCP nor UDP, such as ICMP.
    OtherTransport,
    /// A tunnel that is not decoded: of another kind, without content, or too deep in others.
    Tunnel,
    /// Encrypted: ESP, frames of 802.11, CAPWAP over DTLS.
    Protected,
    /// A fragment whose first fragment was not seen before.
    LoneFragment,
    /// A later fragment of a packet with a tunnel: the packet in the tunnel counts with the first one.
    TunnelFragment,
    /// An unsupported link type.
    LinkType,
}

/// The malformed part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Too few bytes of its headers were captured.
    Cut,
    /// The header of its link.
    Link,
    /// The header of IP, or its extension headers.
    Ip,
    /// The header of TCP or UDP.
    Transport,
}

/// Decodes a packet and the layers around it. Never panics; an impossible header is [`Malformed`].
#[inline(always)]
pub(crate) fn decode<'a>(packet: &Packet<'a>, layers: &mut Layers) -> Decoded<'a> {
    link::decode(packet, layers)
}

/// Reads big-endian numbers of a header that may be cut.
#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
