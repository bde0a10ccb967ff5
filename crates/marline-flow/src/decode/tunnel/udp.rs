//! Tunnels over UDP, which are recognized by their ports.

use super::super::ip::Carrier;
use super::super::layers::{Layers, TunnelKind};
use super::super::part::Part;
use super::super::{Decoded, Skipped, ip};
use super::{Inner, is_plausible, open, stack};

/// Ports of tunnels over UDP.
const L2TP: u16 = 1701;
const GTP_U: u16 = 2152;
const TEREDO: u16 = 3544;
const GRE_IN_UDP: u16 = 4754;
const VXLAN: u16 = 4789;
const VXLAN_GPE: u16 = 4790;
const AYIYA: u16 = 5072;
const CAPWAP: u16 = 5247;
const GENEVE: u16 = 6081;
const MPLS_IN_UDP: u16 = 6635;
/// The port that Linux used for VXLAN before one was assigned, and still does by default.
const VXLAN_OF_LINUX: u16 = 8472;

/// The port of a tunnel, if one of these is: the receiver's, or in answers from it the sender's.
#[inline(always)]
pub(in crate::decode) fn port(source: u16, destination: u16) -> Option<u16> {
    match (source, destination) {
        (
            _,
            L2TP | GTP_U | TEREDO | GRE_IN_UDP | VXLAN | VXLAN_GPE | AYIYA | CAPWAP | GENEVE
            | MPLS_IN_UDP | VXLAN_OF_LINUX,
        ) => Some(destination),
        (L2TP | TEREDO | AYIYA | CAPWAP, _) => Some(source),
        _ => None,
    }
}

/// The content of a datagram to the port of a tunnel; `None` if it is of another protocol, as an impossible header or invalid inner
/// packet shows.
///
/// Bits that a sender must leave 0 are checked, though receivers ignore them: other programs use the ports of tunnels, resolvers
/// even for DNS.
#[inline(never)]
pub(in crate::decode) fn datagram<'a>(
    carrier: &Carrier,
    port: u16,
    part: Part<'a>,
    layers: &mut Layers,
) -> Option<Decoded<'a>> {
    let found = match port {
        L2TP => l2tp(part),
        GTP_U => gtp_u(part),
        TEREDO => teredo(part),
        GRE_IN_UDP => gre_in_udp(part),
        AYIYA => ayiya(part),
        CAPWAP => return capwap(carrier, part, layers),
        GENEVE => geneve(part),
        MPLS_IN_UDP => mpls_in_udp(part),
        _ => vxlan(part),
    }?;
    if !is_plausible(found.inner, found.content) {
        return None;
    }
    layers.set_fragment(carrier.fragment());
    let tunnel = carrier.tunnel(found.kind, found.id);
    Some(open(tunnel, found.inner, found.content, layers))
}

/// A tunnel in a datagram.
struct Found<'a> {
    kind: TunnelKind,
    id: Option<u32>,
    inner: Inner,
    content: Part<'a>,
}

