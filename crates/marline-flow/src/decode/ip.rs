//! The headers of IPv4 (RFC 791) and IPv6 (RFC 8200).

use super::layers::Layers;
use super::part::Part;
use super::{Decoded, Malformed, transport, tunnel};
use crate::limits::MAX_EXTENSION_HEADERS;

/// The Ethernet types of both versions.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;

const TCP: u8 = 6;
const UDP: u8 = 17;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

/// A part of a fragmented packet that is not its first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    /// The key of its packet.
    pub(crate) key: FragmentKey,
    /// Length of the fragment with its headers.
    pub(crate) ip_bytes: u64,
    /// Its part of the content.
    pub(crate) payload_bytes: u64,
}

/// The packet that a fragment belongs to (RFC 791, section 3.2; RFC 8200, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FragmentKey {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) identification: Identification,
}

/// The identification of a fragmented packet between two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identification {
    id: u32,
    protocol: u8,
}

/// The addresses of IPv4 within those of IPv6 (RFC 4291, section 2.5.5.2).
#[inline]
pub(super) fn mapped(address: [u8; 4]) -> u128 {
    0xffff_0000_0000 | u128::from(u32::from_be_bytes(address))
}

/// The length of a packet: that in its header, or that on the link if offloads left the field 0.
fn total(stated: usize, on_link: usize) -> usize {
    match stated {
        0 => on_link,
        stated => stated,
    }
}

/// The fields of a header of IP about the packet that carries a segment or a tunnel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrier {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) ip_bytes: u64,
    /// The identification, if other fragments follow.
    pub(super) fragment: Option<Identification>,
}

impl Carrier {
    /// The key of the packet, if this is its first fragment.
    pub(super) fn fragment(&self) -> Option<FragmentKey> {
        self.fragment.map(|identification| FragmentKey {
            source: self.source,
            destination: self.destination,
            identification,
        })
    }
}

/// Whether a packet of IP with content begins here, followed by nothing as far as known.
pub(super) fn is_packet(part: Part<'_>) -> bool {
    let (header, stated) = match part.data {
        [first, _, high, low, ..] if first >> 4 == 4 => {
            (V4_HEADER, u16::from_be_bytes([*high, *low]).into())
        }
        [_, _, _, _, high, low, ..] => {
            let content = usize::from(u16::from_be_bytes([*high, *low]));
            (V6_HEADER, V6_HEADER + content)
        }
        _ => return false,
    };
    is_header(part) && stated > header && (part.is_open || stated == part.length)
}

/// Whether a header of IP begins here, whose packet fits.
pub(super) fn is_header(part: Part<'_>) -> bool {
    let fits = |length: usize| part.is_open || length <= part.length;
    match part.data {
        [first, _, high, low, ..] if first >> 4 == 4 => {
            let header = usize::from(first & 0xf) * 4;
            let total = total(u16::from_be_bytes([*high, *low]).into(), part.length);
            (V4_HEADER..=total).contains(&header) && fits(total)
        }
        [first, _, _, _, high, low, ..] if first >> 4 == 6 => {
            fits(V6_HEADER + usize::from(u16::from_be_bytes([*high, *low])))
        }
        _ => false,
    }
}

#[inline(always)]
pub(super) fn v4<'a>(part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    let (data, on_link) = (part.data, part.length);
    let Some(header) = data.first_chunk::<V4_HEADER>() else {
        return Decoded::Malformed(match on_link < V4_HEADER && !part.is_open {
            true => Malformed::Ip,
            false => Malformed::Cut,
        });
    };
    let header_len = usize::from(header[0] & 0xf) * 4;
    let stated = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let total = total(stated, on_link);
    if header_len < V4_HEADER || total < header_len || total > on_link && !part.is_open {
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
    Content {
        protocol,
        part: Part {
            data: content,
            length: total - header_len,
            is_open: fragment.is_some() || total > on_link,
        },
        carrier: Carrier {
            source,
            destination,
            ip_bytes: total as u64,
            fragment,
        },
    }
    .decode(offset > 0, layers)
}

// Not inlined: it would only lengthen the path of other packets.
#[inline(never)]
pub(super) fn v6<'a>(part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    let (data, on_link) = (part.data, part.length);
    let Some(header) = data.first_chunk::<V6_HEADER>() else {
        return Decoded::Malformed(match on_link < V6_HEADER && !part.is_open {
            true => Malformed::Ip,
            false => Malformed::Cut,
        });
    };
    let stated = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let content = total(stated, on_link - V6_HEADER);
    if content > on_link - V6_HEADER && !part.is_open {
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
                return Content {
                    protocol,
                    part: Part {
                        data: content,
                        length: total - at,
                        is_open: fragment.is_some() || total > on_link,
                    },
                    carrier: Carrier {
                        source,
                        destination,
                        ip_bytes: total as u64,
                        fragment,
                    },
                }
                .decode(is_later, layers);
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
            return Content {
                protocol,
                part: Part::new(&[], total - at),
                carrier: Carrier {
                    source,
                    destination,
                    ip_bytes: total as u64,
                    fragment,
                },
            }
            .decode(true, layers);
        }
    }
    Decoded::Malformed(Malformed::Ip)
}

/// A header at `at` is beyond the captured bytes, or beyond the packet.
fn cut_at<'a>(at: usize, total: usize) -> Decoded<'a> {
    Decoded::Malformed(match at >= total {
        true => Malformed::Ip,
        false => Malformed::Cut,
    })
}

/// The content of a packet of IP.
struct Content<'a> {
    protocol: u8,
    part: Part<'a>,
    carrier: Carrier,
}

impl<'a> Content<'a> {
    #[inline(always)]
    fn decode(self, is_later_fragment: bool, layers: &mut Layers) -> Decoded<'a> {
        if is_later_fragment && let Some(key) = self.carrier.fragment() {
            return Decoded::Fragment(Fragment {
                key,
                ip_bytes: self.carrier.ip_bytes,
                payload_bytes: self.part.length as u64,
            });
        }
        match self.protocol {
            TCP => transport::tcp(self.carrier, self.part),
            UDP => transport::udp(self.carrier, self.part, layers),
            number => tunnel::protocol(&self.carrier, number, self.part, layers),
        }
    }
}
