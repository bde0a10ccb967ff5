//! QUIC connections with moving clients, in nested tunnels, whose frames are damaged and cut.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use marline_proto::testing::{Datagram, Pair};
use prop::sample::Index;

use super::*;

/// The datagrams of both ends of a connection.
static CONNECTION: LazyLock<Vec<Datagram>> = LazyLock::new(|| {
    let mut pair = Pair::new();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    pair.network.filter = Some(Box::new(move |_, datagram| {
        seen.lock().unwrap().push(datagram.clone());
        false
    }));
    pair.establish();
    pair.drive(Duration::from_millis(100));
    std::mem::take(&mut *sent.lock().unwrap())
});

/// A packet that an exporter sees.
#[derive(Clone, Debug)]
struct Seen {
    content: Content,
    /// Places of [`WRAPPINGS`], the innermost first.
    tunnels: Vec<usize>,
    tags: usize,
    id: u32,
    damage: Damage,
    after_ms: u64,
}

#[derive(Clone, Debug)]
enum Content {
    /// A datagram of the connection, whose client is at `place`.
    Quic { datagram: Index, place: u8 },
    /// A segment of TCP with flags.
    Tcp { of_client: bool, flags: u8 },
    /// The first fragment of a datagram, or a later one.
    Fragment { is_first: bool },
}

/// Bytes that are not what was sent.
#[derive(Clone, Debug)]
enum Damage {
    Nothing,
    Changed(Vec<(Index, u8)>),
    /// The packet is shorter.
    Shortened(Index),
    /// Fewer bytes were captured.
    Cut(Index),
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        4 => (any::<Index>(), 0u8..4).prop_map(|(datagram, place)| Content::Quic { datagram, place }),
        1 => (any::<bool>(), 0u8..32).prop_map(|(of_client, flags)| Content::Tcp { of_client, flags }),
        1 => any::<bool>().prop_map(|is_first| Content::Fragment { is_first }),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => Just(Damage::Nothing),
        2 => prop::collection::vec((any::<Index>(), any::<u8>()), 1..6).prop_map(Damage::Changed),
        1 => any::<Index>().prop_map(Damage::Shortened),
        1 => any::<Index>().prop_map(Damage::Cut),
    ]
}

fn seen() -> impl Strategy<Value = Seen> {
    let tunnels = prop::collection::vec(0..WRAPPINGS.len(), 0..5);
    let after_ms = prop_oneof![8 => 0u64..50, 1 => 9_000u64..12_000, 1 => 100_000u64..400_000];
    (content(), tunnels, 0usize..3, 0u32..3, damage(), after_ms).prop_map(
        |(content, tunnels, tags, id, damage, after_ms)| Seen {
            content,
            tunnels,
            tags,
            id,
            damage,
            after_ms,
        },
    )
}

impl Seen {
    /// The packet without tunnels, and whether the client sends it.
    fn inner(&self) -> (bool, Vec<u8>) {
        let [client, server] = [CLIENT, SERVER].map(address);
        match &self.content {
            Content::Quic { datagram, place } => {
                let datagram = datagram.get(&CONNECTION);
                let of_client = datagram.source == CONNECTION[0].source;
                let client = (client.ip(), 40_000 + u16::from(*place)).into();
                let [from, to] = if of_client {
                    [client, server]
                } else {
                    [server, client]
                };
                (of_client, udp(from, to, &datagram.bytes))
            }
            Content::Tcp { of_client, flags } => {
                let [from, to] = if *of_client {
                    [client, server]
                } else {
                    [server, client]
                };
                let segment = TestSegment {
                    from,
                    to,
                    flags: *flags,
                    sequence: self.id,
                    acknowledgment: 1,
                    payload: b"GET / HTTP/1.1\r\n",
                };
                (*of_client, segment.packet())
            }
            Content::Fragment { is_first } => {
                let mut packet = udp(client, server, &[0; 92]);
                let field: u16 = if *is_first { 0x2000 } else { 12 };
                packet[6..8].copy_from_slice(&field.to_be_bytes());
                (true, packet)
            }
        }
    }

    fn frame(&self) -> Vec<u8> {
        let (of_client, mut packet) = self.inner();
        for number in &self.tunnels {
            let wrapping = &WRAPPINGS[*number];
            if !wrapping.carries(&packet) {
                continue;
            }
            let content = (wrapping.wrap)(self.id, &packet);
            packet = match wrapping.carrier {
                Carrier::Frame => {
                    let content = [&[8, 0, 0, 0][..], &vni(self.id), &content].concat();
                    wrapped(Carrier::Port(4789), of_client, &content)
                }
                carrier => wrapped(carrier, of_client, &content),
            };
        }
        ethernet(&[0x88a8, 0x8100][..self.tags], &packet)
    }
}

