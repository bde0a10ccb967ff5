//! The content of simulated packets.

use std::net::{IpAddr, SocketAddrV4};

use marline_link::{Ecn, Packet};

use crate::fabric::Routed;

/// Size of the IPv4 and UDP headers before every payload, in bytes.
pub(crate) const HEADER: usize = 28;

const UDP: u8 = 17;

/// A UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Sender.
    pub source: SocketAddrV4,
    /// Receiver.
    pub destination: SocketAddrV4,
    /// The payload of the UDP datagram.
    pub payload: Vec<u8>,
}

impl Datagram {
    /// The protocol number in the IP header.
    pub(crate) const PROTOCOL: u8 = UDP;
}

impl Routed for Datagram {
    const HAS_PORTS: bool = true;

    fn source(&self) -> IpAddr {
        IpAddr::V4(*self.source.ip())
    }

    fn destination(&self) -> IpAddr {
        IpAddr::V4(*self.destination.ip())
    }

    fn udp_ports(&self) -> Option<[u16; 2]> {
        Some([self.source.port(), self.destination.port()])
    }

    fn set_udp_ports(&mut self, [source, destination]: [u16; 2]) {
        self.source.set_port(source);
        self.destination.set_port(destination);
    }
}

/// The headers of the packet on the wire (RFC 791, RFC 768). The UDP checksum is omitted, as UDP over IPv4 allows.
fn headers(packet: &Packet<Datagram>) -> [u8; HEADER] {
    let Datagram {
        source,
        destination,
        payload,
    } = &packet.body;
    let length = |header: usize| u16::try_from(header + payload.len()).unwrap_or(u16::MAX);
    let mut bytes = [0; HEADER];
    // Version 4, five words of header, don't fragment.
    bytes[0] = 0x45;
    bytes[1] = match packet.ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    };
    bytes[2..4].copy_from_slice(&length(HEADER).to_be_bytes());
    bytes[6] = 0x40;
    bytes[8] = 64;
    bytes[9] = UDP;
    bytes[12..16].copy_from_slice(&source.ip().octets());
    bytes[16..20].copy_from_slice(&destination.ip().octets());
    let sum: u32 = bytes[..20]
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes[20..22].copy_from_slice(&source.port().to_be_bytes());
    bytes[22..24].copy_from_slice(&destination.port().to_be_bytes());
    bytes[24..26].copy_from_slice(&length(8).to_be_bytes());
    bytes
}

/// The packet on the wire, with the bit that a link inverted.
pub(crate) fn bytes(packet: &Packet<Datagram>) -> Vec<u8> {
    let mut bytes = headers(packet).to_vec();
    bytes.extend_from_slice(&packet.body.payload);
    if let Some(bit) = packet.corrupted {
        let bit = bit % (8 * bytes.len() as u64);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn headers_describe_the_packet() {
        let address = |last, port| SocketAddrV4::new(Ipv4Addr::new(192, 168, 0, last), port);
        let mut packet = Packet::new(
            115,
            Datagram {
                source: address(1, 0x1234),
                destination: address(199, 443),
                payload: vec![0; 87],
            },
        );
        packet.ecn = Ecn::Ect0;
        let bytes = headers(&packet);
        // The checksum was computed by hand.
        let ip = "4502007300004000401".to_owned() + "1b85f" + "c0a80001c0a800c7";
        let udp = "123401bb005f0000";
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, ip + udp);
    }

    #[test]
    fn a_corrupted_packet_differs_in_one_bit() {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 443);
        let intact = Packet::new(
            128,
            Datagram {
                source: address,
                destination: address,
                payload: vec![0; 100],
            },
        );
        for bit in [0, 500, 8 * 128 - 1, 8 * 128 + 7] {
            let mut packet = intact.clone();
            packet.corrupted = Some(bit);
            let pairs = bytes(&packet).into_iter().zip(bytes(&intact));
            let differing: u32 = pairs.map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(differing, 1, "{bit}");
        }
    }
}
