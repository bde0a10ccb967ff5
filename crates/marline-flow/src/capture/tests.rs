use proptest::prelude::*;

use super::*;
use crate::testing::{SECOND, START, pcap};

/// What is read of a packet: its time, link type, length and bytes.
type Read4 = (u64, LinkType, usize, Vec<u8>);

fn read_all(bytes: &[u8]) -> Result<Vec<Read4>, CaptureError> {
    let mut capture = Capture::new(bytes, "x.pcap")?;
    let mut packets = Vec::new();
    while let Some(packet) = capture.next()? {
        packets.push((
            packet.time_ns,
            packet.link,
            packet.length,
            packet.data.to_vec(),
        ));
    }
    assert_eq!(capture.position(), bytes.len() as u64);
    Ok(packets)
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

fn section() -> Vec<u8> {
    let body = [
        &0x1a2b_3c4d_u32.to_le_bytes()[..],
        &[1, 0, 0, 0],
        &[0xff; 8],
    ]
    .concat();
    block(pcapng::SECTION_HEADER, &body)
}

fn interface(link: u16, options: &[u8]) -> Vec<u8> {
    block(
        1,
        &[&link.to_le_bytes()[..], &[0, 0], &[0; 4], options].concat(),
    )
}

fn enhanced(interface: u32, time: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let fields = [
        interface,
        (time >> 32) as u32,
        time as u32,
        data.len() as u32,
        length,
    ];
    let fields: Vec<u8> = fields
        .iter()
        .flat_map(|field| field.to_le_bytes())
        .collect();
    let mut body = [&fields[..], data].concat();
    body.resize(body.len().next_multiple_of(4), 0);
    // A comment.
    body.extend([1, 0, 2, 0, b'h', b'i', 0, 0, 0, 0, 0, 0]);
    block(6, &body)
}

#[test]
fn a_pcap_of_either_byte_order_and_resolution_is_read() {
    let data = [7u8; 60];
    for (magic, part, expected) in [
        (0xa1b2_c3d4_u32, 5u32, START + 5000),
        (0xa1b2_3c4d, 5, START + 5),
    ] {
        for big in [false, true] {
            let order = |value: u32| match big {
                true => value.to_be_bytes(),
                false => value.to_le_bytes(),
            };
            let seconds = (START / SECOND) as u32;
            let fields = [magic, 0, 0, 0, 65535, 101, seconds, part, 60, 1500];
            let mut file: Vec<u8> = fields.into_iter().flat_map(order).collect();
            file.extend(data);
            let read = read_all(&file).unwrap();
            assert_eq!(read, [(expected, LinkType::Raw, 1500, data.to_vec())]);
        }
    }
}

#[test]
fn sections_interfaces_and_resolutions_of_pcapng_are_read() {
    let nanoseconds = [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let halves = [
        9, 0, 1, 0, 0x81, 0, 0, 0, 14, 0, 8, 0, 100, 0, 0, 0, 0, 0, 0, 0,
    ];
    let name_resolution = block(4, &[0; 40]);
    let file = [
        section(),
        interface(1, &[]),
        interface(101, &nanoseconds),
        name_resolution,
        enhanced(0, 3, 99, b"abc"),
        enhanced(1, 4, 2, b"defgh"),
        // A simple packet has the time of the one before.
        block(3, &[&5u32.to_le_bytes()[..], b"simpl"].concat()),
        section(),
        interface(276, &halves),
        enhanced(0, 3, 1, b"x"),
    ];
    let read = read_all(&file.concat()).unwrap();
    assert_eq!(
        read,
        [
            (3000, LinkType::Ethernet, 99, b"abc".to_vec()),
            (4, LinkType::Raw, 5, b"defgh".to_vec()),
            (4, LinkType::Ethernet, 5, b"simpl".to_vec()),
            (101_500_000_000, LinkType::CookedV2, 1, b"x".to_vec()),
        ]
    );
}

#[test]
fn what_is_no_capture_is_refused_by_what_it_is() {
    for (bytes, problem) in [
        (&b""[..], "is empty"),
        (b"\x1f\x8b\x08\x00...", "is compressed"),
        (b"PK\x03\x04", "is neither pcap nor pcapng"),
        (b"abc", "is neither pcap nor pcapng"),
        (&pcap(147, &[])[..], "link type 147"),
        (
            &pcap(1, &[])[..20],
            "ends within the packet or block at byte 0",
        ),
        (
            &pcap(1, &[(0, &[0; 9])])[..30],
            "ends within the packet or block at byte 24",
        ),
        (
            &[section(), interface(189, &[]), enhanced(0, 0, 1, b"x")].concat(),
            "link type 189",
        ),
        (
            &[section(), enhanced(0, 0, 1, b"x")].concat(),
            "is of an interface that is not described",
        ),
        (
            &[section(), vec![6, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]].concat(),
            "malformed at byte 28",
        ),
    ] {
        let error = read_all(bytes).unwrap_err().to_string();
        assert!(error.starts_with("x.pcap: "), "{error}");
        assert!(error.contains(problem), "`{problem}` in {error}");
    }
}

#[test]
fn a_packet_that_claims_to_be_huge_is_refused_before_memory_is_taken() {
    let mut file = pcap(1, &[(0, &[0; 9])]);
    file[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read_all(&file).unwrap_err().to_string();
    assert!(error.contains("256 KiB"), "{error}");
    let file = [section(), vec![6, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0]].concat();
    let error = read_all(&file).unwrap_err().to_string();
    assert!(error.contains("256 KiB"), "{error}");
}

/// Gives a few bytes at a time, as a pipe does.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = buffer.len().min(self.0.len()).min(3);
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn a_slow_pipe_gives_the_same_packets() {
    let data = vec![3; 5000];
    let packets: Vec<_> = (0..100)
        .map(|i| (START + i * 1000, &data[..i as usize * 50]))
        .collect();
    let file = pcap(1, &packets);
    let mut capture = Capture::new(Slow(&file), "pipe").unwrap();
    for (time, data) in packets {
        let packet = capture.next().unwrap().unwrap();
        assert_eq!((packet.time_ns, packet.data), (time, data));
    }
    assert!(capture.next().unwrap().is_none());
}

proptest! {
    #[test]
    fn no_bytes_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        beginning in 0usize..4,
        cut in any::<prop::sample::Index>(),
    ) {
        let beginning = [
            pcap(1, &[(START, &[1; 50])]),
            [section(), interface(1, &[9, 0, 1, 0, 0xff, 0, 0, 0]), enhanced(0, u64::MAX, 7, b"x")].concat(),
            [section(), interface(1, &bytes)].concat(),
            vec![],
        ][beginning].clone();
        let mut file = [beginning, bytes].concat();
        file.truncate(cut.index(file.len() + 1));
        if let Ok(mut capture) = Capture::new(&file[..], "x") {
            while let Ok(Some(packet)) = capture.next() {
                prop_assert!(packet.data.len() <= packet.length);
            }
        }
    }
}
