use proptest::prelude::*;

use super::*;
use crate::capture::LinkType;
use crate::table::Timeouts;
use crate::testing::*;

mod labels;
mod tunnels;

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "192.0.2.1:443";

#[test]
fn a_connection_becomes_one_record_from_client_to_server() {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    run.after(SECOND);
    connection.send(&mut run, true, &[1; 300], 100);
    connection.send(&mut run, false, &[2; 1000], 500);
    run.after(SECOND / 2);
    connection.close(&mut run);
    let records = run.records();
    let [record] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(record.client.ip.to_string(), "10.0.0.1");
    assert_eq!((record.client.port, record.server.port), (40000, 443));
    assert_eq!((record.client.packets, record.server.packets), (7, 4));
    assert_eq!(
        (record.client.payload_bytes, record.server.payload_bytes),
        (300, 1000)
    );
    assert_eq!(
        (record.client.bytes, record.server.bytes),
        (7 * 40 + 300, 4 * 40 + 1000)
    );
    assert!(record.client.syn && record.client.ack && record.client.fin);
    assert!(record.server.syn && record.server.ack && record.server.fin);
    assert_eq!(record.start_ns, START);
    assert_eq!(record.duration_s(), 1.5);
    assert_eq!(record.end_reason, EndReason::Fin);
    assert_eq!(record.client_source, ClientSource::Syn);
    assert_eq!(record.http_version, None);
}

#[test]
fn the_client_is_found_by_syn_then_content_then_port_then_first_packet() {
    let reset = |from, to| TestSegment {
        from: address(from),
        to: address(to),
        flags: flags::ACK,
        sequence: 1,
        acknowledgment: 0,
        payload: &[],
    };
    let hello = tls_record(&client_hello("a.example", &["h2"]));
    for (packets, client, source) in [
        // A server that answers a SYN which was not captured, from a high port.
        (
            vec![TestSegment {
                flags: flags::SYN | flags::ACK,
                ..reset("1.1.1.1:50000", "2.2.2.2:443")
            }],
            443,
            ClientSource::Syn,
        ),
        (
            vec![
                reset("1.1.1.1:443", "2.2.2.2:50000"),
                TestSegment {
                    payload: &hello,
                    ..reset("1.1.1.1:443", "2.2.2.2:50000")
                },
            ],
            443,
            ClientSource::Handshake,
        ),
        (
            vec![reset("1.1.1.1:443", "2.2.2.2:50000")],
            50000,
            ClientSource::Port,
        ),
        (
            vec![reset("1.1.1.1:8443", "2.2.2.2:50000")],
            50000,
            ClientSource::Port,
        ),
        (
            vec![reset("1.1.1.1:50001", "2.2.2.2:50000")],
            50001,
            ClientSource::First,
        ),
        (
            vec![reset("2.2.2.2:50000", "1.1.1.1:50001")],
            50000,
            ClientSource::First,
        ),
    ] {
        let mut run = Run::new();
        for packet in packets {
            run.packet(&packet.packet());
        }
        let record = run.records().pop().unwrap();
        assert_eq!((record.client.port, record.client_source), (client, source));
    }
}

#[test]
fn a_gap_longer_than_the_idle_timeout_splits_a_flow() {
    for (gap_s, flows) in [(299, 1), (301, 2)] {
        let mut run = Run::new();
        let mut connection = Connection::new(CLIENT, SERVER);
        connection.open(&mut run);
        run.after(gap_s * SECOND);
        connection.send(&mut run, true, b"x", 10);
        let records = run.records();
        assert_eq!(records.len(), flows, "after {gap_s} s");
        if flows == 2 {
            assert_eq!(records[0].end_reason, EndReason::Idle);
            assert_ne!(records[0].flow_id, records[1].flow_id);
        }
    }
}

#[test]
fn a_single_datagram_and_a_lone_syn_are_idle_after_ten_seconds() {
    let datagram = udp(address("10.0.0.1:5000"), address("10.0.0.2:53"), b"query");
    let syn = Connection::new(CLIENT, SERVER).segment(true, flags::SYN, &[]);
    for packet in [datagram, syn] {
        for (gap_s, flows) in [(10, 1), (11, 2)] {
            let mut run = Run::new();
            run.packet(&packet).after(gap_s * SECOND).packet(&packet);
            assert_eq!(run.records().len(), flows, "after {gap_s} s");
        }
    }
}

#[test]
fn idle_flows_are_written_while_others_continue() {
    let mut run = Run::new();
    Connection::new(CLIENT, SERVER).open(&mut run);
    let other = udp(address("10.0.0.9:5000"), address("10.0.0.2:443"), b"x");
    for _ in 0..310 {
        run.after(SECOND).packet(&other);
    }
    assert_eq!(run.exporter.active_flows(), 1);
    assert_eq!(run.exporter.statistics().records, 1);
}