#[test]
fn a_client_moves_within_tunnels_whose_ends_choose_identifiers() {
    let start = CONNECTION[0].source;
    let data = |of_client: bool| {
        let is_data = |datagram: &&Datagram| {
            datagram.bytes[0] >> 7 == 0 && (datagram.source == start) == of_client
        };
        let datagram = CONNECTION.iter().rev().find(is_data).unwrap();
        datagram.bytes.clone()
    };
    let [client, server] = [CLIENT, SERVER].map(address);
    let place = |port| (client.ip(), port).into();
    for wrapping in WRAPPINGS.iter().filter(|wrapping| wrapping.has_id) {
        let mut run = Run::new();
        let mut see = |of_client: bool, id: u32, client, bytes: &[u8]| {
            let [from, to] = if of_client {
                [client, server]
            } else {
                [server, client]
            };
            // Some kinds have the same identifier in both directions.
            let is_one_way = ["gtpu", "l2tp", "mpls", "gre", "nsh"].contains(&wrapping.kind);
            let id = if of_client || !is_one_way {
                id
            } else {
                id + 10
            };
            send(&mut run, &wrapping.of(of_client, id, &udp(from, to, bytes)));
        };
        for datagram in CONNECTION.iter() {
            see(datagram.source == start, 1, place(40_000), &datagram.bytes);
        }
        for port in [40_001, 40_002, 40_000] {
            see(true, 1, place(port), &data(true));
            see(false, 1, place(port), &data(false));
            see(false, 1, place(port), &data(false));
        }
        // An answer in another tunnel is another flow's.
        see(false, 2, place(40_001), &data(false));
        let records = run.records();
        let moved = &records[0];
        assert_eq!(moved.address_changes, 3, "{}", wrapping.kind);
        let all = moved.client.packets + moved.server.packets;
        assert_eq!(all as usize, CONNECTION.len() + 9, "{}", wrapping.kind);
        assert_eq!(records.len(), 2, "{}", wrapping.kind);
    }
}

proptest! {
    #[test]
    fn whatever_is_seen_is_counted_once_and_forgotten(
        packets in prop::collection::vec(seen(), 1..120),
        max_flows in 1usize..8,
        active_s in prop::option::of(1u64..100),
    ) {
        let timeouts = Timeouts {
            active_ns: active_s.map(|seconds| seconds * SECOND),
            ..Timeouts::default()
        };
        let mut run = Run::with(Options { max_flows, timeouts }, Sources::default());
        for seen in &packets {
            let mut frame = seen.frame();
            let mut captured = frame.len();
            match &seen.damage {
                Damage::Nothing => {}
                Damage::Changed(changes) => {
                    for (index, byte) in changes {
                        *index.get_mut(&mut frame) = *byte;
                    }
                }
                Damage::Shortened(length) => {
                    frame.truncate(length.index(frame.len()));
                    captured = frame.len();
                }
                Damage::Cut(length) => captured = length.index(frame.len()),
            }
            run.after(seen.after_ms * 1_000_000);
            let packet = Packet {
                time_ns: run.now_ns,
                link: LinkType::Ethernet,
                length: frame.len(),
                data: &frame[..captured],
            };
            run.exporter.packet(&packet).unwrap();
            prop_assert!(run.exporter.active_flows() <= max_flows);
        }
        run.exporter.end_all().unwrap();
        prop_assert!(run.exporter.table.is_empty());
        prop_assert_eq!(run.exporter.inspector.held, 0);
        let (records, statistics) = run.finish();
        let of_flows: u64 = records
            .iter()
            .map(|record| record.client.packets + record.server.packets)
            .sum();
        prop_assert_eq!(
            of_flows + statistics.skipped.total() + statistics.malformed.total(),
            statistics.packets
        );
        for record in &records {
            prop_assert!(record.start_ns <= record.end_ns);
            prop_assert!(record.client.payload_bytes <= record.client.bytes);
            prop_assert_eq!(record.http_version.is_some(), record.label_source.is_some());
        }
    }

    #[test]
    fn what_is_not_damaged_is_of_flows_in_its_tunnels(mut packets in prop::collection::vec(seen(), 1..40)) {
        let mut run = Run::new();
        let mut expected = 0;
        for seen in &mut packets {
            if matches!(seen.content, Content::Fragment { .. }) {
                continue;
            }
            send(&mut run, &seen.frame());
            expected += 1;
        }
        let (records, statistics) = run.finish();
        let of_flows: u64 = records
            .iter()
            .map(|record| record.client.packets + record.server.packets)
            .sum();
        // Too deep is nothing: four tunnels, each with Ethernet around it, and two tags have ten layers.
        prop_assert_eq!(of_flows + statistics.skipped.tunnel, expected);
        prop_assert_eq!(statistics.malformed.total(), 0);
    }
}