/// ```text
/// GTP-U Header {
///   Version (3) = 1, PT (1) = 1, Reserved (1), E (1), S (1), PN (1),
///   Message Type (8) = 255,
///   Length (16),                      // of what follows these eight bytes
///   TEID (32),
///   Sequence Number (16), N-PDU Number (8), Next Extension Header Type (8),   // if any of E, S and PN
/// }
/// Extension Header {
///   Length (8),                       // in units of four bytes
///   Content (..),
///   Next Extension Header Type (8),
/// }
/// ```
fn gtp_u(part: Part<'_>) -> Option<Found<'_>> {
    const G_PDU: u8 = 255;
    /// The standard has eight kinds of extension headers.
    const MAX_EXTENSIONS: usize = 8;
    let [flags, kind] = part.array(0).ok()?;
    let length = usize::from(part.u16(2).ok()?);
    let is_whole = part.is_open || length + 8 <= part.length;
    if flags >> 4 != 3 || kind != G_PDU || !is_whole {
        return None;
    }
    let mut at = 8;
    if flags & 7 != 0 {
        let mut next = part.u8(11).ok()?;
        at = 12;
        for _ in 0..MAX_EXTENSIONS {
            if next == 0 || flags & 4 == 0 {
                break;
            }
            let units = usize::from(part.u8(at).ok()?);
            if units == 0 {
                return None;
            }
            at += units * 4;
            next = part.u8(at - 1).ok()?;
        }
    }
    Some(Found {
        kind: TunnelKind::GtpU,
        id: Some(part.u32(4).ok()?),
        inner: Inner::Ip,
        content: part.limit(8 + length).after(at).ok()?,
    })
}

/// ```text
/// VXLAN Header {
///   G (1), Reserved (3), I (1) = 1, P (1), B (1), O (1),
///   Reserved (1), D (1), Reserved (2), A (1), Reserved (3),    // D and A only if G
///   Group (16),                       // if G (draft-smith-vxlan-group-policy-05)
///   Next Protocol (8),                // its second half, if P (draft-ietf-nvo3-vxlan-gpe-13)
///   VNI (24), Reserved (8),
/// }
/// ```
fn vxlan(part: Part<'_>) -> Option<Found<'_>> {
    let [flags, policy, group @ .., a, b, c, reserved] = part.array::<8>(0).ok()?;
    let inner = match (flags, policy, group) {
        (0x08, 0, [0, 0]) => Inner::Ethernet,
        (0x88, policy, _) if policy & !0x48 == 0 => Inner::Ethernet,
        (0x0c | 0x0e, 0, [0, protocol]) => Inner::of_next_protocol(protocol)?,
        _ => return None,
    };
    (reserved == 0).then_some(Found {
        kind: TunnelKind::Vxlan,
        id: Some(u32::from_be_bytes([0, a, b, c])),
        inner,
        content: part.after(8).ok()?,
    })
}

/// ```text
/// Geneve Header {
///   Version (2) = 0, Option Length (6),    // in units of four bytes
///   O (1), C (1), Reserved (6),
///   Protocol Type (16),
///   VNI (24), Reserved (8),
///   Options (..),
/// }
/// ```
fn geneve(part: Part<'_>) -> Option<Found<'_>> {
    let [first, flags] = part.array(0).ok()?;
    let id = part.u32(4).ok()?;
    if first >> 6 != 0 || flags & 0x3f != 0 || id & 0xff != 0 {
        return None;
    }
    Some(Found {
        kind: TunnelKind::Geneve,
        id: Some(id >> 8),
        inner: Inner::of_type(part.u16(2).ok()?)?,
        content: part.after(8 + usize::from(first & 0x3f) * 4).ok()?,
    })
}

/// GRE in UDP (RFC 8086): the header of [`gre`](super::gre), version 0.
fn gre_in_udp(part: Part<'_>) -> Option<Found<'_>> {
    let flags = part.u16(0).ok()?;
    if flags & 0x4fff != 0 {
        return None;
    }
    let field = |bit: u16| if flags & bit != 0 { 4 } else { 0 };
    let key_at = 4 + field(0x8000);
    Some(Found {
        kind: TunnelKind::Gre,
        id: match field(0x2000) {
            0 => None,
            _ => Some(part.u32(key_at).ok()?),
        },
        inner: Inner::of_type(part.u16(2).ok()?)?,
        content: part.after(key_at + field(0x2000) + field(0x1000)).ok()?,
    })
}

/// MPLS in UDP (RFC 7510).
fn mpls_in_udp(part: Part<'_>) -> Option<Found<'_>> {
    let stack = stack(part).ok()?;
    let (inner, content) = stack.inner()?;
    let is_whole = matches!(inner, Inner::Ethernet) || ip::is_packet(content);
    (stack.is_alive && is_whole).then_some(Found {
        kind: TunnelKind::Mpls,
        id: Some(stack.innermost),
        inner,
        content,
    })
}

/// ```text
/// Teredo Packet {
///   Type (16) = 1, ID Length (8), Authentication Length (8),      // a packet of a server may begin with these
///   ID (..), Authentication (..), Nonce (64), Confirmation (8),
///   Type (16) = 0, Port (16), Address (32),                       // and with where it came from
///   Packet (..),                                                  // of IPv6
/// }
/// ```
fn teredo(part: Part<'_>) -> Option<Found<'_>> {
    const AUTHENTICATION: u16 = 1;
    const ORIGIN: u16 = 0;
    /// The prefix of clients' addresses (RFC 4380, section 2.6).
    const PREFIX: [u8; 4] = [0x20, 1, 0, 0];
    let mut at = 0;
    if part.u16(0).ok()? == AUTHENTICATION {
        let [id, value] = part.array(2).ok()?.map(usize::from);
        at = 4 + id + value + 9;
    }
    if part.u16(at).ok()? == ORIGIN {
        at += 8;
    }
    let content = part.after(at).ok()?;
    let is_v6 = content.u8(0).ok()? >> 4 == 6;
    let is_of_client = [8, 24]
        .into_iter()
        .any(|at| content.array(at) == Ok(PREFIX));
    (is_v6 && is_of_client).then_some(Found {
        kind: TunnelKind::Teredo,
        id: None,
        inner: Inner::Ip,
        content,
    })
}

/// ```text
/// AYIYA Header {                      // draft-massar-v6ops-ayiya-02
///   Identity Length (4), Identity Type (4),       // the length as a power of two
///   Signature Length (4), Hash Method (4),        // the length in units of four bytes
///   Authentication Method (4), Operation (4), Next Header (8),
///   Epoch Time (32), Identity (..), Signature (..),
/// }
/// ```
fn ayiya(part: Part<'_>) -> Option<Found<'_>> {
    /// Operations with a packet: to forward, also with an echo.
    const FORWARD: [u8; 2] = [1, 3];
    let [identity, signature, operation, next] = part.array(0).ok()?;
    let version = match next {
        4 => 4,
        41 => 6,
        _ => return None,
    };
    let header = 8 + (1usize << (identity >> 4)) + usize::from(signature >> 4) * 4;
    let content = part.after(header).ok()?;
    let is_forwarded = FORWARD.contains(&(operation & 0xf));
    let is_packet = content.u8(0).ok()? >> 4 == version && ip::is_packet(content);
    (is_forwarded && is_packet).then_some(Found {
        kind: TunnelKind::Ayiya,
        id: None,
        inner: Inner::Ip,
        content,
    })
}

/// ```text
/// L2TP Data Header {
///   T (1) = 0, L (1), Reserved (2), S (1), Reserved (1), O (1), P (1), Reserved (4), Version (4) = 2,
///   Length (16),                      // if L
///   Tunnel ID (16), Session ID (16),
///   Ns (16), Nr (16),                 // if S
///   Offset Size (16), Offset Pad (..),    // if O
/// }
/// ```
fn l2tp(part: Part<'_>) -> Option<Found<'_>> {
    let flags = part.u16(0).ok()?;
    if flags & 0xb4ff != 2 {
        return None;
    }
    let has_length = flags & 0x4000 != 0;
    if has_length && !part.is_open && usize::from(part.u16(2).ok()?) > part.length {
        return None;
    }
    let mut at = if has_length { 4 } else { 2 };
    let id = part.u32(at).ok()?;
    at += 4;
    if flags & 0x0800 != 0 {
        at += 4;
    }
    if flags & 0x0200 != 0 {
        at += 2 + usize::from(part.u16(at).ok()?);
    }
    Some(Found {
        kind: TunnelKind::L2tp,
        id: Some(id),
        inner: Inner::Ppp,
        content: part.after(at).ok()?,
    })
}

/// ```text
/// CAPWAP Data Header {
///   Version (4) = 0, Type (4),        // 1: DTLS follows
///   HLEN (5), RID (5), WBID (5), T (1), F (1), L (1), W (1), M (1), K (1), Flags (3),
///   Fragment ID (16), Fragment Offset (13), Reserved (3),
///   Radio MAC Address (..), Wireless Specific Information (..),
/// }
/// ```
fn capwap<'a>(carrier: &Carrier, part: Part<'a>, layers: &mut Layers) -> Option<Decoded<'a>> {
    /// A message element (RFC 5415, section 4.6.37).
    const SESSION_ID: u16 = 35;
    let first = part.u8(0).ok()?;
    match first {
        0 => {}
        // Records of DTLS follow four bytes (RFC 5415, section 4.2).
        1 if matches!(part.array(4), Ok([20..=23, 254])) => {
            return Some(Decoded::Skipped(Skipped::Protected));
        }
        _ => return None,
    }
    let fields = part.u32(0).ok()? & 0x00ff_ffff;
    let (header, binding) = ((fields >> 19) as usize * 4, fields >> 9 & 0x1f);
    let [is_native, is_fragment, is_keep_alive] = [8, 7, 3].map(|bit| fields & 1 << bit != 0);
    // The header is longer with an address or information, whose format some access points have from a draft. Only 802.11 has frames of
    // its own (RFC 5416); three bits are reserved.
    let is_longer = fields & 0x30 != 0;
    if header < 8
        || is_longer != (header > 8)
        || binding > 1
        || is_native && binding == 0
        || fields & 7 != 0
    {
        return None;
    }
    if is_keep_alive {
        // The length of its elements, and the session's.
        let is_session = part.u16(header + 2).ok()? == SESSION_ID;
        return is_session.then_some(Decoded::Skipped(Skipped::Tunnel));
    }
    let mut content = part.after(header).ok()?;
    if is_fragment {
        if part.u16(6).ok()? >> 3 > 0 {
            return Some(Decoded::Skipped(Skipped::TunnelFragment));
        }
        content.is_open = true;
    }
    let inner = match is_native {
        true => Inner::Wifi,
        false => Inner::Ethernet,
    };
    if !is_plausible(inner, content) {
        return None;
    }
    layers.set_fragment(carrier.fragment());
    let tunnel = carrier.tunnel(TunnelKind::Capwap, None);
    Some(open(tunnel, inner, content, layers))
}
