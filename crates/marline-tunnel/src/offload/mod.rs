//! Packets that a device passes at once: segments of one flow, which a host sends as one large packet (TSO), and takes as one (GRO).
//!
//! With `IFF_VNET_HDR`, every packet of a TUN device has a header of virtio before it, which says into which segments it is to be
//! cut, and whether its checksum is complete. One system call passes up to 64 KiB so, and the host handles one packet.

mod coalesce;
#[cfg(test)]
mod tests;

pub(crate) use self::coalesce::Coalesced;

use crate::packet::{TCP, checksum, fold, sum};

/// Bytes of the header of virtio (`struct virtio_net_hdr`).
pub(crate) const VIRTIO_HEADER: usize = 10;

/// The largest packet of IP.
pub(crate) const MAX_PACKET: usize = 65_535;

/// A burst of IPv6 may have so many bytes more, as its length does not count the header.
const IPV6_HEADER: usize = 40;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the field of the checksum has that of the pseudo-header alone.
const NEEDS_CHECKSUM: u8 = 1;

/// `VIRTIO_NET_HDR_GSO_NONE`: one packet.
const ONE: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP_L4: u8 = 5;
/// `VIRTIO_NET_HDR_GSO_ECN`.
const ECN: u8 = 0x80;

/// Where the checksum is in a header of TCP, and of UDP.
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
const UDP_HEADER: usize = 8;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;

/// The header of virtio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Virtio {
    flags: u8,
    kind: u8,
    /// Bytes of the headers of each segment.
    headers: u16,
    /// Bytes of content of each segment but the last.
    segment: u16,
    /// Where the checksum begins, and its field from there.
    sum_start: u16,
    sum_offset: u16,
}

impl Virtio {
    fn decode(bytes: &[u8; VIRTIO_HEADER]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            kind: bytes[1],
            headers: word(2),
            segment: word(4),
            sum_start: word(6),
            sum_offset: word(8),
        }
    }

    fn encode(self) -> [u8; VIRTIO_HEADER] {
        let mut bytes = [0; VIRTIO_HEADER];
        bytes[..2].copy_from_slice(&[self.flags, self.kind]);
        let words = [self.headers, self.segment, self.sum_start, self.sum_offset];
        for (field, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            field.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// A read of a device: a packet, or several segments of a flow as one.
pub struct Burst {
    /// The header of virtio, and the packet.
    buffer: Vec<u8>,
    /// Bytes of the packet.
    length: usize,
    virtio: Virtio,
}

/// A device passes bytes that are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the device passes {0} bytes that are no packet with a header of virtio")]
pub(crate) struct NoPacket(usize);

impl Default for Burst {
    fn default() -> Self {
        Self {
            buffer: vec![0; VIRTIO_HEADER + IPV6_HEADER + MAX_PACKET],
            length: 0,
            virtio: Virtio::default(),
        }
    }
}

impl Burst {
    /// The space for a header of virtio and a packet.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Bytes have been read into the [`space`](Self::space).
    ///
    /// # Errors
    /// They are fewer than a header.
    pub(crate) fn filled(&mut self, bytes: usize) -> Result<(), NoPacket> {
        let header = self.buffer.first_chunk().ok_or(NoPacket(bytes))?;
        self.virtio = Virtio::decode(header);
        self.length = bytes.checked_sub(VIRTIO_HEADER).ok_or(NoPacket(bytes))?;
        Ok(())
    }

    /// Replaces the content by a packet, cut to the largest one of IP.
    pub fn fill(&mut self, packet: &[u8]) {
        self.length = packet.len().min(MAX_PACKET);
        self.packet_mut()
            .copy_from_slice(&packet[..packet.len().min(MAX_PACKET)]);
        self.virtio = Virtio::default();
        self.buffer[..VIRTIO_HEADER].fill(0);
    }

    /// The packet, which may stand for several.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.buffer[VIRTIO_HEADER..VIRTIO_HEADER + self.length]
    }

    /// The same, to change addresses and ports.
    pub(crate) fn packet_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[VIRTIO_HEADER..VIRTIO_HEADER + self.length]
    }

    /// The header of virtio, and the packet: as a device takes it.
    pub(crate) fn with_header(&self) -> &[u8] {
        &self.buffer[..VIRTIO_HEADER + self.length]
    }

    /// Whether the checksum of TCP or UDP is that of the pseudo-header alone, and not complemented.
    pub(crate) fn is_partial(&self) -> bool {
        self.virtio.flags & NEEDS_CHECKSUM != 0
    }

    /// Completes the checksum of a packet that stands for itself.
    pub(crate) fn complete(&mut self) {
        if self.virtio.kind != ONE || !self.is_partial() {
            return;
        }
        let start = usize::from(self.virtio.sum_start);
        let field = start + usize::from(self.virtio.sum_offset);
        let packet = self.packet_mut();
        if field + 2 <= packet.len() {
            // The field has the part of the pseudo-header.
            let sum = checksum(&[&packet[start..]]);
            packet[field..field + 2].copy_from_slice(&not_zero(sum).to_be_bytes());
        }
        self.virtio = Virtio::default();
        self.buffer[..VIRTIO_HEADER].fill(0);
    }

    /// Passes each packet on, with `before` bytes of zero before it. Returns the number of packets; none if the header is not valid.
    pub(crate) fn packets(&mut self, before: usize, mut each: impl FnMut(Vec<u8>)) -> usize {
        self.complete();
        if self.virtio.kind == ONE {
            let mut packet = vec![0; before + self.length];
            packet[before..].copy_from_slice(self.packet());
            each(packet);
            return 1;
        }
        let Some(cut) = Cut::of(self.packet(), self.virtio) else {
            return 0;
        };
        let content = self.length - cut.headers;
        let segments = content.div_ceil(cut.segment);
        for number in 0..segments {
            each(cut.segment(self.packet(), before, number));
        }
        segments
    }
}

