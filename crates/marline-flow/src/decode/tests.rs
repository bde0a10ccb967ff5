use super::*;
use crate::capture::LinkType;
use crate::testing::*;

fn of(link: LinkType, data: &[u8]) -> Decoded<'_> {
    decode(&Packet {
        time_ns: 0,
        link,
        length: data.len(),
        data,
    })
}

#[track_caller]
fn ports(link: LinkType, data: &[u8]) -> [u16; 2] {
    match of(link, data) {
        Decoded::Segment(segment) => [segment.source.port(), segment.destination.port()],
        other => panic!("{other:?}"),
    }
}

fn datagram() -> Vec<u8> {
    udp(address("10.0.0.1:5000"), address("10.0.0.2:443"), b"hello")
}

fn datagram_v6() -> Vec<u8> {
    udp(
        address("[fe80::1]:5000"),
        address("[fe80::2]:443"),
        b"hello",
    )
}

#[test]
fn every_link_type_leads_to_ip() {
    for packet in [datagram(), datagram_v6()] {
        let v6 = packet[0] >> 4 == 6;
        let kind: [u8; 2] = if v6 { [0x86, 0xdd] } else { [8, 0] };
        let cooked_v1 = [
            &[0, 4, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0],
            &kind[..],
            &packet,
        ]
        .concat();
        let cooked_v2 = [
            &kind[..],
            &[0, 0, 0, 0, 0, 1, 0, 1, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0],
            &packet,
        ]
        .concat();
        for (link, frame) in [
            (LinkType::Ethernet, ethernet(&[], &packet)),
            (LinkType::Ethernet, ethernet(&[0x8100], &packet)),
            (LinkType::Ethernet, ethernet(&[0x88a8, 0x8100], &packet)),
            (LinkType::Raw, packet.clone()),
            (LinkType::Loopback, [&[2, 0, 0, 0], &packet[..]].concat()),
            (LinkType::CookedV1, cooked_v1),
            (LinkType::CookedV2, cooked_v2),
        ] {
            assert_eq!(ports(link, &frame), [5000, 443], "{link:?}");
        }
    }
}

#[test]
fn padding_of_ethernet_is_no_content() {
    let mut frame = ethernet(&[], &datagram());
    frame.resize(60, 0xaa);
    let Decoded::Segment(segment) = of(LinkType::Ethernet, &frame) else {
        panic!("a segment");
    };
    assert_eq!(segment.payload, b"hello");
    assert_eq!((segment.ip_bytes, segment.payload_bytes), (33, 5));
}

#[test]
fn a_packet_of_which_only_headers_were_captured_counts_with_its_length() {
    let whole = udp(
        address("10.0.0.1:5000"),
        address("10.0.0.2:443"),
        &[1; 1200],
    );
    let Decoded::Segment(segment) = decode(&Packet {
        time_ns: 0,
        link: LinkType::Raw,
        length: whole.len(),
        data: &whole[..40],
    }) else {
        panic!("a segment");
    };
    assert_eq!((segment.ip_bytes, segment.payload_bytes), (1228, 1200));
    assert_eq!(segment.payload.len(), 12);
}

#[test]
fn a_total_length_of_zero_is_that_on_the_link() {
    let mut packet = datagram();
    packet[2..4].copy_from_slice(&[0, 0]);
    let Decoded::Segment(segment) = of(LinkType::Raw, &packet) else {
        panic!("a segment");
    };
    assert_eq!(segment.ip_bytes, 33);
}

