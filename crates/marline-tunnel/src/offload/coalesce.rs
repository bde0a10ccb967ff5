//! Packets of TCP that follow one another, as one large packet.

use super::{
    ACK, MAX_PACKET, NEEDS_CHECKSUM, PSH, TCP_CHECKSUM, TCP_V4, TCP_V6, VIRTIO_HEADER, Virtio,
    pseudo_sum, set_header_checksum,
};
use crate::packet::{Header, TCP, fold, sum};

/// Segments that one packet stands for, at most: as the kernel's own.
const MAX_SEGMENTS: usize = 64;

/// Packets for a device, of which some stand for several.
#[derive(Default)]
pub(crate) struct Coalesced {
    items: Vec<Item>,
    /// Buffers of earlier items.
    free: Vec<Vec<u8>>,
}

/// A packet, which may stand for several.
pub(crate) struct Large<'a> {
    /// The header of virtio, and the packet.
    pub(crate) bytes: &'a [u8],
    /// The packets for which it stands.
    pub(crate) packets: usize,
    /// Their bytes.
    pub(crate) length: usize,
}

struct Item {
    /// The header of virtio, and the packet.
    bytes: Vec<u8>,
    packets: usize,
    length: usize,
    /// `None` if nothing can follow.
    open: Option<Open>,
}

/// The end that the next segment has to continue.
#[derive(Clone, Copy)]
struct Open {
    transport: usize,
    headers: usize,
    /// Bytes of content of the first segment.
    segment: usize,
    next: u32,
}

impl Coalesced {
    /// Adds a whole packet with this header, in the order of its flow.
    pub(crate) fn push(&mut self, packet: &[u8], header: &Header) {
        let open = Open::of(packet, header);
        if let Some(segment) = open
            && let Some(item) = self
                .items
                .iter_mut()
                .rev()
                .find(|item| item.is_of(packet, segment.transport))
            && item.append(packet, segment)
        {
            return;
        }
        // What came earlier of the same flow is not found any more: this is nearer to the end.
        let mut bytes = self.free.pop().unwrap_or_default();
        bytes.clear();
        bytes.resize(VIRTIO_HEADER, 0);
        bytes.extend_from_slice(packet);
        self.items.push(Item {
            bytes,
            packets: 1,
            length: packet.len(),
            open: open.filter(|_| !has_flag(packet, open, PSH)),
        });
    }

    /// Passes each on, and is empty then.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Large<'_>)) {
        for mut item in self.items.drain(..) {
            item.finish();
            each(Large {
                bytes: &item.bytes,
                packets: item.packets,
                length: item.length,
            });
            self.free.push(item.bytes);
        }
    }
}

fn has_flag(packet: &[u8], open: Option<Open>, flag: u8) -> bool {
    open.is_some_and(|open| packet[open.transport + 13] & flag != 0)
}

impl Open {
    /// A segment that can be a part of a larger one: with content, without flags but ACK and PSH, not a fragment, without options
    /// of IP, and intact.
    fn of(packet: &[u8], header: &Header) -> Option<Self> {
        let transport = if header.source.is_ipv4() { 20 } else { 40 };
        if header.protocol != TCP || header.payload() != Some(transport) {
            return None;
        }
        let fixed: &[u8; 20] = packet.get(transport..)?.first_chunk()?;
        let own = usize::from(fixed[12] >> 4) * 4;
        let headers = transport + own;
        let is_plain = own >= 20 && packet.len() > headers && fixed[13] & !PSH == ACK;
        // Together, it is the sum of the whole that is checked, if at all.
        let total = pseudo_sum(packet, transport, true) + sum(&packet[transport..]);
        if !is_plain || fold(total) != 0xffff {
            return None;
        }
        let segment = packet.len() - headers;
        Some(Self {
            transport,
            headers,
            segment,
            next: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]])
                .wrapping_add(segment as u32),
        })
    }
}

impl Item {
    fn packet(&self) -> &[u8] {
        &self.bytes[VIRTIO_HEADER..]
    }

    /// Whether it is of the same connection: version, addresses and ports.
    fn is_of(&self, packet: &[u8], transport: usize) -> bool {
        let own = self.packet();
        let addresses = if transport == 20 { 12..24 } else { 8..44 };
        own[0] >> 4 == packet[0] >> 4 && own.get(addresses.clone()) == Some(&packet[addresses])
    }

    /// Appends a segment; returns whether it continues this one.
    fn append(&mut self, packet: &[u8], segment: Open) -> bool {
        let Some(open) = self.open else {
            return false;
        };
        let at = open.transport;
        let begins = segment.next.wrapping_sub(segment.segment as u32);
        let continues = begins == open.next
            && segment.headers == open.headers
            && segment.segment <= open.segment
            && self.packets < MAX_SEGMENTS
            && self.packet().len() + segment.segment <= MAX_PACKET
            && has_same_headers(self.packet(), packet, open);
        if !continues {
            return false;
        }
        self.bytes.extend_from_slice(&packet[segment.headers..]);
        self.packets += 1;
        self.length += packet.len();
        let flags = packet[at + 13];
        self.bytes[VIRTIO_HEADER + at + 13] |= flags;
        let is_last = segment.segment < open.segment || flags & PSH != 0;
        self.open = (!is_last).then_some(Open {
            next: segment.next,
            ..open
        });
        // The headers are needed to finish it.
        if self.packets == 2 {
            self.set_virtio(open);
        }
        true
    }

    fn set_virtio(&mut self, open: Open) {
        let is_v4 = open.transport == 20;
        let virtio = Virtio {
            flags: NEEDS_CHECKSUM,
            kind: if is_v4 { TCP_V4 } else { TCP_V6 },
            headers: open.headers as u16,
            segment: open.segment as u16,
            sum_start: open.transport as u16,
            sum_offset: TCP_CHECKSUM as u16,
        };
        self.bytes[..VIRTIO_HEADER].copy_from_slice(&virtio.encode());
    }

    /// Gives a packet that stands for several its lengths and checksums.
    fn finish(&mut self) {
        if self.packets == 1 {
            return;
        }
        let packet = &mut self.bytes[VIRTIO_HEADER..];
        let is_v4 = packet[0] >> 4 == 4;
        let transport = if is_v4 { 20 } else { 40 };
        let length = packet.len();
        match is_v4 {
            true => {
                packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                set_header_checksum(&mut packet[..transport]);
            }
            false => packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes()),
        }
        let pseudo = fold(pseudo_sum(packet, transport, true));
        let field = transport + TCP_CHECKSUM;
        packet[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
    }
}

/// Whether two segments have the same headers, but for lengths, the identification of IPv4, sequence numbers, PSH and checksums.
fn has_same_headers(own: &[u8], other: &[u8], open: Open) -> bool {
    let same = |range: std::ops::Range<usize>| own[range.clone()] == other[range];
    let at = open.transport;
    let of_ip = match at {
        // Traffic class; DF and the offset, the hop limit.
        20 => same(0..2) && same(6..9),
        _ => same(0..4) && same(6..8),
    };
    // The acknowledgment and the length; the window; urgent data and options.
    of_ip && same(at + 8..at + 13) && same(at + 14..at + 16) && same(at + 18..open.headers)
}
