use proptest::prelude::*;

use super::*;
use crate::queue::{DropTail, Limit};
use crate::testing::{arrivals, ms, ns, run, satisfies_contract};

fn link(text: &str) -> TraceLink<usize> {
    let queue = DropTail::new(Limit::Infinite);
    TraceLink::new(Trace::parse(text).unwrap(), Box::new(queue))
}

/// Packets of these sizes, all at time 0.
fn burst(sizes: &[u32]) -> Vec<(Time, Packet<usize>)> {
    let packet = |(body, size): (usize, &u32)| (ms(0), Packet::new(*size, body));
    sizes.iter().enumerate().map(packet).collect()
}

/// Departure times in milliseconds.
fn leave(link: &mut TraceLink<usize>, arrivals: &[(Time, Packet<usize>)]) -> Vec<u64> {
    let exits = run(link, arrivals, ms(10_000));
    exits
        .iter()
        .map(|exit| exit.at.as_nanos() / MILLISECOND)
        .collect()
}

#[test]
fn traces_in_the_format_of_mahimahi_are_parsed() {
    assert_eq!(Trace::parse("0\n3\n3\n7\n").unwrap().millis(), [0, 3, 3, 7]);
    assert_eq!(Trace::parse("1").unwrap().millis(), [1]);
    assert_eq!(Trace::parse(""), Err(TraceError::Empty));
    assert_eq!(
        Trace::parse("0\n0\n"),
        Err(TraceError::NoLength { line: 2 })
    );
    for (text, line) in [("1\n\n2", 2), ("a", 1), ("1\n2 ", 2), ("+1", 1), ("-1", 1)] {
        assert_eq!(Trace::parse(text), Err(TraceError::NotATime { line }));
    }
    assert_eq!(
        Trace::parse("4294967296"),
        Err(TraceError::NotATime { line: 1 })
    );
    assert_eq!(
        Trace::parse("5\n4\n").unwrap_err().to_string(),
        "line 2: 4 ms is earlier than the previous line, 5 ms"
    );
}

#[test]
fn a_trace_of_one_opportunity_per_millisecond_is_12_032_mbps() {
    let trace = Trace::parse("1\n").unwrap();
    assert_eq!(trace.mean_bits_per_second(), 12_032_000);
    let sizes = [1504; 1000];
    assert_eq!(
        leave(&mut link("1\n"), &burst(&sizes)),
        Vec::from_iter(1..=1000)
    );
}

#[test]
fn a_trace_repeats_from_its_last_time() {
    let times = leave(&mut link("0\n3\n5\n"), &burst(&[1504; 8]));
    // The opportunity at 0 is too early for packets that arrive at 0; at 5 there are two.
    assert_eq!(times, [3, 5, 5, 8, 10, 10, 13, 15]);
}

#[test]
fn a_trace_played_once_stops_delivering_at_its_end() {
    let exits = run(&mut link("1\n3\n").once(), &burst(&[1504; 3]), ms(100));
    assert_eq!(exits.len(), 2);
    let mut late = link("1\n3\n").once();
    late.push(ms(3), Packet::new(1, 0));
    assert_eq!(late.next_event(), None);
}

#[test]
fn packets_share_and_span_opportunities() {
    let sizes = [500, 500, 504, 1000, 1000, 1008, 1504];
    assert_eq!(
        leave(&mut link("1\n"), &burst(&sizes)),
        [1, 1, 1, 2, 3, 3, 4]
    );
}

#[test]
fn unused_bytes_of_an_opportunity_are_lost() {
    let mut arrivals = burst(&[100]);
    arrivals.push((ns(1_000_001), Packet::new(1504, 1)));
    arrivals.push((ns(1_000_001), Packet::new(1500, 2)));
    arrivals.push((ms(20), Packet::new(100, 3)));
    assert_eq!(leave(&mut link("1\n"), &arrivals), [1, 2, 3, 21]);
}