#[test]
fn the_active_timeout_cuts_a_flow_into_parts_that_keep_its_labels() {
    let timeouts = Timeouts {
        active_ns: Some(60 * SECOND),
        ..Timeouts::default()
    };
    let options = Options {
        timeouts,
        ..Options::default()
    };
    let mut run = Run::with(options, Sources::default());
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    let hello = tls_record(&client_hello("a.example", &["h2", "http/1.1"]));
    connection.send(&mut run, true, &hello, 1000);
    connection.send(&mut run, false, &tls_record(&server_hello(&["h2"])), 1000);
    connection.send(&mut run, true, &tls12_finished(), 1000);
    connection.send(&mut run, false, &tls12_finished(), 1000);
    for _ in 0..13 {
        run.after(10 * SECOND);
        connection.send(&mut run, false, &[0; 10], 10);
    }
    let records = run.records();
    assert_eq!(
        records.iter().map(|record| record.part).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert!(records.iter().all(|record| record.flow_id == 1));
    assert!(
        records
            .iter()
            .all(|record| record.sni.as_deref() == Some("a.example"))
    );
    assert!(
        records
            .iter()
            .all(|record| record.http_version == Some("h2"))
    );
    assert!(records.iter().all(|record| record.client.port == 40000));
    let reasons: Vec<_> = records.iter().map(|record| record.end_reason).collect();
    assert_eq!(
        reasons,
        [EndReason::Active, EndReason::Active, EndReason::Capture]
    );
    assert!(!records[1].client.syn, "the SYN was in the first part");
}

#[test]
fn a_syn_after_the_end_of_a_connection_begins_another_flow() {
    let mut run = Run::new();
    for _ in 0..2 {
        let mut connection = Connection::new(CLIENT, SERVER);
        connection.open(&mut run);
        connection.close(&mut run);
        run.after(SECOND);
    }
    let records = run.records();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.client.packets == 4));
}

#[test]
fn a_syn_with_another_number_begins_another_flow_in_every_state() {
    let syn = |sequence| TestSegment {
        from: address(CLIENT),
        to: address(SERVER),
        flags: flags::SYN,
        sequence,
        acknowledgment: 0,
        payload: &[],
    };
    for answers in 0..4 {
        let mut run = Run::new();
        let mut connection = Connection::new(CLIENT, SERVER);
        run.packet(&connection.segment(true, flags::SYN, &[]));
        let rest = [
            connection.segment(false, flags::SYN | flags::ACK, &[]),
            connection.segment(true, flags::ACK, &[]),
            connection.segment(false, flags::RST | flags::ACK, &[]),
        ];
        for packet in &rest[..answers] {
            run.packet(packet);
        }
        // Repeated, it is of the same connection, after a reset, too.
        run.packet(&syn(1000).packet());
        run.packet(&syn(77).packet());
        let records = run.records();
        let packets: Vec<_> = records
            .iter()
            .map(|record| record.client.packets + record.server.packets)
            .collect();
        assert_eq!(packets, [answers as u64 + 2, 1]);
    }
}

#[test]
fn a_repeated_syn_of_an_open_connection_is_of_its_flow() {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    let again = Connection::new(CLIENT, SERVER).segment(true, flags::SYN, &[]);
    run.packet(&again);
    connection.send(&mut run, true, b"x", 1);
    assert_eq!(run.records().len(), 1);
}

#[test]
fn the_last_acknowledgment_after_a_reset_is_of_its_flow() {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    run.packet(&connection.segment(false, flags::RST, &[]));
    run.packet(&connection.segment(true, flags::ACK, &[]));
    let records = run.records();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].end_reason, EndReason::Reset);
    assert_eq!(records[0].client.packets, 3);
}

#[test]
fn a_flood_of_new_flows_evicts_them_and_not_established_ones() {
    let options = Options {
        max_flows: 100,
        ..Options::default()
    };
    let mut run = Run::with(options, Sources::default());
    let mut connection = Connection::new("10.0.0.1:40000", "192.0.2.1:443");
    connection.open(&mut run);
    for i in 0..10_000u32 {
        let from = format!("10.1.{}.{}:1234", i / 256 % 256, i % 256);
        let syn = Connection::new(&from, SERVER).segment(true, flags::SYN, &[]);
        run.after(1000).packet(&syn);
        assert!(run.exporter.active_flows() <= 100);
    }
    connection.send(&mut run, true, b"still there", 100);
    let (records, statistics) = run.finish();
    assert_eq!(records.len(), 10_001);
    assert_eq!(statistics.evicted, 10_001 - 100);
    let established: Vec<_> = records
        .iter()
        .filter(|record| record.client.packets > 1)
        .collect();
    assert_eq!(established.len(), 1);
    assert_eq!(established[0].client.packets, 3);
    assert_eq!(
        records
            .iter()
            .filter(|r| r.end_reason == EndReason::Evicted)
            .count(),
        9901
    );
}