#[test]
fn extension_headers_of_ipv6_are_passed_over() {
    let inner = &datagram_v6()[40..];
    let hop_by_hop = [43, 0, 1, 4, 0, 0, 0, 0];
    let routing = [51, 0, 0, 0, 0, 0, 0, 0];
    let authentication = [60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    let content = [&hop_by_hop[..], &routing, &authentication, &options, inner].concat();
    let [from, to] = ["fe80::1", "fe80::2"].map(|text| text.parse().unwrap());
    let packet = ip(from, to, 0, &content);
    assert_eq!(ports(LinkType::Raw, &packet), [5000, 443]);
    let endless = ip(from, to, 0, &[0; 400]);
    assert!(matches!(
        of(LinkType::Raw, &endless),
        Decoded::Malformed(Malformed::Ip)
    ));
}

#[test]
fn fragments_of_ipv6_have_the_key_of_their_first() {
    let inner = &datagram_v6()[40..];
    let [from, to] = ["fe80::1", "fe80::2"].map(|text| text.parse().unwrap());
    let first = ip(
        from,
        to,
        44,
        &[&[17, 0, 0, 1, 0, 0, 0, 9][..], inner].concat(),
    );
    let Decoded::Segment(segment) = of(LinkType::Raw, &first) else {
        panic!("a segment");
    };
    assert!(segment.payload.is_empty(), "a fragment is not looked into");
    let later = ip(from, to, 44, &[17, 0, 0, 0x40, 0, 0, 0, 9, 1, 2, 3]);
    let Decoded::Fragment(fragment) = of(LinkType::Raw, &later) else {
        panic!("a fragment");
    };
    assert_eq!(segment.fragment(), Some(fragment.key));
    assert_eq!((fragment.ip_bytes, fragment.payload_bytes), (51, 3));
    // A packet that was not fragmented though it has the header.
    let atomic = ip(
        from,
        to,
        44,
        &[&[17, 0, 0, 0, 0, 0, 0, 9][..], inner].concat(),
    );
    assert!(
        matches!(of(LinkType::Raw, &atomic), Decoded::Segment(segment) if segment.fragment().is_none())
    );
}

#[test]
fn tunnels_and_other_protocols_are_skipped_by_kind() {
    let [from, to] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
    let vxlan = udp(
        address("10.0.0.1:50000"),
        address("10.0.0.2:4789"),
        &[8, 0, 0, 0, 0, 0, 1, 0],
    );
    let gtp = udp(
        address("10.0.0.1:2152"),
        address("10.0.0.2:2152"),
        &[0x30, 0xff, 0, 0, 0, 0, 0, 1],
    );
    let arp = [&[2; 12][..], &[8, 6], &[0; 28]].concat();
    let pppoe = [&[2; 12][..], &[0x88, 0x64], &[0; 28]].concat();
    for (link, packet, why) in [
        (LinkType::Raw, ip(from, to, 47, &[0; 8]), Skipped::Tunnel),
        (LinkType::Raw, ip(from, to, 4, &datagram()), Skipped::Tunnel),
        (LinkType::Raw, vxlan, Skipped::Tunnel),
        (LinkType::Raw, gtp, Skipped::Tunnel),
        (LinkType::Ethernet, pppoe, Skipped::Tunnel),
        (
            LinkType::Raw,
            ip(from, to, 1, &[8; 8]),
            Skipped::OtherTransport,
        ),
        (LinkType::Ethernet, arp, Skipped::NotIp),
    ] {
        assert!(
            matches!(of(link, &packet), Decoded::Skipped(skipped) if skipped == why),
            "{why:?}: {:?}",
            of(link, &packet)
        );
    }
    // The same ports without the headers of tunnels are of flows.
    let plain = udp(
        address("10.0.0.1:50000"),
        address("10.0.0.2:4789"),
        b"plain",
    );
    assert_eq!(ports(LinkType::Raw, &plain), [50000, 4789]);
}

#[test]
fn impossible_headers_are_malformed_by_layer() {
    let with = |change: fn(&mut Vec<u8>)| {
        let mut packet = datagram();
        change(&mut packet);
        packet
    };
    for (packet, why) in [
        (with(|packet| packet[0] = 0x44), Malformed::Ip),
        (with(|packet| packet[3] = 200), Malformed::Ip),
        (with(|packet| packet[3] = 10), Malformed::Ip),
        (with(|packet| packet[0] = 0x55), Malformed::Ip),
        (with(|packet| packet.truncate(12)), Malformed::Ip),
        (with(|packet| packet[3] = 25), Malformed::Transport),
    ] {
        let packet = ethernet(&[], &packet);
        let frame = &packet[..];
        assert!(
            matches!(of(LinkType::Ethernet, frame), Decoded::Malformed(malformed) if malformed == why),
            "{why:?}: {:?}",
            of(LinkType::Ethernet, frame)
        );
    }
    assert!(matches!(
        of(LinkType::Ethernet, &[1; 9]),
        Decoded::Malformed(Malformed::Link)
    ));
    let cut = Packet {
        time_ns: 0,
        link: LinkType::Raw,
        length: 1000,
        data: &datagram()[..22],
    };
    assert!(matches!(decode(&cut), Decoded::Malformed(Malformed::Cut)));
}
