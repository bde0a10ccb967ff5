//! The header of the link layer.

use super::{Decoded, Malformed, Skipped, ip, u16_at};
use crate::capture::{LinkType, Packet};
use crate::limits::MAX_VLAN_TAGS;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, 802.1ad, and what preceded the latter.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// MPLS (unicast, multicast) and sessions of PPPoE.
const TUNNELS: [u16; 3] = [0x8847, 0x8848, 0x8864];

const ETHERNET: usize = 14;
const COOKED_V1: usize = 16;
const COOKED_V2: usize = 20;
const LOOPBACK: usize = 4;
const VLAN_TAG: usize = 4;

/// The ARP hardware types for which Linux gives no Ethernet protocol in a cooked header.
const ARPHRD_NETLINK: u16 = 824;

#[inline(always)]
pub(super) fn decode<'a>(packet: &Packet<'a>) -> Decoded<'a> {
    let data = packet.data;
    match packet.link {
        LinkType::Ethernet => ethernet(packet),
        LinkType::Raw => by_version(packet, 0),
        LinkType::Loopback => {
            // The family is in the byte order of the machine that captured; the version of IP says the same.
            by_version(packet, LOOPBACK)
        }
        LinkType::CookedV1 => match (u16_at(data, 2), u16_at(data, 14)) {
            (Some(ARPHRD_NETLINK), _) => Decoded::Skipped(Skipped::NotIp),
            (_, Some(kind)) => tagged(packet, kind, COOKED_V1),
            _ => cut(packet, COOKED_V1),
        },
        LinkType::CookedV2 => match (u16_at(data, 0), u16_at(data, 8)) {
            (_, Some(ARPHRD_NETLINK)) => Decoded::Skipped(Skipped::NotIp),
            (Some(kind), _) => tagged(packet, kind, COOKED_V2),
            _ => cut(packet, COOKED_V2),
        },
    }
}

#[inline(always)]
fn ethernet<'a>(packet: &Packet<'a>) -> Decoded<'a> {
    match u16_at(packet.data, 12) {
        Some(kind) => tagged(packet, kind, ETHERNET),
        None => cut(packet, ETHERNET),
    }
}

/// A packet too short for the header of its link, because the link or the capture made it so.
fn cut<'a>(packet: &Packet<'a>, header: usize) -> Decoded<'a> {
    Decoded::Malformed(match packet.length < header {
        true => Malformed::Link,
        false => Malformed::Cut,
    })
}

/// What follows an Ethernet type, the bytes after which begin at `at`.
#[inline(always)]
fn tagged<'a>(packet: &Packet<'a>, mut kind: u16, mut at: usize) -> Decoded<'a> {
    for _ in 0..=MAX_VLAN_TAGS {
        match kind {
            IPV4 | IPV6 => return by_version(packet, at),
            _ if VLAN.contains(&kind) => {}
            _ if TUNNELS.contains(&kind) => return Decoded::Skipped(Skipped::Tunnel),
            _ => return Decoded::Skipped(Skipped::NotIp),
        }
        match u16_at(packet.data, at + 2) {
            Some(inner) => kind = inner,
            None => return cut(packet, at + VLAN_TAG),
        }
        at += VLAN_TAG;
    }
    Decoded::Malformed(Malformed::Link)
}

#[inline(always)]
fn by_version<'a>(packet: &Packet<'a>, at: usize) -> Decoded<'a> {
    let Some(data) = packet.data.get(at..) else {
        return cut(packet, at);
    };
    let on_link = packet.length.saturating_sub(at);
    match data.first().map(|first| first >> 4) {
        Some(4) => ip::v4(data, on_link),
        Some(6) => ip::v6(data, on_link),
        // Loopback and raw links carry other protocols, too.
        Some(_) if matches!(packet.link, LinkType::Loopback | LinkType::Raw) => {
            Decoded::Skipped(Skipped::NotIp)
        }
        Some(_) => Decoded::Malformed(Malformed::Ip),
        None => cut(packet, at + 1),
    }
}
