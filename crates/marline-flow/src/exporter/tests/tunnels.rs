//! Packets in tunnels are of flows, whose tunnels are part of what they are.

use super::*;
use crate::record::TunnelRecord;

const OUTER: [&str; 2] = ["172.16.0.1", "172.16.0.2"];

/// A tunnel around a packet of IP, in one direction or the other.
struct Wrapping {
    kind: &'static str,
    wrap: fn(u32, &[u8]) -> Vec<u8>,
    /// Its carrier: a protocol of IP, or a port of UDP.
    carrier: Carrier,
    has_id: bool,
}

#[derive(Clone, Copy)]
enum Carrier {
    Protocol(u8),
    Port(u16),
    Frame,
}

fn wrapped(carrier: Carrier, of_client: bool, content: &[u8]) -> Vec<u8> {
    let mut ends = OUTER.map(|text| text.parse().unwrap());
    if !of_client {
        ends.reverse();
    }
    let [from, to] = ends;
    match carrier {
        Carrier::Protocol(number) => ip(from, to, number, content),
        Carrier::Port(port) => udp((from, 49_200).into(), (to, port).into(), content),
        Carrier::Frame => content.to_vec(),
    }
}

fn frame(packet: &[u8]) -> Vec<u8> {
    ethernet(&[], packet)
}

/// The Ethernet type of a packet.
fn kind(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 6 {
        [0x86, 0xdd]
    } else {
        [8, 0]
    }
}

fn vni(id: u32) -> [u8; 4] {
    (id << 8).to_be_bytes()
}

