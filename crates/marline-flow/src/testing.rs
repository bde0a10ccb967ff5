//! Packets and captures for tests.

use std::net::{IpAddr, SocketAddr};

use crate::capture::{LinkType, Packet};
use crate::decode::flags;
use crate::exporter::{Exporter, Finished, Sources};
use crate::record::Record;
use crate::statistics::Statistics;
use crate::table::Options;

pub(crate) const SECOND: u64 = 1_000_000_000;

/// The time at which tests begin.
pub(crate) const START: u64 = 1_700_000_000 * SECOND;

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A header of IPv4 or IPv6 before `content`.
pub(crate) fn ip(source: IpAddr, destination: IpAddr, protocol: u8, content: &[u8]) -> Vec<u8> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut packet = vec![0x45, 0];
            packet.extend((20 + content.len() as u16).to_be_bytes());
            packet.extend([0, 7, 0, 0, 64, protocol, 0, 0]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet.extend(content);
            packet
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend((content.len() as u16).to_be_bytes());
            packet.extend([protocol, 64]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet.extend(content);
            packet
        }
        _ => panic!("addresses of two families"),
    }
}

/// A segment of TCP that a test sends.
#[derive(Clone, Copy)]
pub(crate) struct TestSegment<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) flags: u8,
    pub(crate) sequence: u32,
    pub(crate) acknowledgment: u32,
    pub(crate) payload: &'a [u8],
}

impl TestSegment<'_> {
    pub(crate) fn packet(&self) -> Vec<u8> {
        let mut segment = Vec::new();
        segment.extend(self.from.port().to_be_bytes());
        segment.extend(self.to.port().to_be_bytes());
        segment.extend(self.sequence.to_be_bytes());
        segment.extend(self.acknowledgment.to_be_bytes());
        segment.extend([5 << 4, self.flags]);
        segment.extend([0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(self.payload);
        ip(self.from.ip(), self.to.ip(), 6, &segment)
    }
}

pub(crate) fn udp(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(from.port().to_be_bytes());
    datagram.extend(to.port().to_be_bytes());
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    ip(from.ip(), to.ip(), 17, &datagram)
}

/// Puts a header of Ethernet with these VLAN tags before a packet.
pub(crate) fn ethernet(tags: &[u16], packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for tag in tags {
        frame.extend(tag.to_be_bytes());
        frame.extend([0, 42]);
    }
    let kind: u16 = if packet[0] >> 4 == 6 { 0x86dd } else { 0x0800 };
    frame.extend(kind.to_be_bytes());
    frame.extend(packet);
    frame
}

pub(crate) fn raw(time_ns: u64, data: &[u8]) -> Packet<'_> {
    Packet {
        time_ns,
        link: LinkType::Raw,
        length: data.len(),
        data,
    }
}

/// An exporter whose records a test looks at.
pub(crate) struct Run {
    pub(crate) exporter: Exporter<Vec<Record>>,
    pub(crate) now_ns: u64,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self::with(Options::default(), Sources::default())
    }

    pub(crate) fn with(options: Options, sources: Sources) -> Self {
        Self {
            exporter: Exporter::new(options, sources, Vec::new()),
            now_ns: START,
        }
    }

    pub(crate) fn after(&mut self, ns: u64) -> &mut Self {
        self.now_ns += ns;
        self
    }

    pub(crate) fn packet(&mut self, packet: &[u8]) -> &mut Self {
        self.exporter.packet(&raw(self.now_ns, packet)).unwrap();
        self
    }

    pub(crate) fn finish(self) -> (Vec<Record>, Statistics) {
        let Finished { sink, statistics } = self.exporter.finish().unwrap();
        (sink, statistics)
    }

    pub(crate) fn records(self) -> Vec<Record> {
        self.finish().0
    }
}

/// A connection of TCP whose segments a test sends.
pub(crate) struct Connection {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    sent: [u32; 2],
}

impl Connection {
    pub(crate) fn new(client: &str, server: &str) -> Self {
        Self {
            client: address(client),
            server: address(server),
            // The second one wraps around soon.
            sent: [1000, u32::MAX - 10],
        }
    }

