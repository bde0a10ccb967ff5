//! Tunnels: what they carry is decoded as if it had been captured by itself.
//!
//! Nothing here is inlined: it would only make the way of other packets longer, and it calls what calls it.

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

/// Ethernet types that GRE carries beside those of links.
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const PPP: u16 = 0x880b;
/// 802.11, from access points of Aruba.
const ARUBA: RangeInclusive<u16> = 0x8200..=0x82ff;

/// Ports of tunnels over UDP.
const L2TP: u16 = 1701;
const GTP_U: u16 = 2152;
const VXLAN: u16 = 4789;
const CAPWAP: u16 = 5247;
const GENEVE: u16 = 6081;
/// The port that Linux took for VXLAN before it had a number, and still does by default.
const VXLAN_OF_LINUX: u16 = 8472;

/// Decodes what is in a tunnel.
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
        // ESP.
        50 => return Decoded::Skipped(Skipped::Protected),
        // IPComp, L2TP version 3, other encapsulations, and MPLS.
        98 | 108 | 115 | 137 => return Decoded::Skipped(Skipped::Tunnel),
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

/// The port of a tunnel, if one of these is one: its receiver's, or of what answers from it the sender's.
#[inline(always)]
pub(super) fn port(source: u16, destination: u16) -> Option<u16> {
    match (source, destination) {
        (_, L2TP | GTP_U | VXLAN | CAPWAP | GENEVE | VXLAN_OF_LINUX) => Some(destination),
        (L2TP | CAPWAP, _) => Some(source),
        _ => None,
    }
}

/// The content of a datagram to the port of a tunnel; `None` if it is of another protocol, which is what a header says that is
/// impossible, or an inner packet that is none.
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
        CAPWAP => return capwap(carrier, part, layers),
        GENEVE => geneve(part),
        _ => vxlan(part),
    }?;
    if !is_plausible(found.inner, found.content) {
        return None;
    }
    layers.set_fragment(carrier.fragment());
    let tunnel = carrier.tunnel(found.kind, Some(found.id));
    Some(open(tunnel, found.inner, found.content, layers))
}

/// A tunnel in a datagram.
struct Found<'a> {
    kind: TunnelKind,
    id: u32,
    inner: Inner,
    content: Part<'a>,
}

/// Whether what a tunnel carries begins as it should.
fn is_plausible(inner: Inner, part: Part<'_>) -> bool {
    let data = part.data;
    match inner {
        Inner::Ip | Inner::Type(ip::IPV4 | ip::IPV6) => ip::is_header(part),
        // A frame of a known type; or of 802.3, whose length fits.
        Inner::Ethernet => match u16_at(data, 12) {
            Some(ip::IPV4 | ip::IPV6) => part.after(14).is_ok_and(ip::is_header),
            Some(kind) => link::is_known(kind) || link::is_length(kind, part.length - 14),
            None => false,
        },
        Inner::Type(kind) => link::is_known(kind),
        Inner::Ppp | Inner::Wifi => !data.is_empty(),
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
        id: part.u32(4).ok()?,
        inner: Inner::Ip,
        content: part.limit(8 + length).after(at).ok()?,
    })
}

/// Flags, what follows (VXLAN-GPE, draft-ietf-nvo3-vxlan-gpe-13, if a flag says so), and the identifier.
fn vxlan(part: Part<'_>) -> Option<Found<'_>> {
    const HAS_ID: u8 = 0x08;
    const HAS_PROTOCOL: u8 = 0x04;
    let [flags, .., protocol, a, b, c, _] = part.array::<8>(0).ok()?;
    let inner = match (flags & HAS_PROTOCOL, protocol) {
        (0, _) | (_, 3) => Inner::Ethernet,
        (_, 1 | 2) => Inner::Ip,
        _ => return None,
    };
    (flags & HAS_ID != 0).then_some(Found {
        kind: TunnelKind::Vxlan,
        id: u32::from_be_bytes([0, a, b, c]),
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
    let first = part.u8(0).ok()?;
    if first >> 6 != 0 {
        return None;
    }
    Some(Found {
        kind: TunnelKind::Geneve,
        id: part.u32(4).ok()? >> 8,
        inner: match part.u16(2).ok()? {
            TRANSPARENT_ETHERNET => Inner::Ethernet,
            kind => Inner::Type(kind),
        },
        content: part.after(8 + usize::from(first & 0x3f) * 4).ok()?,
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
    if flags & 0x800f != 2 {
        return None;
    }
    let mut at = if flags & 0x4000 != 0 { 4 } else { 2 };
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
        id,
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
    if header < 8 || binding > 1 {
        return None;
    }
    if is_keep_alive {
        return Some(Decoded::Skipped(Skipped::Tunnel));
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

/// A stack of MPLS labels, of which the innermost tells customers apart; what follows has no type.
#[inline(never)]
pub(super) fn mpls<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    const BOTTOM: u32 = 1 << 8;
    for entry in 0..MAX_LABELS {
        let label = part.u32(entry * 4)?;
        if label & BOTTOM == 0 {
            continue;
        }
        let content = part.after(entry * 4 + 4)?;
        let tunnel = Tunnel {
            kind: TunnelKind::Mpls,
            id: Some(label >> 12),
            ends: None,
        };
        // Pseudowires of Ethernet begin with a control word, whose first four bits are 0 (RFC 4448), or with the frame.
        let after_control_word = content.after(4).ok();
        let frame = [after_control_word, Some(content)]
            .into_iter()
            .flatten()
            .find(|part| is_plausible(Inner::Ethernet, *part));
        return Ok(match (ip::is_header(content), frame) {
            (true, _) => open(tunnel, Inner::Ip, content, layers),
            (false, Some(frame)) => open(tunnel, Inner::Ethernet, frame, layers),
            (false, None) => Decoded::Skipped(Skipped::NotIp),
        });
    }
    Err(Malformed::Link)
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
    // Its length only tells padding, which the length of IP does, too, and more reliably.
    Ok(open(tunnel, Inner::Ppp, part.after(header.len())?, layers))
}