const WRAPPINGS: [Wrapping; 17] = [
    Wrapping {
        kind: "ipip",
        wrap: |_, packet| packet.to_vec(),
        carrier: Carrier::Protocol(4),
        has_id: false,
    },
    Wrapping {
        kind: "gre",
        wrap: |_, packet| [&[0, 0], &kind(packet)[..], packet].concat(),
        carrier: Carrier::Protocol(47),
        has_id: false,
    },
    Wrapping {
        kind: "gre",
        wrap: |id, packet| {
            let fields = [
                &[0xb0, 0],
                &kind(packet)[..],
                &[9; 4],
                &id.to_be_bytes(),
                &[7; 4],
            ];
            [&fields.concat(), packet].concat()
        },
        carrier: Carrier::Protocol(47),
        has_id: true,
    },
    Wrapping {
        kind: "gre",
        wrap: |id, packet| {
            [
                &[0x20, 0, 0x65, 0x58][..],
                &id.to_be_bytes(),
                &frame(packet),
            ]
            .concat()
        },
        carrier: Carrier::Protocol(47),
        has_id: true,
    },
    // PPTP, with a sequence number and an acknowledgment.
    Wrapping {
        kind: "gre",
        wrap: |id, packet| {
            let protocol: u8 = if packet[0] >> 4 == 6 { 0x57 } else { 0x21 };
            let fields = [
                &[0x30, 0x81, 0x88, 0x0b, 0, 99][..],
                &(id as u16).to_be_bytes(),
                &[0; 8],
            ];
            [&fields.concat()[..], &[0xff, 3, 0, protocol], packet].concat()
        },
        carrier: Carrier::Protocol(47),
        has_id: true,
    },
    Wrapping {
        kind: "erspan",
        wrap: |id, packet| {
            let header = [
                &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1][..],
                &(id as u16).to_be_bytes(),
                &[0; 4],
            ];
            [&header.concat(), &frame(packet)[..]].concat()
        },
        carrier: Carrier::Protocol(47),
        has_id: true,
    },
    Wrapping {
        kind: "etherip",
        wrap: |_, packet| [&[0x30, 0], &frame(packet)[..]].concat(),
        carrier: Carrier::Protocol(97),
        has_id: false,
    },
    Wrapping {
        kind: "gtpu",
        wrap: |id, packet| gtp_u(id, 0x30, &[], packet),
        carrier: Carrier::Port(2152),
        has_id: true,
    },
    // A sequence number, and two extension headers.
    Wrapping {
        kind: "gtpu",
        wrap: |id, packet| {
            let extensions = [0, 1, 0, 0x85, 1, 0x10, 9, 0xc0, 2, 1, 2, 3, 4, 5, 6, 0];
            gtp_u(id, 0x36, &extensions, packet)
        },
        carrier: Carrier::Port(2152),
        has_id: true,
    },
    Wrapping {
        kind: "vxlan",
        wrap: |id, packet| [&[8, 0, 0, 0][..], &vni(id), &frame(packet)].concat(),
        carrier: Carrier::Port(4789),
        has_id: true,
    },
    Wrapping {
        kind: "vxlan",
        wrap: |id, packet| [&[8, 0, 0, 0][..], &vni(id), &frame(packet)].concat(),
        carrier: Carrier::Port(8472),
        has_id: true,
    },
    Wrapping {
        kind: "geneve",
        wrap: |id, packet| [&[2, 0, 0x65, 0x58][..], &vni(id), &[1; 8], &frame(packet)].concat(),
        carrier: Carrier::Port(6081),
        has_id: true,
    },
    Wrapping {
        kind: "geneve",
        wrap: |id, packet| [&[0, 0], &kind(packet)[..], &vni(id), packet].concat(),
        carrier: Carrier::Port(6081),
        has_id: true,
    },
    Wrapping {
        kind: "capwap",
        wrap: |_, packet| {
            let snap = [&[0xaa, 0xaa, 3, 0, 0, 0][..], &kind(packet)].concat();
            let frame = [&[8, 1, 0, 0][..], &[2; 18], &[0; 2]].concat();
            // Two words of header, 802.11 in its own format; then without.
            [&[0, 0x10, 3, 0][..], &[0; 4], &frame, &snap, packet].concat()
        },
        carrier: Carrier::Port(5247),
        has_id: false,
    },
    Wrapping {
        kind: "l2tp",
        wrap: |id, packet| {
            let protocol: u8 = if packet[0] >> 4 == 6 { 0x57 } else { 0x21 };
            let length = (packet.len() as u16 + 12).to_be_bytes();
            let header = [&[0x40, 2][..], &length, &id.to_be_bytes()];
            [&header.concat()[..], &[0xff, 3, 0, protocol], packet].concat()
        },
        carrier: Carrier::Port(1701),
        has_id: true,
    },
    Wrapping {
        kind: "mpls",
        wrap: |id, packet| {
            let stack = [
                (77u32 << 12).to_be_bytes(),
                (id << 12 | 0x1ff).to_be_bytes(),
            ];
            [&[2; 12][..], &[0x88, 0x47], stack.as_flattened(), packet].concat()
        },
        carrier: Carrier::Frame,
        has_id: true,
    },
    Wrapping {
        kind: "pppoe",
        wrap: |id, packet| {
            let protocol: u8 = if packet[0] >> 4 == 6 { 0x57 } else { 0x21 };
            let length = (packet.len() as u16 + 2).to_be_bytes();
            let header = [
                &[0x88, 0x64, 0x11, 0][..],
                &(id as u16).to_be_bytes(),
                &length,
            ];
            [&[2; 12][..], &header.concat(), &[0, protocol], packet].concat()
        },
        carrier: Carrier::Frame,
        has_id: true,
    },
];

fn gtp_u(id: u32, flags: u8, after: &[u8], packet: &[u8]) -> Vec<u8> {
    let length = (after.len() + packet.len()) as u16;
    let header = [&[flags, 255][..], &length.to_be_bytes(), &id.to_be_bytes()];
    [&header.concat(), after, packet].concat()
}

impl Wrapping {
    fn of(&self, of_client: bool, id: u32, packet: &[u8]) -> Vec<u8> {
        let content = (self.wrap)(id, packet);
        match self.carrier {
            Carrier::Frame => content,
            carrier => ethernet(&[], &wrapped(carrier, of_client, &content)),
        }
    }
}

fn send(run: &mut Run, frame: &[u8]) {
    let packet = Packet {
        time_ns: run.now_ns,
        link: LinkType::Ethernet,
        length: frame.len(),
        data: frame,
    };
    run.exporter.packet(&packet).unwrap();
}

