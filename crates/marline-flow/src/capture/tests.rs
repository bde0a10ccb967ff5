use proptest::prelude::*;

use super::*;
use crate::limits::{MAX_BLOCK, MAX_LINE};
use crate::testing::{SECOND, START, pcap};

/// A packet as read: its time, link type, length and bytes.
type Read4 = (u64, LinkType, usize, Vec<u8>);

fn read_all(bytes: &[u8]) -> Result<Vec<Read4>, CaptureError> {
    let mut capture = Capture::new(bytes, "x.pcap")?;
    let mut packets = Vec::new();
    while let Some(item) = capture.next()? {
        let Item::Packet(packet) = item else {
            panic!("{item:?} is not a packet");
        };
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

const TLS_KEY_LOG: u32 = 0x544c_534b;

/// A block of secrets that claims to have `length` bytes of them.
fn secrets(kind: u32, length: usize, content: &[u8]) -> Vec<u8> {
    let length = length as u32;
    block(
        10,
        &[&kind.to_le_bytes()[..], &length.to_le_bytes(), content].concat(),
    )
}

fn key_log(content: &[u8]) -> Vec<u8> {
    secrets(TLS_KEY_LOG, content.len(), content)
}

/// The lines and the bytes of packets in a capture, in their order.
fn items(source: impl Read) -> Result<Vec<String>, CaptureError> {
    let mut capture = Capture::new(source, "x.pcapng")?;
    let mut items = Vec::new();
    while let Some(item) = capture.next()? {
        let (kind, bytes) = match item {
            Item::Packet(packet) => ("packet", packet.data),
            Item::KeyLogLine(line) => ("line", line),
        };
        items.push(format!("{kind} {}", String::from_utf8_lossy(bytes)));
    }
    Ok(items)
}

#[test]
fn lines_of_key_logs_are_read_between_the_packets_around_them() {
    const WIREGUARD: u32 = 0x5747_4b4c;
    // A comment of the block, after its padding.
    let comment = [1, 0, 2, 0, b'h', b'i', 0, 0, 0, 0, 0, 0];
    let file = [
        section(),
        key_log(b"A 01 02\nB 03 04"),
        interface(1, &[]),
        enhanced(0, 0, 1, b"x"),
        secrets(WIREGUARD, 8, b"LOCAL...\n"),
        secrets(TLS_KEY_LOG, 6, &[&b"C 5 6\n\0\0"[..], &comment].concat()),
        key_log(b""),
        key_log(b"D 7 8\r\n\n"),
        enhanced(0, 0, 1, b"y"),
    ]
    .concat();
    let expected = [
        "line A 01 02\n",
        "line B 03 04",
        "packet x",
        "line C 5 6\n",
        "line D 7 8\r\n",
        "line \n",
        "packet y",
    ];
    assert_eq!(items(&file[..]).unwrap(), expected);
    assert_eq!(items(Slow(&file)).unwrap(), expected);
}

#[test]
fn malformed_secrets_hide_no_packet() {
    let packet = [interface(1, &[]), enhanced(0, 0, 1, b"x")].concat();
    for (secrets, lines) in [
        (block(10, &[]), &[][..]),
        (block(10, &TLS_KEY_LOG.to_le_bytes()), &[]),
        // More than the block has room for.
        (
            secrets(TLS_KEY_LOG, 9, b"A 1 2\n\0\0"),
            &["line A 1 2\n", "line \0\0"],
        ),
        (
            secrets(TLS_KEY_LOG, u32::MAX as usize, b"A 1"),
            &["line A 1\0"],
        ),
    ] {
        let file = [section(), secrets, packet.clone()].concat();
        assert_eq!(items(&file[..]).unwrap(), [lines, &["packet x"]].concat());
    }
}

#[test]
fn secrets_of_any_length_are_read_by_line_and_long_lines_in_pieces() {
    let line = format!("{}\n", "a".repeat(99));
    let long = "b".repeat(MAX_LINE as usize + 5);
    let number = 3 * MAX_BLOCK / line.len();
    let file = [section(), key_log((line.repeat(number) + &long).as_bytes())].concat();
    let items = items(&file[..]).unwrap();
    assert_eq!(items.len(), number + 2);
    assert!(items[..number].iter().all(|item| item[5..] == line));
    assert_eq!(items[number].len(), "line ".len() + MAX_LINE as usize);
    assert_eq!(items[number + 1], "line bbbbb");
}

#[test]
fn a_capture_that_is_cut_within_secrets_is_truncated_at_their_block() {
    let file = [section(), key_log(b"A 1 2\nB 3 4\n")].concat();
    for cut in 28 + 1..file.len() {
        let error = items(&file[..cut]).unwrap_err();
        assert!(error.is_truncation(), "{error}");
        assert!(error.to_string().contains("at byte 28"), "{error}");
    }
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
        (b"\x28\xb5\x2f\xfd...", "is compressed"),
        (b"PK\x03\x04", "is neither pcap nor pcapng"),
        (b"abc", "is neither pcap nor pcapng"),
        (
            &pcap(147, &[])[..],
            "link type 147 (USER0, of which only its author knows what it is)",
        ),
        (&pcap(187, &[])[..], "link type 187 (BLUETOOTH_HCI_H4)"),
        (&pcap(271, &[])[..], "link type 271 (VSOCK)"),
        (&pcap(230, &[])[..], "link type 230 (IEEE802_15_4_NOFCS)"),
        (&pcap(9999, &[])[..], "link type 9999, which"),
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
            "link type 189 (USB_LINUX)",
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
fn packets_of_an_interface_that_is_not_read_are_left_out() {
    let file = [
        section(),
        interface(189, &[]),
        interface(1, &[]),
        enhanced(0, 1, 3, b"usb"),
        enhanced(1, 2, 3, b"eth"),
        enhanced(0, 3, 3, b"usb"),
    ];
    let links: Vec<_> = read_all(&file.concat())
        .unwrap()
        .into_iter()
        .map(|(_, link, ..)| link)
        .collect();
    let other = LinkType::Other(189);
    assert_eq!(links, [other, LinkType::Ethernet, other]);
}

#[test]
fn interfaces_that_packets_came_from_are_counted_by_section() {
    let packet = |number| enhanced(number, 0, 1, b"x");
    let parts = [
        section(),
        interface(1, &[]),
        interface(1, &[]),
        interface(1, &[]),
        packet(2),
        packet(0),
        packet(2),
        section(),
        interface(1, &[]),
        packet(0),
    ];
    let file = parts.concat();
    let mut capture = Capture::new(&*file, "test").unwrap();
    let mut counts = Vec::new();
    while capture.next().unwrap().is_some() {
        counts.push(capture.interfaces());
    }
    assert_eq!(counts, [1, 2, 2, 2]);
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
        let Some(Item::Packet(packet)) = capture.next().unwrap() else {
            panic!("a packet is missing");
        };
        assert_eq!((packet.time_ns, packet.data), (time, data));
    }
    assert!(capture.next().unwrap().is_none());
}

proptest! {
    #[test]
    fn no_bytes_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        beginning in 0usize..6,
        cut in any::<prop::sample::Index>(),
    ) {
        let beginning = [
            pcap(1, &[(START, &[1; 50])]),
            [section(), interface(1, &[9, 0, 1, 0, 0xff, 0, 0, 0]), enhanced(0, u64::MAX, 7, b"x")].concat(),
            [section(), interface(1, &bytes)].concat(),
            [section(), block(10, &bytes)].concat(),
            [section(), secrets(TLS_KEY_LOG, bytes.len() / 2 * 3, &bytes)].concat(),
            vec![],
        ][beginning].clone();
        let mut file = [beginning, bytes].concat();
        file.truncate(cut.index(file.len() + 1));
        if let Ok(mut capture) = Capture::new(&file[..], "x") {
            while let Ok(Some(item)) = capture.next() {
                match item {
                    Item::Packet(packet) => prop_assert!(packet.data.len() <= packet.length),
                    Item::KeyLogLine(line) => prop_assert!((1..=MAX_LINE as usize).contains(&line.len())),
                }
            }
        }
    }
}
