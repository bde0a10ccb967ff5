//! The header of the link layer.

use super::layers::{Layer, Layers};
use super::part::Part;
use super::{Decoded, Malformed, Skipped, ip, ip::IPV4, ip::IPV6, tunnel, u16_at, wifi};
use crate::capture::{LinkType, Packet};
use crate::limits::MAX_VLAN_TAGS;

/// IEEE 802.1Q, 802.1ad, and its predecessor.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// MPLS, unicast and multicast.
pub(super) const MPLS: [u16; 2] = [0x8847, 0x8848];
/// Service function chains (RFC 8300).
pub(super) const NSH: u16 = 0x894f;
/// Sessions of PPPoE.
const PPPOE: u16 = 0x8864;
/// ARP, PPPoE discovery, EAPOL, LLDP, MACsec: content of frames other than IP, by which a frame can be recognized.
const OTHERS: [u16; 5] = [0x0806, 0x8863, 0x888e, 0x88cc, 0x88e5];

const ETHERNET: usize = 14;
const COOKED_V1: usize = 16;
const COOKED_V2: usize = 20;
const LOOPBACK: usize = 4;
const IPNET: usize = 24;
const VLAN_TAG: usize = 4;

/// Numbers below are lengths of frames of IEEE 802.3, those above Ethernet types.
const SMALLEST_TYPE: u16 = 0x600;

/// The ARP hardware types for which Linux gives no Ethernet protocol in a cooked header.
const ARPHRD_NETLINK: u16 = 824;
/// Frames of 802.2, which Linux marks by this protocol in a cooked header.
const ETH_P_802_2: u16 = 4;

#[inline(always)]
pub(super) fn decode<'a>(packet: &Packet<'a>, layers: &mut Layers) -> Decoded<'a> {
    layers.clear();
    let part = Part::new(packet.data, packet.length);
    match packet.link {
        LinkType::Ethernet => ethernet(part, layers),
        LinkType::Raw => raw(part, 0, layers),
        link => rare(link, part, layers),
    }
}

/// The link types except the two most frequent ones.
#[inline(never)]
fn rare<'a>(link: LinkType, part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    let decoded = match link {
        LinkType::Ethernet => return ethernet(part, layers),
        LinkType::Raw => return raw(part, 0, layers),
        // The family is in the byte order of the machine that captured; the version of IP says the same.
        LinkType::Loopback => return raw(part, LOOPBACK, layers),
        LinkType::CookedV1 => cooked(part, [2, 14], COOKED_V1, layers),
        LinkType::CookedV2 => cooked(part, [8, 0], COOKED_V2, layers),
        LinkType::Ppp => return ppp(part, layers),
        LinkType::PppWithDirection => part.after(1).map(|part| ppp(part, layers)),
        LinkType::PppPppd => part.after(2).map(|part| ppp(part, layers)),
        LinkType::PppEther => tunnel::pppoe(part, layers),
        LinkType::CiscoHdlc => cisco_hdlc(part, layers),
        LinkType::Wifi => return wifi::frame(part, layers),
        LinkType::Radiotap => wifi::radiotap(part, layers),
        LinkType::Ppi => wifi::ppi(part, layers),
        LinkType::Prism => wifi::prism(part, layers),
        LinkType::Avs => wifi::avs(part, layers),
        LinkType::Nflog => nflog(part, layers),
        // Its length is without padding.
        LinkType::Pflog => part.u8(0).map(|length| {
            let header = usize::from(length).next_multiple_of(4);
            raw(part, header, layers)
        }),
        LinkType::Ipnet => return raw(part, IPNET, layers),
        LinkType::Pktap => pktap(part, layers),
        LinkType::Atm => return llc(part, layers),
        LinkType::Other(_) => return Decoded::Skipped(Skipped::LinkType),
    };
    decoded.unwrap_or_else(Decoded::Malformed)
}

/// A packet of a link type stated by another header.
pub(super) fn of_number<'a>(number: u32, part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    match LinkType::from_number(number) {
        // They would be nested in themselves.
        LinkType::Ppi | LinkType::Pktap => Decoded::Malformed(Malformed::Link),
        link => rare(link, part, layers),
    }
}

#[inline(always)]
pub(super) fn ethernet<'a>(part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    match u16_at(part.data, 12) {
        Some(kind) => after(part, ETHERNET, |part| tagged(part, kind, layers)),
        None => Decoded::Malformed(part.cut(ETHERNET)),
    }
}