#[test]
fn packets_in_tunnels_are_of_flows_in_both_directions() {
    for [client, server] in [
        [CLIENT, SERVER],
        ["[2001:db8::1]:40000", "[2001:db8::2]:443"],
    ] {
        for wrapping in &WRAPPINGS {
            let [from, to] = [client, server].map(address);
            let is_v6 = from.is_ipv6();
            if is_v6 && wrapping.kind == "ipip" {
                continue;
            }
            let mut run = Run::new();
            send(&mut run, &wrapping.of(true, 5, &udp(from, to, b"query")));
            send(
                &mut run,
                &wrapping.of(false, 5, &udp(to, from, b"the answer")),
            );
            send(&mut run, &wrapping.of(true, 5, &udp(from, to, b"query")));
            let (records, statistics) = run.finish();
            let [record] = &records[..] else {
                panic!("{}: {records:?} {statistics:?}", wrapping.kind)
            };
            assert_eq!((record.client.packets, record.server.packets), (2, 1));
            assert_eq!(record.server.payload_bytes, 10);
            let header = if is_v6 { 48 } else { 28 };
            assert_eq!(record.server.bytes, header + 10, "only the inner packet");
            let id = wrapping.has_id.then(|| Box::from("5"));
            let [outer_client, outer_server] = match wrapping.carrier {
                Carrier::Frame => [None, None],
                _ => OUTER.map(|text| Some(text.parse().unwrap())),
            };
            let tunnel = TunnelRecord {
                kinds: wrapping.kind.into(),
                client_ip: outer_client,
                server_ip: outer_server,
                client_ids: id.clone(),
                server_ids: id,
            };
            assert_eq!(record.tunnel.as_deref(), Some(&tunnel));
        }
    }
}

#[test]
fn both_directions_of_a_tunnel_may_have_identifiers_of_their_own() {
    for wrapping in &WRAPPINGS {
        if !["gtpu", "l2tp", "mpls", "gre"].contains(&wrapping.kind) || !wrapping.has_id {
            continue;
        }
        let [from, to] = [CLIENT, SERVER].map(address);
        let mut run = Run::new();
        // The same addresses in two tunnels, whose ends chose all four identifiers.
        for (of_client, id) in [
            (true, 1),
            (true, 3),
            (false, 2),
            (false, 4),
            (false, 2),
            (true, 3),
            (true, 1),
            (false, 4),
        ] {
            let (from, to) = if of_client { (from, to) } else { (to, from) };
            send(
                &mut run,
                &wrapping.of(of_client, id, &udp(from, to, b"content")),
            );
        }
        let records = run.records();
        let ids: Vec<_> = records
            .iter()
            .map(|record| {
                assert_eq!((record.client.packets, record.server.packets), (2, 2));
                let tunnel = record.tunnel.as_deref().unwrap();
                (tunnel.client_ids.as_deref(), tunnel.server_ids.as_deref())
            })
            .collect();
        let expected = [(Some("1"), Some("2")), (Some("3"), Some("4"))];
        assert_eq!(ids, expected, "{}", wrapping.kind);
    }
}

#[test]
fn vlans_and_identifiers_of_tunnels_tell_flows_apart() {
    let packet = udp(address(CLIENT), address(SERVER), b"query");
    let mut frames: Vec<_> = [&[0x8100][..], &[0x88a8, 0x8100], &[]]
        .iter()
        .map(|tags| ethernet(tags, &packet))
        .collect();
    let mut other = ethernet(&[0x8100], &packet);
    other[15] = 43;
    frames.push(other);
    for wrapping in WRAPPINGS.iter().filter(|wrapping| wrapping.has_id) {
        frames.push(wrapping.of(true, 1, &packet));
        frames.push(wrapping.of(true, 2, &packet));
    }
    let mut run = Run::new();
    for _ in 0..3 {
        for frame in &frames {
            send(&mut run, frame);
        }
    }
    let records = run.records();
    // Two kinds of wrapping of GRE, GTP-U and Geneve are the same tunnel; VXLAN is by its ports, too.
    assert!(records.iter().all(|record| record.client.packets % 3 == 0));
    let mut seen: Vec<_> = records
        .iter()
        .map(|record| {
            let tunnel = record
                .tunnel
                .as_deref()
                .map(|t| (t.kinds.clone(), t.client_ids.clone()));
            (record.vlan.clone(), tunnel)
        })
        .collect();
    let number = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), number, "no two flows have the same tunnel");
    let vlans: Vec<_> = seen
        .iter()
        .filter_map(|(vlan, _)| vlan.as_deref())
        .collect();
    assert_eq!(vlans, ["42", "42/42", "43"]);
}