#[test]
fn the_beginnings_of_a_flood_of_connections_take_bounded_memory() {
    let mut run = Run::new();
    let hello = tls_record(&client_hello("a.example", &["h2"]));
    for i in 0..20_000u32 {
        let from = format!("10.1.{}.{}:1234", i / 256 % 256, i % 256);
        let mut connection = Connection::new(&from, SERVER);
        let first = connection.segment(true, flags::ACK, &hello[..50]);
        // A gap makes the room for all bytes before it.
        let gap = connection.segment(true, flags::ACK, &[0; 20_000]);
        drop(gap);
        let last = connection.segment(true, flags::ACK, b"x");
        run.packet(&first).packet(&last);
    }
    assert!(run.exporter.inspector.held <= MAX_INSPECTED + (64 << 10));
    let (records, statistics) = run.finish();
    assert_eq!(records.len(), 20_000);
    assert!(statistics.uninspected > 0);
}

#[test]
fn fragments_are_of_the_flow_of_their_first() {
    let (from, to) = (address("10.0.0.1:5000"), address("10.0.0.2:443"));
    let fragment = |offset: u16, more: bool, id: u8| {
        let mut packet = udp(from, to, &[0; 92]);
        let field = (offset / 8) | (u16::from(more) << 13);
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        packet[5] = id;
        packet
    };
    let mut run = Run::new();
    run.packet(&fragment(0, true, 1))
        .packet(&fragment(100, true, 1))
        .packet(&fragment(200, false, 1))
        .packet(&fragment(100, false, 2));
    let (records, statistics) = run.finish();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].client.packets, 3);
    assert_eq!(records[0].client.bytes, 360);
    assert_eq!(records[0].client.payload_bytes, 92 + 100 + 100);
    assert_eq!(statistics.skipped.lone_fragment, 1);
}

#[test]
fn a_capture_of_an_earlier_time_shares_no_flows() {
    let mut run = Run::new();
    Connection::new(CLIENT, SERVER).open(&mut run);
    run.now_ns -= 3600 * SECOND;
    Connection::new(CLIENT, SERVER).open(&mut run);
    let (records, statistics) = run.finish();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.duration_s() == 0.0));
    assert_eq!(statistics.back_in_time, 1);
}

#[test]
fn every_packet_is_of_a_flow_or_skipped_or_malformed() {
    let mut run = Run::new();
    Connection::new(CLIENT, SERVER).open(&mut run);
    run.packet(&ip([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 1, &[8; 20]))
        .packet(&ip(
            [10, 0, 0, 1].into(),
            [10, 0, 0, 2].into(),
            47,
            &[0; 20],
        ))
        .packet(&[0x45; 10])
        .packet(&[]);
    let (records, statistics) = run.finish();
    let counted: u64 = records
        .iter()
        .map(|record| record.client.packets + record.server.packets)
        .sum();
    assert_eq!(counted, 3);
    assert_eq!(
        (
            statistics.skipped.other_transport,
            statistics.skipped.tunnel
        ),
        (1, 1)
    );
    assert_eq!(statistics.malformed.total(), 2);
    assert_eq!(statistics.packets, 7);
}

/// Bytes that are often the beginning of something.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let hello = client_hello("a.example", &["h2"]);
    let connection =
        |payload: &[u8]| Connection::new(CLIENT, SERVER).segment(true, flags::ACK, payload);
    let seeds = vec![
        connection(&tls_record(&hello)),
        connection(b"GET / HTTP/1.1\r\n"),
        udp(address("[::1]:50000"), address("[::1]:443"), &[0xc3; 1200]),
        udp(address(CLIENT), address(SERVER), &hello),
    ];
    (
        prop::sample::select(seeds),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(mut packet, changes, cut)| {
            for (index, byte) in changes {
                let at = index.index(packet.len());
                packet[at] = byte;
            }
            packet.truncate(cut.index(packet.len() + 1));
            packet
        })
}

