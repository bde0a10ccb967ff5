//! Tunnels: their content is decoded as if it had been captured by itself.
//!
//! Nothing here is inlined: it would only lengthen the path of other packets, and the calls are recursive.

mod udp;

use std::ops::RangeInclusive;

pub(super) use self::udp::{datagram, port};
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
