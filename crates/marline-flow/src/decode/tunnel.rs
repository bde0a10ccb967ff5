//! Tunnels: their content is decoded as if it had been captured by itself.
//!
//! Nothing here is inlined: it would only lengthen the path of other packets, and the calls are recursive.

use std::ops::RangeInclusive;

use super::ip::{Carrier, mapped};
use super::layers::{Layer, Layers, Tunnel, TunnelKind};
use super::part::Part;
use super::{Decoded, Malformed, Skipped, ip, link, u16_at, wifi};
use crate::limits::MAX_LABELS;

/// The content of a tunnel.
#[derive(Clone, Copy)]
enum Inner {
    Ip,
    Ethernet,
    /// The protocol of an Ethernet type.
    Type(u16),
    Ppp,
    /// A frame of 802.11.
    Wifi,
}

/// Ethernet types in GRE in addition to those of links.
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const PPP: u16 = 0x880b;
/// 802.11, from access points of Aruba.
const ARUBA: RangeInclusive<u16> = 0x8200..=0x82ff;

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

/// Decodes the content of a tunnel.
fn open<'a>(tunnel: Tunnel, inner: Inner, part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    if !layers.push(Layer::Tunnel(tunnel)) {
        return Decoded::Skipped(Skipped::Tunnel);
    }
    match inner {
        Inner::Ip => link::by_version(part, layers),
        Inner::Ethernet => link::ethernet(part, layers),
        Inner::Type(kind) => link::tagged(part, kind, layers),
        Inner::Ppp => link::ppp(part, layers),
        Inner::Wifi => wifi::frame(part, layers),
    }
}

/// A protocol of IP that is neither TCP nor UDP.
#[inline(never)]
pub(super) fn protocol<'a>(
    carrier: &Carrier,
    number: u8,
    part: Part<'a>,
    layers: &mut Layers,
) -> Decoded<'a> {
    let opened = match number {
        4 | 41 => in_ip(carrier, number, part, layers),
        47 => gre(carrier, part, layers),
        97 => ether_ip(carrier, part, layers),
        137 => mpls_in_ip(carrier, part, layers),
        // ESP.
        50 => return Decoded::Skipped(Skipped::Protected),
        // IPComp, L2TP version 3, and other encapsulations.
        98 | 108 | 115 => return Decoded::Skipped(Skipped::Tunnel),
        _ => return Decoded::Skipped(Skipped::OtherTransport),
    };
    opened.unwrap_or_else(Decoded::Malformed)
}

impl Carrier {
    fn tunnel(&self, kind: TunnelKind, id: Option<u32>) -> Tunnel {
        Tunnel {
            kind,
            id,
            ends: Some([self.source, self.destination]),
        }
    }
}

fn in_ip<'a>(
    carrier: &Carrier,
    number: u8,
    part: Part<'a>,
    layers: &mut Layers,
) -> Result<Decoded<'a>, Malformed> {
    layers.set_fragment(carrier.fragment());
    let outer_is_v4 = carrier.source >> 32 == mapped([0; 4]) >> 32;
    let kind = match (number == 4, outer_is_v4) {
        (true, true) => TunnelKind::V4InV4,
        (true, false) => TunnelKind::V4InV6,
        (false, true) => TunnelKind::V6InV4,
        (false, false) => TunnelKind::V6InV6,
    };
    let is_v4 = part.u8(0)? >> 4 == 4;
    if is_v4 != (number == 4) {
        return Err(Malformed::Ip);
    }
    Ok(open(carrier.tunnel(kind, None), Inner::Ip, part, layers))
}

