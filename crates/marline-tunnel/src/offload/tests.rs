use proptest::prelude::*;

use super::*;
use crate::packet::Header;

/// Where the header of TCP begins.
fn transport(is_v4: bool) -> usize {
    if is_v4 { 20 } else { 40 }
}

/// A segment of TCP with options, from the sequence number `sequence` on.
fn segment(is_v4: bool, sequence: u32, flags: u8, content: &[u8]) -> Vec<u8> {
    let length = 32 + content.len();
    let mut packet = match is_v4 {
        true => {
            let mut packet = vec![0x45, 0, 0, 0, 0, 9, 0x40, 0, 64, TCP, 0, 0];
            packet[2..4].copy_from_slice(&((20 + length) as u16).to_be_bytes());
            packet.extend([10, 0, 0, 2, 192, 0, 2, 1]);
            set_header_checksum(&mut packet);
            packet
        }
        false => {
            let mut packet = vec![0x60, 0, 0, 0, 0, 0, TCP, 64];
            packet[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            packet.extend([0xfd; 32]);
            packet
        }
    };
    let at = packet.len();
    packet.extend([0x9c, 0x40, 0x01, 0xbb]);
    packet.extend(sequence.to_be_bytes());
    packet.extend([0, 0, 0, 7, 0x80, flags, 0x20, 0, 0, 0, 0, 0]);
    packet.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    packet.extend(content);
    let sum = fold(pseudo_sum(&packet, at, true) + sum(&packet[at..]));
    packet[at + 16..at + 18].copy_from_slice(&(!sum).to_be_bytes());
    packet
}

fn is_intact(packet: &[u8]) -> bool {
    let is_v4 = packet[0] >> 4 == 4;
    let at = transport(is_v4);
    let total = pseudo_sum(packet, at, true) + sum(&packet[at..]);
    Header::parse(packet).is_ok()
        && fold(total) == 0xffff
        && (!is_v4 || checksum(&[&packet[..20]]) == 0)
}

/// The packets of what a device would be given, read again as one reads them.
fn cut(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut burst = Burst::default();
    burst.space()[..bytes.len()].copy_from_slice(bytes);
    burst.filled(bytes.len()).unwrap();
    let mut packets = Vec::new();
    burst.packets(0, |packet| packets.push(packet));
    packets
}

/// Coalesces `packets`. Returns how many each stands for, and what they are cut into again.
fn coalesced(packets: &[Vec<u8>]) -> (Vec<usize>, Vec<Vec<u8>>) {
    let mut coalesced = Coalesced::default();
    for packet in packets {
        coalesced.push(packet, &Header::parse(packet).unwrap());
    }
    let (mut counts, mut again) = (Vec::new(), Vec::new());
    coalesced.drain(|large| {
        counts.push(large.packets);
        again.extend(cut(large.bytes));
    });
    (counts, again)
}

/// Segments of `size` bytes of content after one another, the last one shorter.
fn row(is_v4: bool, count: u32, size: u32) -> Vec<Vec<u8>> {
    let one = |number: u32| {
        let is_last = number + 1 == count;
        let content: Vec<_> = (0..if is_last { size / 2 + 1 } else { size })
            .map(|byte| (byte + number) as u8)
            .collect();
        let mut packet = segment(
            is_v4,
            number.wrapping_mul(size),
            if is_last { ACK | PSH } else { ACK },
            &content,
        );
        if is_v4 {
            packet[4..6].copy_from_slice(&(9 + number as u16).to_be_bytes());
            set_header_checksum(&mut packet[..20]);
        }
        packet
    };
    (0..count).map(one).collect()
}

#[test]
fn segments_that_follow_one_another_are_one_packet_and_are_cut_into_the_same() {
    for is_v4 in [true, false] {
        let packets = row(is_v4, 40, 1361);
        let (counts, again) = coalesced(&packets);
        assert_eq!(counts, [40]);
        assert_eq!(again, packets);
        assert!(again.iter().all(|packet| is_intact(packet)));
    }
}

#[test]
fn two_connections_are_two_packets_each_in_its_order() {
    let one = row(true, 6, 1000);
    let other: Vec<_> = one
        .iter()
        .map(|packet| {
            let mut packet = packet.clone();
            // The sum of the ports stays.
            packet.swap(20, 22);
            packet.swap(21, 23);
            packet
        })
        .collect();
    let mixed: Vec<_> = one
        .iter()
        .zip(&other)
        .flat_map(|(one, other)| [one.clone(), other.clone()])
        .collect();
    let (counts, again) = coalesced(&mixed);
    assert_eq!(counts, [6, 6]);
    assert_eq!(again, [one, other].concat());
}

#[test]
fn what_does_not_continue_is_a_packet_of_its_own() {
    let content = [7; 100];
    let first = segment(true, 0, ACK, &content);
    let mut damaged = segment(true, 100, ACK, &content);
    *damaged.last_mut().unwrap() ^= 1;
    let mut marked = segment(true, 100, ACK, &content);
    marked[1] |= 3;
    set_header_checksum(&mut marked[..20]);
    let mut other_acknowledgment = segment(true, 100, ACK, &content);
    other_acknowledgment[31] += 1;
    let word = u16::from_be_bytes([other_acknowledgment[36], other_acknowledgment[37]]);
    other_acknowledgment[36..38].copy_from_slice(&(word - 1).to_be_bytes());
    assert!(is_intact(&other_acknowledgment));
    for second in [
        segment(true, 101, ACK, &content),
        segment(true, 100, ACK | FIN, &content),
        segment(true, 100, ACK, &[7; 101]),
        segment(true, 100, ACK, &[]),
        damaged,
        marked,
        other_acknowledgment,
    ] {
        let packets = [first.clone(), second];
        assert_eq!(coalesced(&packets), (vec![1, 1], packets.to_vec()));
    }
    // Nothing follows a segment that is pushed, or a shorter one.
    let pushed = [
        segment(true, 0, ACK | PSH, &content),
        segment(true, 100, ACK, &content),
    ];
    assert_eq!(coalesced(&pushed).0, [1, 1]);
    let shorter = [
        first,
        segment(true, 100, ACK, &content[..50]),
        segment(true, 150, ACK, &content),
    ];
    assert_eq!(coalesced(&shorter).0, [2, 1]);
}

#[test]
fn one_packet_stays_within_the_length_of_ip() {
    let packets = row(true, 63, 1400);
    let (counts, again) = coalesced(&packets);
    assert_eq!(again, packets);
    assert_eq!(counts.iter().sum::<usize>(), 63);
    assert!(
        counts[0] * 1400 < MAX_PACKET && counts.len() == 2,
        "{counts:?}"
    );
}

#[test]
fn a_partial_checksum_is_completed() {
    let whole = segment(true, 5, ACK, b"content");
    let mut packet = whole.clone();
    let pseudo = fold(pseudo_sum(&packet, 20, true));
    packet[36..38].copy_from_slice(&pseudo.to_be_bytes());
    let virtio = Virtio {
        flags: NEEDS_CHECKSUM,
        sum_start: 20,
        sum_offset: 16,
        ..Virtio::default()
    };
    assert_eq!(cut(&[&virtio.encode()[..], &packet].concat()), [whole]);
}

#[test]
fn datagrams_of_udp_are_cut() {
    let mut packet = crate::packet::tests::udp("10.0.0.2", "192.0.2.1", 250);
    packet[26..28].fill(0);
    let virtio = Virtio {
        flags: NEEDS_CHECKSUM,
        kind: UDP_L4,
        headers: 28,
        segment: 100,
        sum_start: 20,
        sum_offset: 6,
    };
    let packets = cut(&[&virtio.encode()[..], &packet].concat());
    let lengths: Vec<_> = packets.iter().map(Vec::len).collect();
    assert_eq!(lengths, [128, 128, 78]);
    for packet in packets {
        assert!(Header::parse(&packet).is_ok());
        assert_eq!(
            usize::from(u16::from_be_bytes([packet[24], packet[25]])),
            packet.len() - 20
        );
        assert_eq!(
            fold(pseudo_sum(&packet, 20, false) + sum(&packet[20..])),
            0xffff
        );
    }
}

proptest! {
    #[test]
    fn any_header_and_bytes_are_cut_or_refused(
        virtio in prop::array::uniform10(any::<u8>()),
        kind in prop::sample::select(vec![ONE, TCP_V4, TCP_V6, UDP_L4]),
        mut packet in prop::collection::vec(any::<u8>(), 0..300),
        version in prop::sample::select(vec![0x45, 0x60]),
        start in 0..80_u16,
        size in 0..50_u16,
    ) {
        if let Some(first) = packet.first_mut() {
            *first = version;
        }
        let mut header = Virtio::decode(&virtio);
        (header.kind, header.sum_start, header.segment) = (kind, start, size);
        let cut = cut(&[&header.encode()[..], &packet].concat());
        prop_assert!(cut.len() <= packet.len().max(1));
    }

    #[test]
    fn packets_in_any_order_are_delivered_unchanged(order in prop::collection::vec((0..8_usize, any::<bool>()), 1..60)) {
        let rows = [row(true, 8, 90), row(false, 8, 90)];
        let packets: Vec<_> = order.iter().map(|(number, is_v4)| rows[usize::from(*is_v4)][*number].clone()).collect();
        let (counts, mut again) = coalesced(&packets);
        prop_assert_eq!(counts.iter().sum::<usize>(), packets.len());
        let of = |packets: &[Vec<u8>], version| packets.iter().filter(|packet| packet[0] >> 4 == version).cloned().collect::<Vec<_>>();
        for version in [4, 6] {
            prop_assert_eq!(of(&again, version), of(&packets, version));
        }
        again.clear();
    }
}