#[test]
fn tunnels_in_tunnels_are_opened_to_a_limit() {
    let by_kind = |kind| {
        WRAPPINGS
            .iter()
            .find(|wrapping| wrapping.kind == kind)
            .unwrap()
    };
    let (gtp, ipip) = (by_kind("gtpu"), by_kind("ipip"));
    let [from, to] = [CLIENT, SERVER].map(address);
    for depth in 1..12 {
        let mut packet = udp(from, to, b"query");
        for _ in 1..depth {
            packet = wrapped(ipip.carrier, true, &packet);
        }
        let frame = gtp.of(true, 7, &packet);
        let mut run = Run::new();
        send(&mut run, &frame);
        let (records, statistics) = run.finish();
        if depth > crate::limits::MAX_LAYERS {
            assert_eq!(statistics.skipped.tunnel, 1);
            continue;
        }
        let tunnel = records[0].tunnel.as_deref().unwrap();
        let kinds = format!("gtpu{}", "/ipip".repeat(depth - 1));
        assert_eq!(*tunnel.kinds, *kinds);
        let ids = format!("7{}", "/".repeat(depth - 1));
        assert_eq!(tunnel.client_ids.as_deref(), Some(&*ids));
    }
}

#[test]
fn datagrams_to_ports_of_tunnels_without_a_packet_are_of_their_own_flow() {
    let [from, to] = ["172.16.0.1:50000", "172.16.0.2:1"].map(address);
    let packet = udp(address(CLIENT), address(SERVER), b"query");
    for (port, payload) in [
        (2152, vec![0x32, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]),
        (2152, gtp_u(1, 0x30, &[], &[0; 30])),
        (2152, gtp_u(1, 0x34, &[0, 0, 0, 0x85, 0], &[])),
        (2152, gtp_u(1, 0x30, &[], &packet)[..30].to_vec()),
        (4789, b"plain".to_vec()),
        (4789, [&[8, 0, 0, 0, 0, 0, 1, 0][..], &[0; 60]].concat()),
        (6081, vec![0x3f; 70]),
        (5247, vec![1, 0, 0, 0, 5]),
        (1701, vec![0xc8, 2, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let mut run = Run::new();
        run.packet(&udp(from, (to.ip(), port).into(), &payload));
        let records = run.records();
        assert_eq!(records.len(), 1, "{port}: {payload:x?}");
        assert_eq!(
            (records[0].server.port, records[0].tunnel.is_none()),
            (port, true)
        );
    }
}

#[test]
fn a_packet_counts_once_though_its_tunnel_is_fragmented() {
    let [from, to] = [CLIENT, SERVER].map(address);
    let inner = udp(from, to, &[7; 1400]);
    for wrapping in WRAPPINGS
        .iter()
        .filter(|w| !matches!(w.carrier, Carrier::Frame))
    {
        let outer = wrapped(wrapping.carrier, true, &(wrapping.wrap)(5, &inner));
        let mut run = Run::new();
        for (start, end) in [(0, 800), (800, outer.len() - 20)] {
            let mut fragment = [&outer[..20], &outer[20 + start..20 + end]].concat();
            let length = fragment.len() as u16;
            fragment[2..4].copy_from_slice(&length.to_be_bytes());
            let field = (start as u16 / 8) | u16::from(start == 0) << 13;
            fragment[6..8].copy_from_slice(&field.to_be_bytes());
            run.packet(&fragment);
        }
        let (records, statistics) = run.finish();
        let [record] = &records[..] else {
            panic!("{}: {statistics:?}", wrapping.kind)
        };
        assert_eq!(
            (record.client.packets, record.client.payload_bytes),
            (1, 1400)
        );
        assert_eq!(statistics.skipped.tunnel_fragment, 1, "{}", wrapping.kind);
    }
}

#[test]
fn fragments_in_tunnels_are_of_the_flow_of_their_first() {
    let gtp = WRAPPINGS
        .iter()
        .find(|wrapping| wrapping.kind == "gtpu")
        .unwrap();
    let fragment = |offset: u16, more: bool| {
        let mut packet = udp(address(CLIENT), address(SERVER), &[0; 92]);
        let field = (offset / 8) | (u16::from(more) << 13);
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        packet
    };
    let mut run = Run::new();
    send(&mut run, &gtp.of(true, 1, &fragment(0, true)));
    send(&mut run, &gtp.of(true, 2, &fragment(0, true)));
    send(&mut run, &gtp.of(true, 1, &fragment(100, false)));
    send(&mut run, &gtp.of(true, 3, &fragment(100, false)));
    let (records, statistics) = run.finish();
    let packets: Vec<_> = records.iter().map(|record| record.client.packets).collect();
    assert_eq!(packets, [2, 1]);
    assert_eq!(statistics.skipped.lone_fragment, 1);
}

#[test]
fn protected_data_of_capwap_is_counted() {
    let dtls = [&[1, 0, 0, 0, 23, 254, 253][..], &[0; 50]].concat();
    let mut run = Run::new();
    run.packet(&wrapped(Carrier::Port(5247), true, &dtls));
    let (records, statistics) = run.finish();
    assert_eq!((records.len(), statistics.skipped.protected), (0, 1));
}

#[test]
fn packets_of_an_aggregate_are_of_their_flows() {
    let packets = [40000u16, 40001, 40002].map(|port| {
        udp(
            address(&format!("10.0.0.1:{port}")),
            address(SERVER),
            &[1; 21],
        )
    });
    let mut frame = [&[0x88, 1, 0, 0][..], &[2; 18], &[0; 2], &[0x80, 0]].concat();
    for packet in &packets {
        let content = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], packet].concat();
        frame.extend([3; 12]);
        frame.extend((content.len() as u16).to_be_bytes());
        frame.extend(&content);
        frame.resize(26 + (frame.len() - 26).next_multiple_of(4), 0);
    }
    let mut run = Run::new();
    let packet = Packet {
        time_ns: run.now_ns,
        link: LinkType::Wifi,
        length: frame.len(),
        data: &frame,
    };
    run.exporter.packet(&packet).unwrap();
    let (records, statistics) = run.finish();
    let ports: Vec<_> = records.iter().map(|record| record.client.port).collect();
    assert_eq!(ports, [40000, 40001, 40002]);
    assert_eq!(statistics.packets, 3);
}

