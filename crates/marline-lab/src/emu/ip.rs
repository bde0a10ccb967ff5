//! IPv4 as the emulator needs it: a packet's destination, its flow and its ECN mark.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use marline_link::ecmp::host_hash;
use marline_link::{Ecn, Packet, Time};

use marline_sim::fabric::{EcmpHash, Routed};

/// The largest packet that a host sends, its header included, in bytes.
pub const MTU: usize = 1_500;

/// Bytes of an IPv4 header without options.
const HEADER: usize = 20;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A packet from the kernel, in a reusable buffer.
#[derive(Clone, Debug)]
pub struct IpPacket {
    buffer: Box<[u8]>,
    len: usize,
    sent: Time,
}

impl IpPacket {
    /// An empty buffer of [`MTU`] bytes.
    pub(super) fn empty() -> Self {
        Self {
            buffer: vec![0; MTU].into_boxed_slice(),
            len: 0,
            sent: Time::ZERO,
        }
    }

    /// The buffer to read a packet into; call [`parse`](Self::parse) afterwards.
    pub(super) fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Parses the `len` bytes that were read into the buffer; `hash` makes the flow's number.
    ///
    /// # Errors
    /// They are not a complete IPv4 packet: the buffer is returned.
    pub(super) fn parse(mut self, len: usize, hash: EcmpHash) -> Result<Packet<Self>, Self> {
        self.len = len.min(MTU);
        let bytes = self.bytes();
        let whole = bytes.len() >= HEADER
            && bytes[0] >> 4 == 4
            && usize::from(u16::from_be_bytes([bytes[2], bytes[3]])) == bytes.len();
        if !whole {
            return Err(self);
        }
        Ok(Packet {
            size: self.len as u32,
            flow: self.flow(hash),
            hosts: [self.source(), self.destination()].map(host_hash),
            ecn: ecn_of(bytes[1]),
            corrupted: None,
            body: self,
        })
    }

    /// The packet, from its IP header on.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// When its host sent it.
    pub const fn sent(&self) -> Time {
        self.sent
    }

    pub(super) const fn set_sent(&mut self, at: Time) {
        self.sent = at;
    }

    /// The hash that identifies its flow. Ports count as 0 in fragments and where the protocol has none.
    fn flow(&self, hash: EcmpHash) -> u64 {
        let bytes = self.bytes();
        let ports = self.ports();
        hash.of(
            SocketAddr::from((address(bytes, 12), ports[0])),
            SocketAddr::from((address(bytes, 16), ports[1])),
            bytes[9],
        )
    }

    fn ports(&self) -> [u16; 2] {
        let bytes = self.bytes();
        let start = usize::from(bytes[0] & 0x0f) * 4;
        // Fragments: only the first one of several has ports.
        let fragment = u16::from_be_bytes([bytes[6], bytes[7]]) & 0x3fff != 0;
        match bytes.get(start..start + 4) {
            Some(ports) if !fragment && matches!(bytes[9], TCP | UDP) => [
                u16::from_be_bytes([ports[0], ports[1]]),
                u16::from_be_bytes([ports[2], ports[3]]),
            ],
            _ => [0; 2],
        }
    }

    /// Writes what the link did into the packet: an ECN mark, and an inverted bit.
    pub(super) fn write_marks(&mut self, ecn: Ecn, corrupted: Option<u64>) {
        let bytes = &mut self.buffer[..self.len];
        if ecn != ecn_of(bytes[1]) {
            let before = u16::from_be_bytes([bytes[0], bytes[1]]);
            bytes[1] = bytes[1] & !0b11 | bits_of(ecn);
            let after = u16::from_be_bytes([bytes[0], bytes[1]]);
            let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
            bytes[10..12].copy_from_slice(&updated(checksum, before, after).to_be_bytes());
        }
        if let Some(bit) = corrupted {
            let bit = bit % (8 * bytes.len() as u64);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}

impl Routed for IpPacket {
    fn source(&self) -> IpAddr {
        address(self.bytes(), 12).into()
    }

    fn destination(&self) -> IpAddr {
        address(self.bytes(), 16).into()
    }
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The checksum of a header in which one 16-bit word changed (RFC 1624).
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

fn ecn_of(traffic_class: u8) -> Ecn {
    match traffic_class & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

const fn bits_of(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header whose checksum is right, and eight bytes of UDP header.
    fn packet() -> Vec<u8> {
        let mut bytes = vec![
            0x45, 0x02, 0, 28, 0, 1, 0x40, 0, 64, UDP, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1, 0x12,
            0x34, 0x01, 0xbb, 0, 8, 0, 0,
        ];
        let checksum = checksum(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    fn checksum(bytes: &[u8]) -> u16 {
        let sum: u32 = bytes[..HEADER]
            .chunks(2)
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    fn read(bytes: &[u8]) -> Option<Packet<IpPacket>> {
        let mut packet = IpPacket::empty();
        packet.buffer_mut()[..bytes.len()].copy_from_slice(bytes);
        packet.parse(bytes.len(), EcmpHash::Mixed).ok()
    }

    #[test]
    fn header_fields_are_parsed() {
        let packet = read(&packet()).unwrap();
        assert_eq!(packet.size, 28);
        assert_eq!(packet.ecn, Ecn::Ect0);
        assert_eq!(packet.body.source(), Ipv4Addr::new(10, 77, 0, 2));
        assert_eq!(packet.body.destination(), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(packet.body.ports(), [0x1234, 443]);
    }

    #[test]
    fn setting_the_ecn_mark_updates_the_checksum() {
        for mark in [Ecn::Ce, Ecn::Ect1, Ecn::NotEct, Ecn::Ect0] {
            let mut packet = read(&packet()).unwrap();
            packet.body.write_marks(mark, None);
            assert_eq!(ecn_of(packet.body.bytes()[1]), mark);
            assert_eq!(checksum(packet.body.bytes()), 0, "{mark:?}");
        }
    }

    #[test]
    fn a_corrupted_bit_can_be_any_bit_of_the_packet() {
        let mut packet = read(&packet()).unwrap();
        let before = packet.body.bytes().to_vec();
        packet.body.write_marks(packet.ecn, Some(28 * 8 + 3));
        assert_eq!(packet.body.bytes()[0], before[0] ^ 8);
        assert_eq!(packet.body.bytes()[1..], before[1..]);
    }

    #[test]
    fn fragments_have_no_ports() {
        let mut bytes = packet();
        bytes[6] = 0x20;
        assert_eq!(read(&bytes).unwrap().body.ports(), [0, 0]);
    }

    #[test]
    fn packets_other_than_ipv4_are_refused() {
        for bytes in [
            &[][..],
            &[0x60; 40],
            &packet()[..19],
            &packet()[..27],
            &[0x45; 28],
        ] {
            assert!(read(bytes).is_none());
        }
        // Packets with an invalid header length are left to the receiver, but nothing beyond the packet is
        // read.
        let mut bytes = packet();
        bytes[0] = 0x4f;
        assert_eq!(read(&bytes).unwrap().body.ports(), [0, 0]);
    }
}
