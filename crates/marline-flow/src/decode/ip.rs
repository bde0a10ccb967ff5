//! The headers of IPv4 (RFC 791) and IPv6 (RFC 8200).

use super::transport::{self, Headers};
use super::{Decoded, Malformed, Skipped, u16_at};
use crate::limits::MAX_EXTENSION_HEADERS;

const TCP: u8 = 6;
const UDP: u8 = 17;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

/// A part of a fragmented packet that is not its first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    /// Of which packet.
    pub(crate) key: FragmentKey,
    /// Length of the fragment with its headers.
    pub(crate) ip_bytes: u64,
    /// Its part of the content.
    pub(crate) payload_bytes: u64,
}

/// Which fragmented packet a fragment is of (RFC 791, section 3.2; RFC 8200, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FragmentKey {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) identification: Identification,
}

/// Which of the fragmented packets between two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identification {
    id: u32,
    protocol: u8,
}

/// The addresses of IPv4 within those of IPv6 (RFC 4291, section 2.5.5.2).
#[inline]
fn mapped(address: [u8; 4]) -> u128 {
    0xffff_0000_0000 | u128::from(u32::from_be_bytes(address))
}

/// Protocols that carry packets of IP, or frames that do: IP in IP, IPv6 in IP, L2TP, GRE, ESP, EtherIP, IPComp, MPLS.
fn is_tunnel(protocol: u8) -> bool {
    matches!(protocol, 4 | 41 | 47 | 50 | 97 | 98 | 108 | 115 | 137)
}

/// The length of a packet: that of its header, or what is on the link where offloads left the field 0.
fn total(stated: usize, on_link: usize) -> usize {
    match stated {
        0 => on_link,
        stated => stated,
    }
}

#[inline(always)]
pub(super) fn v4(data: &[u8], on_link: usize) -> Decoded<'_> {
    let Some(header) = data.first_chunk::<V4_HEADER>() else {
        return Decoded::Malformed(match on_link < V4_HEADER {
            true => Malformed::Ip,
            false => Malformed::Cut,
        });
    };
    let header_len = usize::from(header[0] & 0xf) * 4;
    let stated = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let total = total(stated, on_link);
    if header_len < V4_HEADER || total < header_len || total > on_link {
        return Decoded::Malformed(Malformed::Ip);
    }
    let data = &data[..data.len().min(total)];
    let Some(content) = data.get(header_len..) else {
        return Decoded::Malformed(Malformed::Cut);
    };
    let protocol = header[9];
    let source = mapped([header[12], header[13], header[14], header[15]]);
    let destination = mapped([header[16], header[17], header[18], header[19]]);
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let offset = fragment & 0x1fff;
    let more = fragment & 0x2000 != 0;
    let fragment = (more || offset > 0).then(|| Identification {
        id: u16::from_be_bytes([header[4], header[5]]).into(),
        protocol,
    });
    Layer {
        protocol,
        content,
        content_bytes: total - header_len,
        headers: Headers {
            source,
            destination,
            ip_bytes: total as u64,
            fragment,
        },
    }
    .decode(offset > 0)
}

