use proptest::prelude::*;

use super::*;
use crate::record::Record;
use crate::testing::*;

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "192.0.2.1:443";
const MS: u64 = 1_000_000;

/// A segment of 100 bytes, or of none, by its number.
fn segment(of_client: bool, flags: u8, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let (client, server) = (address(CLIENT), address(SERVER));
    let (from, to) = match of_client {
        true => (client, server),
        false => (server, client),
    };
    TestSegment {
        from,
        to,
        flags,
        sequence,
        acknowledgment: 0,
        payload,
    }
    .packet()
}

fn only(run: Run) -> Record {
    let mut records = run.records();
    assert_eq!(records.len(), 1);
    records.remove(0)
}

/// The same by lists, as a textbook has it.
fn spread(values: &[f64]) -> Option<Spread> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(Spread {
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(0.0, f64::max),
        mean,
        deviation: (squares / (n - 1.0).max(1.0)).sqrt(),
    })
}

fn close(ours: Option<Spread>, theirs: Option<Spread>) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs()) + 1e-9;
    match (ours, theirs) {
        (Some(a), Some(b)) => {
            near(a.min, b.min)
                && near(a.max, b.max)
                && near(a.mean, b.mean)
                && near(a.deviation, b.deviation)
        }
        (None, None) => true,
        _ => false,
    }
}

proptest! {
    #[test]
    fn running_sums_equal_the_textbook(
        packets in proptest::collection::vec((any::<bool>(), 0..1400usize, 0..SECOND), 1..30),
        is_tcp: bool,
    ) {
        let mut run = Run::new();
        let mut sizes = [Vec::new(), Vec::new()];
        let mut times = [Vec::new(), Vec::new()];
        let mut sequence = 0;
        for (of_client, length, pause_ns) in packets {
            run.after(pause_ns);
            let payload = vec![0; length];
            let packet = match (is_tcp, of_client) {
                (true, _) => segment(of_client, flags::ACK, sequence, &payload),
                (false, true) => udp(address(CLIENT), address(SERVER), &payload),
                (false, false) => udp(address(SERVER), address(CLIENT), &payload),
            };
            sequence += length as u32;
            sizes[usize::from(!of_client)].push(packet.len() as f64);
            times[usize::from(!of_client)].push(run.now_ns);
            run.packet(&packet);
        }
        let record = only(run);
        for (side, (sizes, times)) in [record.client, record.server].iter().zip(sizes.iter().zip(&times)) {
            let intervals: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
            prop_assert!(close(side.measured.sizes, spread(sizes)), "{:?}, {:?}", side.measured.sizes, sizes);
            prop_assert!(close(side.measured.intervals_s, spread(&intervals)), "{:?}, {:?}", side.measured.intervals_s, intervals);
        }
    }
}

#[test]
fn flags_are_counted_from_the_first_packet_on() {
    for packets in 1..4u64 {
        let mut run = Run::new();
        for i in 0..packets {
            let flags = flags::PSH | flags::ACK;
            run.packet(&segment(true, flags, 100 * i as u32, &[1; 100]));
        }
        run.packet(&segment(false, flags::RST, 0, &[]));
        let record = only(run);
        let [client, server] = [record.client.measured, record.server.measured];
        assert_eq!((client.psh, client.rst), (packets, 0));
        assert_eq!((server.psh, server.rst), (0, 1));
    }
}

/// Sends segments of 100 bytes with these numbers, 10 ms apart by default, and returns the number of retransmissions.
fn retransmissions(segments: &[(u32, u64)]) -> u64 {
    let mut run = Run::new();
    // With a round trip of 20 ms.
    run.packet(&segment(true, flags::SYN, 999, &[]));
    run.after(20 * MS);
    run.packet(&segment(false, flags::SYN | flags::ACK, 4999, &[]));
    run.packet(&segment(true, flags::ACK, 1000, &[]));
    for (number, pause_ms) in segments {
        run.after(pause_ms * MS);
        run.packet(&segment(false, flags::ACK, 5000 + 100 * number, &[7; 100]));
    }
    let record = only(run);
    assert_eq!(record.client.measured.retransmissions, 0);
    record.server.measured.retransmissions
}