    pub(crate) fn segment(&mut self, of_client: bool, flags: u8, payload: &[u8]) -> Vec<u8> {
        let (from, to) = match of_client {
            true => (self.client, self.server),
            false => (self.server, self.client),
        };
        let acknowledgment = self.sent[usize::from(of_client)];
        let sequence = &mut self.sent[usize::from(!of_client)];
        let segment = TestSegment {
            from,
            to,
            flags,
            sequence: *sequence,
            acknowledgment,
            payload,
        };
        let counted = u32::from(flags & (flags::SYN | flags::FIN) != 0);
        *sequence = sequence.wrapping_add(payload.len() as u32 + counted);
        segment.packet()
    }

    /// The segments of a handshake.
    pub(crate) fn open(&mut self, run: &mut Run) {
        run.packet(&self.segment(true, flags::SYN, &[]));
        run.packet(&self.segment(false, flags::SYN | flags::ACK, &[]));
        run.packet(&self.segment(true, flags::ACK, &[]));
    }

    /// Data in segments of at most `size` bytes.
    pub(crate) fn send(&mut self, run: &mut Run, of_client: bool, data: &[u8], size: usize) {
        for piece in data.chunks(size) {
            run.packet(&self.segment(of_client, flags::ACK, piece));
        }
    }

    /// FINs of both ends.
    pub(crate) fn close(&mut self, run: &mut Run) {
        run.packet(&self.segment(true, flags::FIN | flags::ACK, &[]));
        run.packet(&self.segment(false, flags::FIN | flags::ACK, &[]));
        run.packet(&self.segment(true, flags::ACK, &[]));
    }
}

fn prefixed(length: usize, content: &[u8]) -> Vec<u8> {
    let all = (content.len() as u32).to_be_bytes();
    [&all[4 - length..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &prefixed(2, content)].concat()
}

fn protocols(ids: &[&str]) -> Vec<u8> {
    let list: Vec<_> = ids
        .iter()
        .flat_map(|id| prefixed(1, id.as_bytes()))
        .collect();
    extension(16, &prefixed(2, &list))
}

/// A ClientHello, without record.
pub(crate) fn client_hello(name: &str, offered: &[&str]) -> Vec<u8> {
    let name = [&[0][..], &prefixed(2, name.as_bytes())].concat();
    let extensions = [
        extension(0x0a0a, &[]),
        extension(0, &prefixed(2, &name)),
        protocols(offered),
    ];
    let body = [
        &[3, 3][..],
        &[9; 32],
        &prefixed(1, &[]),
        &prefixed(2, &[0x13, 1]),
        &prefixed(1, &[0]),
        &prefixed(2, &extensions.concat()),
    ];
    [&[1][..], &prefixed(3, &body.concat())].concat()
}

/// A ServerHello of TLS 1.2, without record.
pub(crate) fn server_hello(chosen: &[&str]) -> Vec<u8> {
    let body = [
        &[3, 3][..],
        &[8; 32],
        &prefixed(1, &[]),
        &[0xc0, 0x2f, 0],
        &prefixed(2, &protocols(chosen)),
    ];
    [&[2][..], &prefixed(3, &body.concat())].concat()
}

/// ServerHelloDone, without record.
pub(crate) const SERVER_HELLO_DONE: [u8; 4] = [14, 0, 0, 0];

/// ChangeCipherSpec and Finished of TLS 1.2.
pub(crate) fn tls12_finished() -> Vec<u8> {
    let change = [&[20, 3, 3][..], &prefixed(2, &[1])].concat();
    [change, tls_record(&[0xe5; 40])].concat()
}

/// A record of application data.
pub(crate) fn tls_data() -> Vec<u8> {
    [&[23, 3, 3][..], &prefixed(2, &[0xda; 60])].concat()
}

/// A record of handshake messages.
pub(crate) fn tls_record(message: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &prefixed(2, message)].concat()
}

/// A capture in the format of libpcap: microseconds, little-endian.
pub(crate) fn pcap(link: u32, packets: &[(u64, &[u8])]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend(65535u32.to_le_bytes());
    file.extend(link.to_le_bytes());
    for (time_ns, data) in packets {
        let len = data.len() as u32;
        let micros = time_ns / 1000;
        for field in [
            (micros / 1_000_000) as u32,
            (micros % 1_000_000) as u32,
            len,
            len,
        ] {
            file.extend(field.to_le_bytes());
        }
        file.extend(*data);
    }
    file
}