/// ```text
/// GRE Header {
///   C (1), Routing (1), K (1), S (1), Strict Source Route (1), Recursion (3), A (1), Flags (4), Version (3),
///   Protocol Type (16),
///   Checksum (16), Reserved (16),     // if C
///   Key (32),                         // if K
///   Sequence Number (32),             // if S
///   Acknowledgment Number (32),       // if A, in version 1
/// }
/// ```
fn gre<'a>(
    carrier: &Carrier,
    part: Part<'a>,
    layers: &mut Layers,
) -> Result<Decoded<'a>, Malformed> {
    layers.set_fragment(carrier.fragment());
    let (flags, kind) = (part.u16(0)?, part.u16(2)?);
    let has = |bit: u16| flags & bit != 0;
    let is_pptp = flags & 7 == 1;
    if has(0x4000) || flags & 7 > 1 {
        // Source routes (RFC 1701), which are deprecated, and versions that there are not.
        return Ok(Decoded::Skipped(Skipped::Tunnel));
    }
    let mut at = 4;
    if has(0x8000) {
        at += 4;
    }
    let mut id = None;
    if has(0x2000) {
        let key = part.u32(at)?;
        // The length of the content, and the call, in version 1.
        id = Some(if is_pptp { key & 0xffff } else { key });
        at += 4;
    }
    let is_numbered = has(0x1000);
    if is_numbered {
        at += 4;
    }
    if is_pptp && has(0x0080) {
        at += 4;
    }
    let content = part.after(at)?;
    if content.length == 0 {
        // A keep-alive, or an acknowledgment of PPTP.
        return Ok(Decoded::Skipped(Skipped::Tunnel));
    }
    let tunnel = carrier.tunnel(TunnelKind::Gre, id);
    Ok(match kind {
        TRANSPARENT_ETHERNET => open(tunnel, Inner::Ethernet, content, layers),
        PPP => open(tunnel, Inner::Ppp, content, layers),
        kind if ARUBA.contains(&kind) => open(tunnel, Inner::Wifi, content, layers),
        // Type I has no header of its own, and no number.
        ERSPAN_II if !is_numbered => {
            let tunnel = carrier.tunnel(TunnelKind::Erspan, None);
            open(tunnel, Inner::Ethernet, content, layers)
        }
        ERSPAN_II | ERSPAN_III => {
            let session = u32::from(content.u16(2)? & 0x3ff);
            let header = match kind {
                ERSPAN_II => 8,
                // A subheader of the platform follows if the last bit says so.
                _ if content.u8(11)? & 1 != 0 => 20,
                _ => 12,
            };
            let tunnel = carrier.tunnel(TunnelKind::Erspan, Some(session));
            open(tunnel, Inner::Ethernet, content.after(header)?, layers)
        }
        kind if link::is_known(kind) => open(tunnel, Inner::Type(kind), content, layers),
        _ => Decoded::Skipped(Skipped::Tunnel),
    })
}

fn ether_ip<'a>(
    carrier: &Carrier,
    part: Part<'a>,
    layers: &mut Layers,
) -> Result<Decoded<'a>, Malformed> {
    layers.set_fragment(carrier.fragment());
    let tunnel = carrier.tunnel(TunnelKind::EtherIp, None);
    Ok(open(tunnel, Inner::Ethernet, part.after(2)?, layers))
}

/// MPLS in IP (RFC 4023).
fn mpls_in_ip<'a>(
    carrier: &Carrier,
    part: Part<'a>,
    layers: &mut Layers,
) -> Result<Decoded<'a>, Malformed> {
    layers.set_fragment(carrier.fragment());
    labelled(Some([carrier.source, carrier.destination]), part, layers)
}