#[test]
fn segments_that_were_seen_before_are_retransmissions() {
    assert_eq!(retransmissions(&[(0, 1), (1, 1), (2, 1)]), 0);
    assert_eq!(retransmissions(&[(0, 1), (0, 1), (0, 1)]), 2);
    assert_eq!(retransmissions(&[(0, 1), (1, 1), (2, 1), (1, 0)]), 1);
}

#[test]
fn a_gap_is_filled_by_a_retransmission_unless_it_is_filled_at_once() {
    // The loss was before the place of the capture, and is repaired after a round trip.
    assert_eq!(retransmissions(&[(0, 1), (2, 1), (3, 1), (1, 20)]), 1);
    // It was reordered.
    assert_eq!(retransmissions(&[(0, 1), (2, 1), (1, 2)]), 0);
    assert_eq!(retransmissions(&[(0, 1), (3, 1), (1, 1), (2, 1)]), 0);
    // It arrived twice.
    assert_eq!(retransmissions(&[(0, 1), (2, 1), (1, 1), (1, 1)]), 1);
}

#[test]
fn keep_alives_and_acknowledgments_are_no_retransmissions() {
    let mut run = Run::new();
    Connection::new(CLIENT, SERVER).open(&mut run);
    run.packet(&segment(true, flags::ACK, 1001, &[1; 10]));
    for _ in 0..3 {
        run.after(SECOND);
        run.packet(&segment(true, flags::ACK, 1010, &[0]));
        run.packet(&segment(true, flags::ACK, 1010, &[]));
    }
    assert_eq!(only(run).client.measured.retransmissions, 0);
}

#[test]
fn repeated_syns_and_fins_are_retransmissions() {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    run.packet(&segment(true, flags::SYN, 1000, &[]));
    connection.open(&mut run);
    connection.close(&mut run);
    run.packet(&segment(true, flags::FIN | flags::ACK, 1001, &[]));
    let record = only(run);
    assert_eq!(record.client.measured.retransmissions, 2);
    assert_eq!(record.server.measured.retransmissions, 0);
}

#[test]
fn sequence_numbers_wrap_around() {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    // The server's begin just before the end.
    connection.send(&mut run, false, &[1; 1000], 100);
    assert_eq!(only(run).server.measured.retransmissions, 0);
}

#[test]
fn the_first_round_trip_is_from_the_syn_to_the_ack_of_its_answer() {
    for packets in 1..=4 {
        let mut run = Run::new();
        let mut connection = Connection::new(CLIENT, SERVER);
        let handshake = [
            connection.segment(true, flags::SYN, &[]),
            connection.segment(false, flags::SYN | flags::ACK, &[]),
            connection.segment(true, flags::ACK, &[]),
            connection.segment(true, flags::ACK, b"later"),
        ];
        for (packet, pause_ms) in handshake.iter().zip([0, 30, 5, 100]).take(packets) {
            run.after(pause_ms * MS).packet(packet);
        }
        let record = only(run);
        assert_eq!(record.server_rtt_ns, (packets > 1).then_some(30 * MS));
        assert_eq!(record.client_rtt_ns, (packets > 2).then_some(5 * MS));
        assert_eq!(record.first_rtt_ns(), (packets > 2).then_some(35 * MS));
    }
}

#[test]
fn a_connection_refused_has_a_round_trip_to_the_server() {
    let mut run = Run::new();
    run.packet(&segment(true, flags::SYN, 1, &[])).after(7 * MS);
    run.packet(&segment(false, flags::RST | flags::ACK, 0, &[]));
    assert_eq!(only(run).server_rtt_ns, Some(7 * MS));
}

#[test]
fn a_repeated_syn_and_a_connection_that_began_before_have_no_round_trip() {
    let mut run = Run::new();
    run.packet(&segment(true, flags::SYN, 1000, &[]));
    run.after(SECOND);
    Connection::new(CLIENT, SERVER).open(&mut run);
    assert_eq!(only(run).first_rtt_ns(), None);
    let mut run = Run::new();
    for of_client in [true, false, true] {
        run.packet(&segment(of_client, flags::ACK, 1, &[1]));
    }
    let record = only(run);
    assert_eq!(record.first_rtt_ns(), None);
    assert_eq!(record.server_rtt_ns, None);
}