proptest! {
    #[test]
    fn damaged_tunnels_are_counted_once_and_forgotten(
        packets in prop::collection::vec(
            (
                prop::sample::select((0..WRAPPINGS.len()).collect::<Vec<_>>()),
                any::<bool>(),
                0u32..4,
                prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
                any::<prop::sample::Index>(),
            ),
            1..80,
        ),
        max_flows in 1usize..6,
    ) {
        let [from, to] = [CLIENT, SERVER].map(address);
        let options = Options { max_flows, ..Options::default() };
        let mut run = Run::with(options, Sources::default());
        for (wrapping, of_client, id, changes, cut) in packets {
            let (from, to) = if of_client { (from, to) } else { (to, from) };
            let mut frame = WRAPPINGS[wrapping].of(of_client, id, &udp(from, to, b"content"));
            for (index, byte) in &changes {
                let at = index.index(frame.len());
                frame[at] = *byte;
            }
            if changes.len() > 3 {
                frame.truncate(cut.index(frame.len() + 1));
            }
            run.after(1_000_000);
            send(&mut run, &frame);
            // Each flow has two paths at most, and what they share.
            prop_assert!(run.exporter.table.paths().len() <= 3 * max_flows);
        }
        run.exporter.end_all().unwrap();
        prop_assert_eq!(run.exporter.table.paths().len(), 0);
        let (records, statistics) = run.finish();
        let of_flows: u64 = records.iter().map(|record| record.client.packets + record.server.packets).sum();
        prop_assert_eq!(
            of_flows + statistics.skipped.total() + statistics.malformed.total(),
            statistics.packets
        );
    }
}