#[inline(always)]
fn after<'a>(
    part: Part<'a>,
    header: usize,
    decode: impl FnOnce(Part<'a>) -> Decoded<'a>,
) -> Decoded<'a> {
    match part.after(header) {
        Ok(part) => decode(part),
        Err(why) => Decoded::Malformed(why),
    }
}

/// A header of Linux with the hardware type and the Ethernet type at two offsets.
fn cooked<'a>(
    part: Part<'a>,
    [hardware, kind]: [usize; 2],
    header: usize,
    layers: &mut Layers,
) -> Result<Decoded<'a>, Malformed> {
    let [hardware, kind] = [part.u16(hardware)?, part.u16(kind)?];
    let part = part.after(header)?;
    Ok(match (hardware, kind) {
        (ARPHRD_NETLINK, _) => Decoded::Skipped(Skipped::NotIp),
        (_, ETH_P_802_2) => llc(part, layers),
        _ => tagged(part, kind, layers),
    })
}

/// Whether an Ethernet type is known.
pub(super) fn is_known(kind: u16) -> bool {
    matches!(kind, IPV4 | IPV6 | PPPOE | NSH)
        || [&VLAN[..], &MPLS, &OTHERS]
            .iter()
            .any(|kinds| kinds.contains(&kind))
}

/// Whether the value in place of an Ethernet type is the length of the content without padding, and that is of IEEE 802.2.
pub(super) fn is_llc(kind: u16, content: Part<'_>) -> bool {
    /// Content that the smallest frame has.
    const SMALLEST: usize = 46;
    let length = usize::from(kind);
    let is_length = kind < SMALLEST_TYPE
        && (content.is_open
            || length == content.length
            || length < content.length && content.length <= SMALLEST);
    // Both ends have the same protocol, and their frames are not numbered: information (SNAP, spanning tree, IS-IS), exchange of
    // identification, and test.
    is_length
        && matches!(content.array(0), Ok([to, from, 0x03 | 0x13 | 0xaf | 0xbf | 0xe3 | 0xf3])
            if (to ^ from) & !1 == 0)
}

/// The content after an Ethernet type.
#[inline(always)]
pub(super) fn tagged<'a>(part: Part<'a>, kind: u16, layers: &mut Layers) -> Decoded<'a> {
    match kind {
        IPV4 | IPV6 => by_version(part, layers),
        _ => other_type(part, kind, layers),
    }
}

#[inline(never)]
fn other_type<'a>(mut part: Part<'a>, mut kind: u16, layers: &mut Layers) -> Decoded<'a> {
    for _ in 0..=MAX_VLAN_TAGS {
        match kind {
            IPV4 | IPV6 => return by_version(part, layers),
            PPPOE => return tunnel::pppoe(part, layers).unwrap_or_else(Decoded::Malformed),
            NSH => return tunnel::nsh(part, layers).unwrap_or_else(Decoded::Malformed),
            _ if MPLS.contains(&kind) => {
                return tunnel::mpls(part, layers).unwrap_or_else(Decoded::Malformed);
            }
            _ if VLAN.contains(&kind) => {}
            length if length < SMALLEST_TYPE => return llc(part.limit(length.into()), layers),
            _ => return Decoded::Skipped(Skipped::NotIp),
        }
        let (Some(tag), Some(inner)) = (u16_at(part.data, 0), u16_at(part.data, 2)) else {
            return Decoded::Malformed(part.cut(VLAN_TAG));
        };
        // Without an identifier it is a priority only.
        let vlan = tag & 0xfff;
        if vlan > 0 && !layers.push(Layer::Vlan(vlan)) {
            return Decoded::Skipped(Skipped::Tunnel);
        }
        kind = inner;
        part = match part.after(VLAN_TAG) {
            Ok(part) => part,
            Err(why) => return Decoded::Malformed(why),
        };
    }
    Decoded::Malformed(Malformed::Link)
}

/// A header of IEEE 802.2: that of SNAP, which has an Ethernet type (RFC 1042), or that of IP.
pub(super) fn llc<'a>(part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    match part.data {
        [0xaa, 0xaa, 3, 0, 0, 0 | 0xf8, high, low, ..] => {
            let kind = u16::from_be_bytes([*high, *low]);
            after(part, 8, |part| tagged(part, kind, layers))
        }
        [6, 6, 3, ..] => after(part, 3, |part| by_version(part, layers)),
        // A bridged frame after two bytes of padding, with or without its check sequence (RFC 2684, section 5.2).
        [0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 1 | 7, ..] => {
            after(part, 10, |part| ethernet(part, layers))
        }
        [_, _, _, _, _, _, _, _, ..] => Decoded::Skipped(Skipped::NotIp),
        _ if part.length >= 8 => Decoded::Malformed(Malformed::Cut),
        _ => Decoded::Skipped(Skipped::NotIp),
    }
}

