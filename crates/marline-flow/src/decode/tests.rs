use super::*;
use crate::capture::LinkType;
use crate::testing::*;

fn of(link: LinkType, data: &[u8]) -> Decoded<'_> {
    of_length(link, data, data.len())
}

fn of_length(link: LinkType, data: &[u8], length: usize) -> Decoded<'_> {
    let time_ns = 0;
    let packet = Packet {
        time_ns,
        link,
        length,
        data,
    };
    decode(&packet, &mut Layers::default())
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
        let ppp: [u8; 2] = if v6 { [0, 0x57] } else { [0, 0x21] };
        let snap = [&[0xaa, 0xaa, 3, 0, 0, 0], &kind[..], &packet].concat();
        let payload = [
            &(packet.len() as u16 + 4).to_le_bytes()[..],
            &[9, 0],
            &packet,
        ];
        let family = if v6 { 10 } else { 2 };
        let nflog = [
            &[family, 0, 0, 5][..],
            &[5, 0, 10, 0, b'x', 0, 0, 0],
            &payload.concat(),
        ]
        .concat();
        let length = packet.len() as u16 + 8;
        let with_llc = [&[2; 12][..], &length.to_be_bytes(), &snap].concat();
        for (link, frame) in [
            (LinkType::Ethernet, with_llc),
            (LinkType::Ppp, [&ppp[..], &packet].concat()),
            (LinkType::Ppp, [&ppp[1..], &packet].concat()),
            (LinkType::Ppp, [&[0xff, 3], &ppp[..], &packet].concat()),
            (LinkType::Ppp, [&[0x0f, 0], &kind[..], &packet].concat()),
            (
                LinkType::PppWithDirection,
                [&[1, 0xff, 3], &ppp[..], &packet].concat(),
            ),
            (LinkType::PppPppd, [&[1, 3], &ppp[..], &packet].concat()),
            (LinkType::PppEther, pppoe(7, &packet)),
            (
                LinkType::CiscoHdlc,
                [&[0x0f, 0], &kind[..], &packet].concat(),
            ),
            (LinkType::Wifi, wifi(0x08, 1, &[], &snap)),
            (LinkType::Wifi, wifi(0x88, 2, &[0, 0], &snap)),
            (
                LinkType::Wifi,
                wifi(0x88, 3, &[2, 2, 2, 2, 2, 2, 5, 0], &snap),
            ),
            (LinkType::Wifi, wifi(0x88, 0x82, &[5, 0, 1, 2, 3, 4], &snap)),
            // A check sequence after the frame.
            (
                LinkType::Wifi,
                [&wifi(0x08, 1, &[], &snap)[..], &[9; 4]].concat(),
            ),
            (
                LinkType::Radiotap,
                radiotap(0, &wifi(0x88, 1, &[0, 0], &snap)),
            ),
            (
                LinkType::Radiotap,
                radiotap(0x20, &wifi(0x88, 1, &[0, 0, 0, 0], &snap)),
            ),
            (
                LinkType::Radiotap,
                radiotap(0x10, &[&wifi(0x08, 1, &[], &snap)[..], &[9; 4]].concat()),
            ),
            (LinkType::Ppi, ppi(105, &wifi(0x08, 1, &[], &snap))),
            (LinkType::Ppi, ppi(1, &ethernet(&[], &packet))),
            (
                LinkType::Prism,
                prism(u32::to_le_bytes, &wifi(0x08, 1, &[], &snap)),
            ),
            (
                LinkType::Prism,
                prism(u32::to_be_bytes, &wifi(0x08, 1, &[], &snap)),
            ),
            (LinkType::Prism, avs(1, &wifi(0x08, 1, &[], &snap))),
            (LinkType::Avs, avs(2, &wifi(0x88, 1, &[0, 0], &snap))),
            (LinkType::Nflog, nflog),
            (
                LinkType::Pflog,
                [&[61, family][..], &[7; 62], &packet].concat(),
            ),
            (
                LinkType::Ipnet,
                [&[1, family][..], &[7; 22], &packet].concat(),
            ),
            (LinkType::Pktap, pktap(1, &ethernet(&[], &packet))),
            (LinkType::Pktap, pktap(12, &packet)),
            (LinkType::Atm, snap.clone()),
            (
                LinkType::Atm,
                [
                    &[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0][..],
                    &ethernet(&[], &packet),
                ]
                .concat(),
            ),
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
    let decoded = of_length(LinkType::Raw, &whole[..40], whole.len());
    let Decoded::Segment(segment) = decoded else {
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
    assert_eq!(segment.fragment, Some(fragment.key));
    assert_eq!((fragment.ip_bytes, fragment.payload_bytes), (51, 3));
    // A packet that was not fragmented though it has the header.
    let atomic = ip(
        from,
        to,
        44,
        &[&[17, 0, 0, 0, 0, 0, 0, 9][..], inner].concat(),
    );
    assert!(
        matches!(of(LinkType::Raw, &atomic), Decoded::Segment(segment) if segment.fragment.is_none())
    );
}

#[test]
fn other_protocols_are_skipped_by_kind() {
    let [from, to] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
    let arp = [&[2; 12][..], &[8, 6], &[0; 28]].concat();
    for (link, packet, why) in [
        (
            LinkType::Raw,
            ip(from, to, 50, &[9; 40]),
            Skipped::Protected,
        ),
        (LinkType::Raw, ip(from, to, 115, &[0; 40]), Skipped::Tunnel),
        (
            LinkType::Raw,
            ip(from, to, 1, &[8; 8]),
            Skipped::OtherTransport,
        ),
        (LinkType::Ethernet, arp, Skipped::NotIp),
        (LinkType::Other(189), vec![1; 64], Skipped::LinkType),
    ] {
        assert!(
            matches!(of(link, &packet), Decoded::Skipped(skipped) if skipped == why),
            "{why:?}: {:?}",
            of(link, &packet)
        );
    }
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
    let packet = datagram();
    let cut = of_length(LinkType::Raw, &packet[..22], 1000);
    assert!(matches!(cut, Decoded::Malformed(Malformed::Cut)));
}

/// A frame of 802.11: the first two bytes, and what follows the first three addresses and the number.
fn wifi(kind: u8, flags: u8, rest: &[u8], content: &[u8]) -> Vec<u8> {
    [&[kind, flags, 0, 0][..], &[2; 18], &[0; 2], rest, content].concat()
}

/// A frame after a header of Radiotap with a time, flags, and a second word of other fields.
fn radiotap(flags: u8, frame: &[u8]) -> Vec<u8> {
    let present = [3, 0, 0, 0x80, 0, 0, 0, 0];
    let time = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    [&[0, 0, 25, 0][..], &present, &time, &[flags], frame].concat()
}

/// A packet after a header of PPI with the common fields of 802.11.
fn ppi(link: u32, packet: &[u8]) -> Vec<u8> {
    let fields = [&[2, 0, 20, 0][..], &[0; 20]].concat();
    let header = [&[0, 0, 32, 0][..], &link.to_le_bytes()].concat();
    [header, fields, packet.to_vec()].concat()
}

/// A frame after a header of a Prism driver, in a byte order.
fn prism(order: fn(u32) -> [u8; 4], frame: &[u8]) -> Vec<u8> {
    let header = [order(0x44), order(144)].concat();
    [&header[..], b"wlan0", &[0; 131], frame].concat()
}

fn avs(version: u8, frame: &[u8]) -> Vec<u8> {
    [
        &[0x80, 0x21, 0x10, version, 0, 0, 0, 64][..],
        &[7; 56],
        frame,
    ]
    .concat()
}

/// A packet after a header of macOS.
fn pktap(link: u32, packet: &[u8]) -> Vec<u8> {
    let header = [108u32, 1, link].map(u32::to_le_bytes).concat();
    [&header[..], &[7; 96], packet].concat()
}

#[test]
fn headers_of_drivers_that_are_impossible_are_malformed() {
    let frame = wifi(0x08, 1, &[], &[0; 40]);
    let mut long = avs(1, &frame);
    long[4] = 0xff;
    for (link, data) in [
        (LinkType::Prism, [&[9; 144][..], &frame].concat()),
        (LinkType::Prism, prism(u32::to_le_bytes, &[])[..20].to_vec()),
        (LinkType::Avs, prism(u32::to_le_bytes, &frame)),
        (LinkType::Avs, long),
        (LinkType::Pktap, pktap(258, &pktap(1, &datagram()))),
        (LinkType::Pflog, vec![61]),
        (LinkType::Pflog, vec![]),
    ] {
        let decoded = of(link, &data);
        assert!(
            matches!(decoded, Decoded::Malformed(Malformed::Link)),
            "{link:?}: {decoded:?}"
        );
    }
}

fn pppoe(session: u8, packet: &[u8]) -> Vec<u8> {
    let protocol: u8 = if packet[0] >> 4 == 6 { 0x57 } else { 0x21 };
    let length = packet.len() as u16 + 2;
    let header = [&[0x11, 0, 0, session][..], &length.to_be_bytes()].concat();
    [&header[..], &[0, protocol], packet].concat()
}

#[test]
fn frames_of_802_11_without_content_of_ip_are_skipped_by_kind() {
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &datagram()].concat();
    for (frame, why) in [
        (wifi(0x80, 0, &[], &[0; 40]), Skipped::NotIp),
        (wifi(0xd4, 0, &[], &[]), Skipped::NotIp),
        (wifi(0x48, 1, &[], &[]), Skipped::NotIp),
        (wifi(0x08, 0x41, &[], &snap), Skipped::Protected),
        (wifi(0x88, 0x41, &[0, 0], &snap), Skipped::Protected),
    ] {
        let decoded = of(LinkType::Wifi, &frame);
        assert!(
            matches!(decoded, Decoded::Skipped(skipped) if skipped == why),
            "{decoded:?}"
        );
    }
    let damaged = radiotap(0x40, &wifi(0x08, 1, &[], &snap));
    assert!(matches!(
        of(LinkType::Radiotap, &damaged),
        Decoded::Malformed(Malformed::Link)
    ));
}