proptest! {
    #[test]
    fn no_packet_panics_and_all_are_counted(
        packets in prop::collection::vec(
            (prop_oneof![hostile(), prop::collection::vec(any::<u8>(), 0..100)], 0u64..20, 0usize..200, 0usize..11),
            0..60,
        ),
        max_flows in 1usize..5,
    ) {
        let options = Options { max_flows, ..Options::default() };
        let mut run = Run::with(options, Sources::default());
        let links = [
            LinkType::Raw, LinkType::Ethernet, LinkType::Loopback, LinkType::CookedV1, LinkType::CookedV2,
            LinkType::Ppp, LinkType::PppEther, LinkType::Wifi, LinkType::Radiotap, LinkType::Ppi, LinkType::Nflog,
        ];
        for (data, seconds, more, link) in &packets {
            run.after(seconds * SECOND);
            let packet = Packet {
                time_ns: run.now_ns,
                link: links[*link],
                length: data.len() + more,
                data,
            };
            run.exporter.packet(&packet).unwrap();
            prop_assert!(run.exporter.active_flows() <= max_flows);
        }
        let (records, statistics) = run.finish();
        let of_flows: u64 = records.iter().map(|record| record.client.packets + record.server.packets).sum();
        prop_assert_eq!(
            of_flows + statistics.skipped.total() + statistics.malformed.total(),
            statistics.packets
        );
        prop_assert_eq!(statistics.records, records.len() as u64);
    }
}

/// Packets and bytes of IP by direction.
type Directions = std::collections::BTreeMap<[String; 4], [u64; 2]>;

fn count(directions: &mut Directions, ends: [String; 4], packets: u64, bytes: u64) {
    let counted = directions.entry(ends).or_default();
    counted[0] += packets;
    counted[1] += bytes;
}

#[test]
fn packets_and_bytes_of_each_flow_equal_those_of_tshark() {
    let mut packets = Vec::new();
    for i in 0..2000u32 {
        // An arbitrary mixture that is the same in each run.
        let [host, size, kind] = [i * 7919 % 23, i * 104_729 % 1300, i * 31 % 7];
        let from = match kind {
            0 => address(&format!("[2001:db8::{host:x}]:{}", 40_000 + host)),
            _ => address(&format!("10.0.0.{host}:{}", 40_000 + host)),
        };
        let to = if from.is_ipv6() {
            "[2001:db8::ffff]:443"
        } else {
            "192.0.2.1:443"
        };
        let (from, to) = match i % 3 {
            0 => (from, address(to)),
            _ => (address(to), from),
        };
        let payload = vec![kind as u8; size as usize];
        let packet = match kind {
            1 | 2 => udp(from, to, &payload),
            _ => TestSegment {
                from,
                to,
                flags: flags::ACK,
                sequence: i * 1300,
                acknowledgment: 0,
                payload: &payload,
            }
            .packet(),
        };
        let tags: &[u16] = if kind == 3 { &[0x8100] } else { &[] };
        packets.push((START + u64::from(i) * 1_000_000, ethernet(tags, &packet)));
    }
    let pieces: Vec<_> = packets
        .iter()
        .map(|(time, data)| (*time, &data[..]))
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mixture.pcap");
    std::fs::write(&path, pcap(1, &pieces)).unwrap();

    let mut tshark = std::process::Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-n", "-T", "fields"]);
    for field in "ip.src ip.dst ipv6.src ipv6.dst tcp.srcport tcp.dstport udp.srcport udp.dstport ip.len ipv6.plen"
        .split(' ')
    {
        tshark.args(["-e", field]);
    }
    let Ok(output) = tshark.output() else {
        println!("skipped: tshark is not installed");
        return;
    };
    let mut theirs = Directions::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let cells: Vec<_> = line.split('\t').collect();
        let either = |a: usize, b: usize| format!("{}{}", cells[a], cells[b]);
        let bytes = match cells[9] {
            "" => cells[8].parse().unwrap(),
            payload => 40 + payload.parse::<u64>().unwrap(),
        };
        let transport = if cells[4].is_empty() { "udp" } else { "tcp" };
        let ends = [
            either(0, 2),
            either(1, 3),
            transport.to_owned() + &either(4, 6),
            either(5, 7),
        ];
        count(&mut theirs, ends, 1, bytes);
    }

    let mut capture = crate::Capture::open(&path).unwrap();
    let mut run = Run::new();
    while let Some(item) = capture.next().unwrap() {
        run.exporter.item(&item).unwrap();
    }
    let mut ours = Directions::new();
    for record in run.records() {
        for (from, to) in [
            (record.client, record.server),
            (record.server, record.client),
        ] {
            if from.packets > 0 {
                let port = format!("{}{}", record.transport.name(), from.port);
                let ends = [
                    from.ip.to_string(),
                    to.ip.to_string(),
                    port,
                    to.port.to_string(),
                ];
                count(&mut ours, ends, from.packets, from.bytes);
            }
        }
    }
    assert!(ours.len() > 50);
    assert_eq!(ours, theirs);
}