#[test]
fn over_udp_the_first_round_trip_ends_with_the_first_answer() {
    let query = udp(address(CLIENT), address(SERVER), b"query");
    let answer = udp(address(SERVER), address(CLIENT), b"answer");
    for packets in 1..=4 {
        let mut run = Run::new();
        let all = [&query, &query, &answer, &query];
        for (packet, pause_ms) in all.iter().zip([0, 1, 9, 50]).take(packets) {
            run.after(pause_ms * MS).packet(packet);
        }
        let record = only(run);
        assert_eq!(record.first_rtt_ns(), (packets > 2).then_some(10 * MS));
        assert_eq!(record.client_rtt_ns, None);
    }
}

#[test]
fn each_part_of_a_flow_is_measured_by_itself() {
    let mut options = crate::Options::default();
    options.timeouts.active_ns = Some(10 * SECOND);
    let mut run = Run::with(options, crate::Sources::default());
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    for _ in 0..3 {
        run.after(6 * SECOND);
        connection.send(&mut run, true, &[1; 100], 100);
    }
    let records = run.records();
    assert_eq!(records.len(), 2);
    assert!(records[0].first_rtt_ns().is_some());
    assert_eq!(records[1].first_rtt_ns(), None);
    assert_eq!(records[1].client.measured.retransmissions, 0);
    let sizes = records[1].client.measured.sizes.unwrap();
    assert_eq!((sizes.min, sizes.max), (140.0, 140.0));
}

#[test]
fn flows_of_a_packet_in_each_direction_keep_no_sums() {
    let mut measures = Measures::default();
    assert!(!measures.is_measured(0));
    let sample = Sample {
        sender: 0,
        time_ns: START,
        ip_bytes: 40,
        payload_bytes: 0,
        tcp: None,
    };
    let one = Before {
        packets: 1,
        bytes: 40,
        payload_bytes: 0,
        flags: 0,
        syn: None,
    };
    assert!(measures.is_measured(1));
    let past = Past {
        sent: [one, one],
        opener: 0,
        first_ns: START,
        last_ns: START,
    };
    measures.on_packet(&sample, &past);
    assert!(measures.is_measured(0));
    assert_eq!(size_of::<Measures>(), size_of::<usize>());
    assert!(size_of::<Kept>() <= 208, "{}", size_of::<Kept>());
}

#[test]
fn retransmissions_are_those_of_tshark() {
    // Of 400 segments in a row, an arbitrary tenth is lost before the place of the capture, and comes a round trip later; another
    // tenth is seen twice.
    let mut arrivals = Vec::new();
    for i in 0..400u32 {
        let at_ms = u64::from(i) * 2;
        match i * 7919 % 10 {
            3 => arrivals.push((at_ms + 41, i)),
            7 => arrivals.extend([(at_ms, i), (at_ms + 41, i)]),
            _ => arrivals.push((at_ms, i)),
        }
    }
    arrivals.sort_unstable();
    let mut packets = vec![
        (START, segment(true, flags::SYN, 999, &[])),
        (
            START + 20 * MS,
            segment(false, flags::SYN | flags::ACK, 4999, &[]),
        ),
        (START + 40 * MS, segment(true, flags::ACK, 1000, &[])),
    ];
    packets.extend(arrivals.iter().map(|(at_ms, i)| {
        let packet = segment(false, flags::ACK, 5000 + 100 * i, &[7; 100]);
        (START + (50 + at_ms) * MS, packet)
    }));
    let mut run = Run::new();
    for (time_ns, packet) in &packets {
        run.now_ns = *time_ns;
        run.packet(packet);
    }
    let ours = only(run).server.measured.retransmissions;
    assert_eq!(ours, 80);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("losses.pcap");
    let pieces: Vec<_> = packets
        .iter()
        .map(|(time, data)| (*time, &data[..]))
        .collect();
    std::fs::write(&path, pcap(101, &pieces)).unwrap();
    let mut tshark = std::process::Command::new("tshark");
    // Segments that tshark considers reordered by their time alone are repeated here, too.
    let filter = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
    tshark.arg("-n").arg("-r").arg(&path).args(["-Y", filter]);
    match tshark.output() {
        Ok(output) => assert_eq!(output.stdout.split(|b| *b == b'\n').count() - 1, 80),
        Err(_) => println!("skipped: tshark is not installed"),
    }
}