// Not inlined: it would only make the way of other packets longer.
#[inline(never)]
pub(super) fn v6(data: &[u8], on_link: usize) -> Decoded<'_> {
    let Some(header) = data.first_chunk::<V6_HEADER>() else {
        return Decoded::Malformed(match on_link < V6_HEADER {
            true => Malformed::Ip,
            false => Malformed::Cut,
        });
    };
    let stated = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let content = total(stated, on_link - V6_HEADER);
    if content > on_link - V6_HEADER {
        return Decoded::Malformed(Malformed::Ip);
    }
    let total = V6_HEADER + content;
    let data = &data[..data.len().min(total)];
    let address = |at: usize| {
        let bytes = header[at..].first_chunk().copied();
        u128::from_be_bytes(bytes.unwrap_or_default())
    };
    let (source, destination) = (address(8), address(24));
    let mut protocol = header[6];
    let mut at = V6_HEADER;
    let mut fragment = None;
    let mut is_later = false;
    for _ in 0..=MAX_EXTENSION_HEADERS {
        let length = match protocol {
            // Hop-by-hop options, routing, destination options, mobility, host identity, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => match data.get(at + 1) {
                Some(length) => (usize::from(*length) + 1) * 8,
                None => return cut_at(at, total),
            },
            // An authentication header counts in units of four bytes.
            51 => match data.get(at + 1) {
                Some(length) => (usize::from(*length) + 2) * 4,
                None => return cut_at(at, total),
            },
            44 => {
                let Some(field) = data.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
                    return cut_at(at, total);
                };
                let position = u16::from_be_bytes([field[2], field[3]]);
                // The first fragment without others after it is whole ("atomic", RFC 6946).
                if position & 0xfff9 != 0 {
                    is_later = position >> 3 > 0;
                    fragment = Some(Identification {
                        id: u32::from_be_bytes([4, 5, 6, 7].map(|i| field[i])),
                        // The next header of later fragments may differ.
                        protocol: 0,
                    });
                }
                8
            }
            _ => {
                let Some(content) = data.get(at..) else {
                    return cut_at(at, total);
                };
                return Layer {
                    protocol,
                    content,
                    content_bytes: total - at,
                    headers: Headers {
                        source,
                        destination,
                        ip_bytes: total as u64,
                        fragment,
                    },
                }
                .decode(is_later);
            }
        };
        let Some(next) = data.get(at) else {
            return cut_at(at, total);
        };
        protocol = *next;
        at += length;
        if at > total {
            return Decoded::Malformed(Malformed::Ip);
        }
        if is_later {
            return Layer {
                protocol,
                content: &[],
                content_bytes: total - at,
                headers: Headers {
                    source,
                    destination,
                    ip_bytes: total as u64,
                    fragment,
                },
            }
            .decode(true);
        }
    }
    Decoded::Malformed(Malformed::Ip)
}

/// A header at `at` is beyond what was captured, or beyond the packet.
fn cut_at<'a>(at: usize, total: usize) -> Decoded<'a> {
    Decoded::Malformed(match at >= total {
        true => Malformed::Ip,
        false => Malformed::Cut,
    })
}

/// What IP carries.
struct Layer<'a> {
    protocol: u8,
    /// As much as was captured.
    content: &'a [u8],
    /// Its length on the link.
    content_bytes: usize,
    headers: Headers,
}

impl<'a> Layer<'a> {
    #[inline(always)]
    fn decode(self, is_later_fragment: bool) -> Decoded<'a> {
        if let (true, Some(identification)) = (is_later_fragment, self.headers.fragment) {
            return Decoded::Fragment(Fragment {
                key: FragmentKey {
                    source: self.headers.source,
                    destination: self.headers.destination,
                    identification,
                },
                ip_bytes: self.headers.ip_bytes,
                payload_bytes: self.content_bytes as u64,
            });
        }
        match self.protocol {
            TCP => transport::tcp(self.headers, self.content, self.content_bytes),
            UDP => transport::udp(self.headers, self.content, self.content_bytes),
            protocol if is_tunnel(protocol) => Decoded::Skipped(Skipped::Tunnel),
            _ => Decoded::Skipped(Skipped::OtherTransport),
        }
    }
}

/// Whether a datagram between these ports is that of a tunnel: VXLAN (RFC 7348), Geneve (RFC 8926), GTP-U (3GPP TS 29.281),
/// L2TP (RFC 2661).
pub(super) fn is_tunnel_datagram(destination: u16, content: &[u8]) -> bool {
    let first = content.first().copied();
    match destination {
        4789 => first == Some(0x08),
        6081 => first.is_some_and(|first| first >> 6 == 0) && u16_at(content, 2) == Some(0x6558),
        2152 => first.is_some_and(|first| first >> 4 == 3) && content.get(1) == Some(&0xff),
        1701 => u16_at(content, 0).is_some_and(|field| field & 0xf == 2),
        _ => false,
    }
}