/// PPP (RFC 1661), with or without address and control of HDLC (RFC 1662), or Cisco's equivalent.
pub(super) fn ppp<'a>(part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    let start = match part.data {
        [0x0f | 0x8f, 0, ..] => {
            return cisco_hdlc(part, layers).unwrap_or_else(Decoded::Malformed);
        }
        [0xff, 3, ..] => 2,
        _ => 0,
    };
    after(part, start, |part| {
        // The first byte of a protocol is even, unless it is left out.
        let (protocol, length) = match part.data {
            [short, ..] if short & 1 == 1 => (u16::from(*short), 1),
            [high, low, ..] => (u16::from_be_bytes([*high, *low]), 2),
            _ => return Decoded::Malformed(part.cut(2)),
        };
        after(part, length, |part| match protocol {
            0x21 | 0x57 => by_version(part, layers),
            0x281 | 0x283 => tunnel::mpls(part, layers).unwrap_or_else(Decoded::Malformed),
            // Compressed and encrypted packets (RFC 1962, RFC 1968).
            0xfd | 0x53 => Decoded::Skipped(Skipped::Protected),
            _ => Decoded::Skipped(Skipped::NotIp),
        })
    })
}

/// Address and control, and an Ethernet type.
fn cisco_hdlc<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    let kind = part.u16(2)?;
    Ok(tagged(part.after(4)?, kind, layers))
}

/// A packet after a header of macOS, little-endian: its length, the type of the record, and the link type of the content.
fn pktap<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    const PACKET: u32 = 1;
    let [length, kind, link] = [0, 4, 8].map(|at| part.array(at).map(u32::from_le_bytes));
    if kind? != PACKET {
        return Ok(Decoded::Skipped(Skipped::NotIp));
    }
    let length = usize::try_from(length?).map_err(|_| Malformed::Link)?;
    if length < 12 {
        return Err(Malformed::Link);
    }
    Ok(of_number(link?, part.after(length)?, layers))
}

/// A message of Linux's netfilter: a family, a version and a number, then attributes in the byte order of the machine.
///
/// ```text
/// Attribute { Length (16), Type (16), Value (..) }     // padded to 32 bits; the length is with these four bytes
/// ```
fn nflog<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    const PAYLOAD: u16 = 9;
    /// The kernel has 20 kinds of attributes.
    const MAX_ATTRIBUTES: usize = 64;
    let version = part.u8(1)?;
    if version != 0 {
        return Err(Malformed::Link);
    }
    let mut part = part.after(4)?;
    for _ in 0..MAX_ATTRIBUTES {
        if part.length == 0 {
            return Ok(Decoded::Skipped(Skipped::NotIp));
        }
        let [length, kind] = [part.array::<2>(0)?, part.array(2)?];
        // The length of every attribute but a packet is below 256.
        let is_little = kind[1] == 0;
        let number = |bytes| match is_little {
            true => u16::from_le_bytes(bytes),
            false => u16::from_be_bytes(bytes),
        };
        let length = usize::from(number(length));
        if length < 4 {
            return Err(Malformed::Link);
        }
        if number(kind) == PAYLOAD {
            let mut packet = part.limit(length).after(4)?;
            // The rule may copy the first bytes of packets only.
            packet.is_open = true;
            return Ok(raw(packet, 0, layers));
        }
        part = part.after(length.next_multiple_of(4))?;
    }
    Err(Malformed::Link)
}

/// A packet of IP after a header that does not describe it; other protocols occur, too.
#[inline(always)]
fn raw<'a>(part: Part<'a>, header: usize, layers: &mut Layers) -> Decoded<'a> {
    after(part, header, |part| {
        match part.data.first().map(|first| first >> 4) {
            Some(4) => ip::v4(part, layers),
            Some(6) => ip::v6(part, layers),
            Some(_) => Decoded::Skipped(Skipped::NotIp),
            None => Decoded::Malformed(part.cut(1)),
        }
    })
}

#[inline(always)]
pub(super) fn by_version<'a>(part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    match part.data.first().map(|first| first >> 4) {
        Some(4) => ip::v4(part, layers),
        Some(6) => ip::v6(part, layers),
        Some(_) => Decoded::Malformed(Malformed::Ip),
        None => Decoded::Malformed(part.cut(1)),
    }
}
