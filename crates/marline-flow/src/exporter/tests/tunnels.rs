//! Packets in tunnels belong to flows, which are identified by their tunnels, too.

use super::*;
use crate::record::TunnelRecord;

mod mutations;

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

const WRAPPINGS: [Wrapping; 28] = [
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
    // Information in the format of a draft: the binding, and then its length.
    Wrapping {
        kind: "capwap",
        wrap: |_, packet| {
            let snap = [&[0xaa, 0xaa, 3, 0, 0, 0][..], &kind(packet)].concat();
            let frame = [&[8, 1, 0, 0][..], &[2; 18], &[0; 2]].concat();
            let header = [0, 0x20, 3, 0x20, 0, 0, 0, 0, 1, 4, 0xed, 0x4d, 0, 0, 0, 0];
            [&header[..], &frame, &snap, packet].concat()
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
        wrap: |id, packet| [&[2; 12][..], &[0x88, 0x47], &labels(id), packet].concat(),
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
    Wrapping {
        kind: "vxlan",
        wrap: |id, packet| {
            let protocol = if packet[0] >> 4 == 6 { 2 } else { 1 };
            [&[0x0c, 0, 0, protocol][..], &vni(id), packet].concat()
        },
        carrier: Carrier::Port(4790),
        has_id: true,
    },
    // A group policy.
    Wrapping {
        kind: "vxlan",
        wrap: |id, packet| [&[0x88, 8, 1, 2][..], &vni(id), &frame(packet)].concat(),
        carrier: Carrier::Port(4789),
        has_id: true,
    },
    Wrapping {
        kind: "gre",
        wrap: |_, packet| [&[0, 0, 0x65, 0x58][..], &frame(packet)].concat(),
        carrier: Carrier::Port(4754),
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
        carrier: Carrier::Port(4754),
        has_id: true,
    },
    Wrapping {
        kind: "mpls",
        wrap: |id, packet| [&labels(id)[..], packet].concat(),
        carrier: Carrier::Port(6635),
        has_id: true,
    },
    // A frame after a control word.
    Wrapping {
        kind: "mpls",
        wrap: |id, packet| [&labels(id)[..], &[0; 4], &frame(packet)].concat(),
        carrier: Carrier::Protocol(137),
        has_id: true,
    },
    Wrapping {
        kind: "nsh",
        wrap: |id, packet| {
            let protocol = if packet[0] >> 4 == 6 { 2 } else { 1 };
            let header = [&[0x0f, 0xc6, 1, protocol][..], &vni(id), &[7; 16]].concat();
            [&[2; 12][..], &[0x89, 0x4f], &header, packet].concat()
        },
        carrier: Carrier::Frame,
        has_id: true,
    },
    Wrapping {
        kind: "ayiya",
        wrap: |_, packet| {
            let next = if packet[0] >> 4 == 6 { 41 } else { 4 };
            [&[0x41, 0x52, 0x11, next][..], &[5; 40], packet].concat()
        },
        carrier: Carrier::Port(5072),
        has_id: false,
    },
    Wrapping {
        kind: "teredo",
        wrap: |_, packet| packet.to_vec(),
        carrier: Carrier::Port(3544),
        has_id: false,
    },
    // With authentication, and where the packet came from.
    Wrapping {
        kind: "teredo",
        wrap: |_, packet| [&[0, 1, 0, 2][..], &[7; 11], &[0; 8], packet].concat(),
        carrier: Carrier::Port(3544),
        has_id: false,
    },
];

fn labels(id: u32) -> Vec<u8> {
    let stack = [
        (77u32 << 12 | 64).to_be_bytes(),
        (id << 12 | 0x1ff).to_be_bytes(),
    ];
    stack.concat()
}

fn gtp_u(id: u32, flags: u8, after: &[u8], packet: &[u8]) -> Vec<u8> {
    let length = (after.len() + packet.len()) as u16;
    let header = [&[flags, 255][..], &length.to_be_bytes(), &id.to_be_bytes()];
    [&header.concat(), after, packet].concat()
}

impl Wrapping {
    /// Whether it can carry a packet: some tunnels are for one version of IP.
    fn carries(&self, packet: &[u8]) -> bool {
        match self.kind {
            "ipip" => packet[0] >> 4 == 4,
            "teredo" => packet[0] >> 4 == 6,
            _ => true,
        }
    }

    fn of(&self, of_client: bool, id: u32, packet: &[u8]) -> Vec<u8> {
        let content = (self.wrap)(id, packet);
        match self.carrier {
            Carrier::Frame => content,
            carrier => ethernet(&[], &wrapped(carrier, of_client, &content)),
        }
    }
}

/// A message of DNS: an identifier, flags, numbers of records, a name, a type and class, and records or options.
fn dns() -> impl Strategy<Value = Vec<u8>> {
    let flags = prop_oneof![
        Just(0u16),
        Just(0x0100),
        Just(0x8100),
        Just(0x8180),
        (0u16..32).prop_map(|bits| 0x8000 | bits << 5),
        any::<u16>().prop_map(|bits| bits & 0x87ff),
    ];
    let name = prop::collection::vec("[a-z0-9_-]{1,20}", 1..6);
    let kind = prop::sample::select(vec![1u16, 2, 6, 12, 15, 16, 28, 33, 43, 48, 65, 255]);
    let record = prop::collection::vec(any::<u8>(), 4..40);
    (
        any::<u16>(),
        flags,
        (0u16..3, 0u16..3),
        name,
        kind,
        prop::collection::vec(record, 0..6),
        any::<bool>(),
    )
        .prop_map(
            |(id, flags, (authorities, additional), name, kind, records, is_cut)| {
                // An answer that does not fit has no records.
                let records = if is_cut { &records[..0] } else { &records[..] };
                let numbers = [id, flags, 1, records.len() as u16, authorities, additional];
                let mut message: Vec<u8> = numbers.into_iter().flat_map(u16::to_be_bytes).collect();
                for label in name {
                    message.push(label.len() as u8);
                    message.extend(label.bytes());
                }
                message.push(0);
                message.extend([kind.to_be_bytes(), 1u16.to_be_bytes()].concat());
                for record in records {
                    message.extend([0xc0, 0x0c]);
                    message.extend([kind.to_be_bytes(), 1u16.to_be_bytes()].concat());
                    message.extend([0, 0, 1, 44]);
                    message.extend((record.len() as u16).to_be_bytes());
                    message.extend(record);
                }
                message
            },
        )
}

/// Ports of tunnels, which a resolver may use, too.
const PORTS: [u16; 11] = [
    1701, 2152, 3544, 4754, 4789, 4790, 5072, 5247, 6081, 6635, 8472,
];

proptest! {
    #[test]
    fn a_message_of_dns_is_of_its_own_flow_on_every_port(message in dns(), is_query in any::<bool>()) {
        for port in PORTS {
            let mut ends = [address(&format!("172.16.0.1:{port}")), address("172.16.0.2:53")];
            if !is_query {
                ends.reverse();
            }
            let mut run = Run::new();
            run.packet(&udp(ends[0], ends[1], &message));
            let (records, statistics) = run.finish();
            prop_assert_eq!(records.len(), 1, "{}: {:?}", port, statistics);
            prop_assert!(records[0].tunnel.is_none());
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
        // That of a client of Teredo.
        ["[2001:0:c000:201::1]:40000", "[2001:db8::2]:443"],
    ] {
        for wrapping in &WRAPPINGS {
            let [from, to] = [client, server].map(address);
            let is_v6 = from.is_ipv6();
            let query = udp(from, to, b"query");
            if !wrapping.carries(&query) {
                continue;
            }
            let mut run = Run::new();
            send(&mut run, &wrapping.of(true, 5, &query));
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
        if !["gtpu", "l2tp", "mpls", "gre", "nsh"].contains(&wrapping.kind) || !wrapping.has_id {
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
                .map(|t| (t.kinds.clone(), t.client_ids.clone(), t.client_ip));
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
fn vxlan_gpe_carries_chains_and_labels() {
    let packet = udp(address(CLIENT), address(SERVER), b"query");
    let chain = |protocol| [0x0f, 0xc2, 2, protocol, 0, 0, 8, 255];
    for (inner, kinds, ids) in [
        ([&labels(9)[..], &packet].concat(), "vxlan/mpls", "7/9"),
        (
            [&chain(3)[..], &frame(&packet)].concat(),
            "vxlan/nsh",
            "7/8",
        ),
        (
            [&chain(5)[..], &labels(9), &packet].concat(),
            "vxlan/nsh/mpls",
            "7/8/9",
        ),
    ] {
        let protocol = if kinds.contains("nsh") { 4 } else { 5 };
        let content = [&[0x0c, 0, 0, protocol][..], &vni(7), &inner].concat();
        let mut run = Run::new();
        run.packet(&wrapped(Carrier::Port(4790), true, &content));
        let (records, statistics) = run.finish();
        let [record] = &records[..] else {
            panic!("{kinds}: {statistics:?}")
        };
        let tunnel = record.tunnel.as_deref().unwrap();
        assert_eq!(
            (&*tunnel.kinds, tunnel.client_ids.as_deref()),
            (kinds, Some(ids))
        );
    }
}

#[test]
fn tshark_finds_the_same_packet_in_each_tunnel() {
    let mut packets = Vec::new();
    for wrapping in &WRAPPINGS {
        for [client, server] in [
            [CLIENT, SERVER],
            ["[2001:0:c000:201::1]:40000", "[2001:db8::2]:443"],
        ] {
            let packet = udp(address(client), address(server), b"query");
            // Tshark opens AYIYA only where it prints it, and 802.11 in CAPWAP by a setting.
            let is_known = !["ayiya", "capwap"].contains(&wrapping.kind);
            if is_known && wrapping.carries(&packet) {
                packets.push(wrapping.of(true, 5, &packet));
            }
        }
    }
    let pieces: Vec<_> = packets.iter().map(|data| (START, &data[..])).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tunnels.pcap");
    std::fs::write(&path, pcap(1, &pieces)).unwrap();
    let mut tshark = std::process::Command::new("tshark");
    tshark.arg("-r").arg(&path);
    tshark.args("-d udp.port==8472,vxlan".split(' '));
    tshark.args(
        "-n -T fields -E occurrence=l -e udp.srcport -e udp.dstport -e udp.length".split(' '),
    );
    let Ok(output) = tshark.output() else {
        println!("skipped: tshark is not installed");
        return;
    };
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), packets.len());
    for (line, packet) in lines.lines().zip(&packets) {
        assert_eq!(line, "40000\t443\t13", "{packet:x?}");
    }
}

#[test]
fn keep_alives_of_capwap_are_counted() {
    let keep_alive = [
        &[0, 0x10, 2, 8, 0, 0, 0, 0, 0, 22, 0, 35, 0, 16][..],
        &[7; 16],
    ];
    let mut run = Run::new();
    run.packet(&wrapped(Carrier::Port(5247), true, &keep_alive.concat()));
    let (records, statistics) = run.finish();
    assert_eq!((records.len(), statistics.skipped.tunnel), (0, 1));
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
        // Protocols of PPP that there are not, and a length beyond the datagram.
        (1701, vec![0, 2, 0, 1, 0, 1, 0, 0x20, 9, 9]),
        (1701, vec![0x40, 2, 9, 9, 0, 1, 0, 1, 0xff, 3, 0, 0x21]),
        // A frame in a VLAN has Ethernet before it.
        (
            6081,
            [&[0, 0, 0x81, 0, 0, 0, 1, 0, 0, 1, 8, 0][..], &packet].concat(),
        ),
        (4754, [&[0, 0, 0x81, 0, 0, 1, 8, 0][..], &packet].concat()),
        (4754, [&[0, 1, 8, 0][..], &packet].concat()),
        (4790, [&[0x0d, 0, 0, 1, 0, 0, 1, 0][..], &packet].concat()),
        (5247, vec![0, 0x10, 2, 8, 0, 0, 0, 0, 0, 20, 0, 9, 0, 16]),
        // Nothing of Teredo has neither end at a client of it.
        (
            3544,
            udp(address("[2001:db8::1]:1"), address("[2001:db8::2]:2"), b"x"),
        ),
        (3544, packet.clone()),
        // An operation without a packet.
        (
            5072,
            [&[0x41, 0x52, 0x10, 4][..], &[5; 40], &packet].concat(),
        ),
        (6635, [&[0; 32][..], &labels(1), &packet].concat()),
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
        .filter(|w| !matches!(w.carrier, Carrier::Frame) && w.carries(&inner))
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