/// The port of a tunnel, if one of these is: the receiver's, or in answers from it the sender's.
#[inline(always)]
pub(super) fn port(source: u16, destination: u16) -> Option<u16> {
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
pub(super) fn datagram<'a>(
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

/// Whether the content of a tunnel begins plausibly.
fn is_plausible(inner: Inner, part: Part<'_>) -> bool {
    let data = part.data;
    match inner {
        Inner::Ip | Inner::Type(ip::IPV4 | ip::IPV6) => ip::is_header(part),
        // A frame of a known type, or of 802.3.
        Inner::Ethernet => match (u16_at(data, 12), part.after(14)) {
            (Some(ip::IPV4 | ip::IPV6), Ok(content)) => ip::is_header(content),
            (Some(kind), Ok(content)) => link::is_known(kind) || link::is_llc(kind, content),
            _ => false,
        },
        Inner::Type(link::NSH) => {
            nsh_header(part).is_ok_and(|header| is_plausible(header.inner, header.content))
        }
        Inner::Type(kind) if link::MPLS.contains(&kind) => {
            stack(part).is_ok_and(|stack| stack.inner().is_some())
        }
        Inner::Type(kind) => link::is_known(kind),
        Inner::Ppp => is_ppp(part),
        Inner::Wifi => wifi::is_frame(part),
    }
}

/// Whether a frame of PPP begins: with address and control, or with a protocol that L2TP carries without them.
fn is_ppp(part: Part<'_>) -> bool {
    let (protocol, content) = match part.data {
        [0xff, 3, high, low, ..] => return high & 1 == 0 && low & 1 == 1,
        [short, ..] if short & 1 == 1 => (u16::from(*short), part.after(1)),
        [high, low, ..] => (u16::from_be_bytes([*high, *low]), part.after(2)),
        _ => return false,
    };
    let Ok(content) = content else {
        return false;
    };
    match protocol {
        0x21 | 0x57 => ip::is_header(content),
        // Compressed, encrypted and multilink packets, and labels.
        0x2d | 0x2f | 0x3d | 0x53 | 0xfb | 0xfd | 0x281 | 0x283 => true,
        // Control protocols have a code, an identifier and a length (RFC 1661, section 5).
        0x8001..=0xcfff if protocol & 1 == 1 => content
            .u16(2)
            .is_ok_and(|length| length >= 4 && usize::from(length) <= content.length),
        _ => false,
    }
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

impl Inner {
    /// The content for a Next Protocol field of VXLAN-GPE or NSH.
    fn of_next_protocol(number: u8) -> Option<Self> {
        match number {
            1 | 2 => Some(Self::Ip),
            3 => Some(Self::Ethernet),
            4 => Some(Self::Type(link::NSH)),
            5 => Some(Self::Type(link::MPLS[0])),
            _ => None,
        }
    }

    /// The content for the protocol type of a tunnel over UDP. VLANs have Ethernet before them.
    fn of_type(kind: u16) -> Option<Self> {
        match kind {
            TRANSPARENT_ETHERNET => Some(Self::Ethernet),
            ip::IPV4 | ip::IPV6 | link::NSH => Some(Self::Type(kind)),
            kind if link::MPLS.contains(&kind) => Some(Self::Type(kind)),
            _ => None,
        }
    }
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

/// GRE in UDP (RFC 8086): the header of [`gre`], version 0.
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

/// A stack of MPLS labels.
struct Stack<'a> {
    /// The label that distinguishes customers.
    innermost: u32,
    /// Whether no label's time to live has expired.
    is_alive: bool,
    /// The content, which has no type field.
    content: Part<'a>,
}

fn stack(part: Part<'_>) -> Result<Stack<'_>, Malformed> {
    const BOTTOM: u32 = 1 << 8;
    let mut is_alive = true;
    for entry in 0..MAX_LABELS {
        let label = part.u32(entry * 4)?;
        is_alive &= label & 0xff != 0;
        if label & BOTTOM != 0 {
            return Ok(Stack {
                innermost: label >> 12,
                is_alive,
                content: part.after(entry * 4 + 4)?,
            });
        }
    }
    Err(Malformed::Link)
}

impl<'a> Stack<'a> {
    /// A packet of IP, or a frame: pseudowires of Ethernet begin with a control word, whose first four bits are 0 (RFC 4448), or with
    /// the frame.
    fn inner(&self) -> Option<(Inner, Part<'a>)> {
        if ip::is_header(self.content) {
            return Some((Inner::Ip, self.content));
        }
        let after_control_word = self.content.after(4).ok();
        [after_control_word, Some(self.content)]
            .into_iter()
            .flatten()
            .find(|part| is_plausible(Inner::Ethernet, *part))
            .map(|frame| (Inner::Ethernet, frame))
    }
}

/// A stack of MPLS labels on a link.
#[inline(never)]
pub(super) fn mpls<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    labelled(None, part, layers)
}

fn labelled<'a>(
    ends: Option<[u128; 2]>,
    part: Part<'a>,
    layers: &mut Layers,
) -> Result<Decoded<'a>, Malformed> {
    let stack = stack(part)?;
    let tunnel = Tunnel {
        kind: TunnelKind::Mpls,
        id: Some(stack.innermost),
        ends,
    };
    Ok(match stack.inner() {
        Some((inner, content)) => open(tunnel, inner, content, layers),
        None => Decoded::Skipped(Skipped::NotIp),
    })
}

/// The header of a service function chain.
struct NshHeader<'a> {
    path: u32,
    inner: Inner,
    content: Part<'a>,
}

/// ```text
/// NSH {                               // RFC 8300
///   Version (2) = 0, O (1), Reserved (1), TTL (6), Length (6),        // the length in units of four bytes
///   Reserved (4), MD Type (4), Next Protocol (8),
///   Service Path Identifier (24), Service Index (8),
///   Context Headers (..),
/// }
/// ```
fn nsh_header(part: Part<'_>) -> Result<NshHeader<'_>, Malformed> {
    let [first, second, kind, next] = part.array(0)?;
    let length = usize::from(second & 0x3f) * 4;
    let inner =
        Inner::of_next_protocol(next).filter(|inner| !matches!(inner, Inner::Type(link::NSH)));
    let (0, 1 | 2, Some(inner)) = (first >> 5, kind & 0xf, inner) else {
        return Err(Malformed::Link);
    };
    if length < 8 {
        return Err(Malformed::Link);
    }
    Ok(NshHeader {
        path: part.u32(4)? >> 8,
        inner,
        content: part.after(length)?,
    })
}

/// A packet in a service function chain.
#[inline(never)]
pub(super) fn nsh<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    let header = nsh_header(part)?;
    let tunnel = Tunnel {
        kind: TunnelKind::Nsh,
        id: Some(header.path),
        ends: None,
    };
    Ok(open(tunnel, header.inner, header.content, layers))
}

/// Data of a PPPoE session: version and type, code, session and length.
#[inline(never)]
pub(super) fn pppoe<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    let header: [u8; 6] = part.array(0)?;
    if header[..2] != [0x11, 0] {
        return Err(Malformed::Link);
    }
    let tunnel = Tunnel {
        kind: TunnelKind::Pppoe,
        id: Some(u16::from_be_bytes([header[2], header[3]]).into()),
        ends: None,
    };
    // Its length only reveals padding, which the length of IP does, too, and more reliably.
    Ok(open(tunnel, Inner::Ppp, part.after(header.len())?, layers))
}