#[test]
fn a_partly_delivered_packet_is_not_in_the_queue() {
    let mut link = link("1\n");
    for (_, packet) in burst(&[1000, 1000, 1000]) {
        link.push(ms(0), packet);
    }
    assert_eq!(link.queued_bytes(), 3000);
    assert_eq!(link.pop(ms(1)).unwrap().packet.body, 0);
    assert_eq!(link.queued_bytes(), 1000);
}

#[test]
fn packets_larger_than_an_opportunity_are_dropped() {
    let mut link = link("1\n");
    link.push(ms(0), Packet::new(1505, 0));
    assert_eq!(link.pop(ms(0)).unwrap().dropped, Some(DropReason::TooLarge));
}

#[test]
fn starting_at_offsets_the_trace() {
    let phase = Duration::from_micros(3500);
    let mut link = link("0\n3\n5\n").starting_at(phase);
    let exits = run(&mut link, &burst(&[1504; 3]), ms(100));
    let times: Vec<_> = exits.iter().map(|exit| exit.at).collect();
    assert_eq!(times, [ns(1_500_000), ns(1_500_000), ns(4_500_000)]);
}

#[test]
fn constant_traces_have_the_requested_mean_rate() {
    assert_eq!(Trace::constant(12_032_000).millis(), [1]);
    assert_eq!(Trace::constant(6_016_000).millis(), [2]);
    assert_eq!(Trace::constant(24_064_000).millis(), [1, 1]);
    assert_eq!(Trace::constant(5_000_000).millis()[..3], [3, 5, 8]);
    for rate in [1, 300_000, 5_000_000, 65_900_000, 1_000_000_000] {
        assert_eq!(Trace::constant(rate).mean_bits_per_second(), rate);
    }
    let odd = Trace::constant(99_999_989).mean_bits_per_second();
    assert!((99_990_000..100_000_000).contains(&odd), "{odd}");
}

/// Mahimahi's traces are not part of this project; an environment variable contains their directory.
#[test]
fn mahimahi_traces_have_their_known_length_and_rate() {
    const DIRECTORY: &str = "MARLINE_TRACES";
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        println!("note: {DIRECTORY} names no directory with the traces of Mahimahi");
        return;
    };
    let traces = [
        ("ATT-LTE-driving-2016.down", 45_604, 120_000, 4.57),
        ("ATT-LTE-driving-2016.up", 19_101, 120_000, 1.92),
        ("TMobile-LTE-driving.down", 505_078, 474_600, 12.80),
        ("TMobile-UMTS-driving.down", 156_262, 928_400, 2.03),
        ("Verizon-EVDO-driving.down", 46_065, 1_062_000, 0.52),
    ];
    for (name, lines, millis, megabits) in traces {
        let path = std::path::Path::new(&directory).join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let trace = Trace::parse(&text).unwrap();
        assert_eq!(trace.millis().len(), lines, "{name}");
        let length = trace.period().as_millis();
        assert!(length.abs_diff(millis) <= 600, "{name}: {length} ms");
        let mean = trace.mean_bits_per_second() as f64 / 1e6;
        assert!((mean - megabits).abs() < 0.01, "{name}: {mean}");
    }
}

proptest! {
    #[test]
    fn traces_satisfy_the_link_contract(
        arrivals in arrivals(OPPORTUNITY, Duration::from_millis(8)),
        mut millis in proptest::collection::vec(0..30u32, 1..20),
        limit in (1..6usize).prop_map(Limit::Packets),
        phase in (0..60u64).prop_map(Duration::from_millis),
    ) {
        millis.sort_unstable();
        millis.push(30);
        let text: String = millis.iter().map(|at| format!("{at}\n")).collect();
        let trace = Trace::parse(&text).unwrap();
        let make = || TraceLink::new(trace.clone(), Box::new(DropTail::new(limit))).starting_at(phase);
        satisfies_contract(make, &arrivals)?;
    }
}