/// How a packet is cut into segments.
struct Cut {
    /// Where the header of TCP or UDP begins.
    transport: usize,
    /// Bytes of all headers.
    headers: usize,
    /// Bytes of content of each segment but the last.
    segment: usize,
    is_v4: bool,
    is_tcp: bool,
}

impl Cut {
    fn of(packet: &[u8], virtio: Virtio) -> Option<Self> {
        let transport = usize::from(virtio.sum_start);
        let is_v4 = packet.first()? >> 4 == 4;
        let is_tcp = match virtio.kind & !ECN {
            TCP_V4 | TCP_V6 => true,
            UDP_L4 => false,
            _ => return None,
        };
        // The kernel's length of headers is not right for packets that it forwards.
        let own = match is_tcp {
            true => usize::from(packet.get(transport + 12)? >> 4) * 4,
            false => UDP_HEADER,
        };
        let headers = transport + own;
        let is_valid = transport >= if is_v4 { 20 } else { 40 }
            && (!is_tcp || own >= 20)
            && packet.len() > headers
            && virtio.segment > 0;
        is_valid.then_some(Self {
            transport,
            headers,
            segment: usize::from(virtio.segment),
            is_v4,
            is_tcp,
        })
    }

    fn segment(&self, packet: &[u8], before: usize, number: usize) -> Vec<u8> {
        let begin = self.headers + number * self.segment;
        let end = packet.len().min(begin + self.segment);
        let mut bytes = Vec::with_capacity(before + self.headers + end - begin);
        bytes.resize(before, 0);
        bytes.extend_from_slice(&packet[..self.headers]);
        bytes.extend_from_slice(&packet[begin..end]);
        let segment = &mut bytes[before..];
        let length = segment.len();
        if self.is_v4 {
            segment[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            let id = u16::from_be_bytes([segment[4], segment[5]]).wrapping_add(number as u16);
            segment[4..6].copy_from_slice(&id.to_be_bytes());
            set_header_checksum(&mut segment[..self.transport]);
        } else {
            segment[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        }
        let at = self.transport;
        let field = match self.is_tcp {
            true => {
                let begins: [u8; 4] = std::array::from_fn(|byte| segment[at + 4 + byte]);
                let ahead = (number * self.segment) as u32;
                let sequence = u32::from_be_bytes(begins).wrapping_add(ahead);
                segment[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
                if end < packet.len() {
                    segment[at + 13] &= !(FIN | PSH);
                }
                if number > 0 {
                    segment[at + 13] &= !CWR;
                }
                at + TCP_CHECKSUM
            }
            false => {
                segment[at + 4..at + 6].copy_from_slice(&((length - at) as u16).to_be_bytes());
                at + UDP_CHECKSUM
            }
        };
        segment[field..field + 2].fill(0);
        let pseudo = pseudo_sum(segment, at, self.is_tcp);
        let sum = not_zero(!fold(pseudo + sum(&segment[at..])));
        segment[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }
}

/// The sum over the pseudo-header of a packet whose header of TCP or UDP begins at `transport`.
fn pseudo_sum(packet: &[u8], transport: usize, is_tcp: bool) -> u64 {
    let addresses = match packet[0] >> 4 {
        4 => &packet[12..20],
        _ => &packet[8..40],
    };
    let protocol = if is_tcp { TCP } else { 17 };
    sum(addresses) + u64::from(protocol) + (packet.len() - transport) as u64
}

fn set_header_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = checksum(&[header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A checksum of zero means none in UDP; TCP has both forms.
fn not_zero(sum: u16) -> u16 {
    if sum == 0 { 0xffff } else { sum }
}
