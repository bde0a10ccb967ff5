//! Probing before the clock says so.

use super::*;

fn bench(rate: u64, buffer: u64) -> Bench {
    Bench {
        bbr: Bbr3::with_settings(&ControllerConfig::new(MTU), Bbr3Config::WIRELESS),
        ..Bench::with(rate, buffer)
    }
}

/// When the path was probed, until `duration` from now has passed.
fn probes(bench: &mut Bench, duration: Duration) -> Vec<Duration> {
    let (start, end) = (bench.now, bench.now + duration);
    let mut times = Vec::new();
    while bench.now < end {
        bench.run_while(|bench| bench.bbr.state != REFILL && bench.now < end);
        if bench.bbr.state == REFILL {
            times.push(bench.now - start);
        }
        bench.run_while(|bench| bench.bbr.state == REFILL);
    }
    times
}

/// As when connections of the same page end, which had the rest.
#[test]
fn room_that_appears_after_startup_is_found_within_half_a_second() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    bench.rate = 2 * RATE;
    bench.run(Duration::from_millis(500));
    let found = bench.bbr.bandwidth.get();
    assert!(found > RATE * 19 / 10, "{found}");
}

#[test]
fn a_path_whose_queue_is_empty_is_probed_every_fifteen_rounds() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    let times = probes(&mut bench, Duration::from_secs(2));
    assert!(times.len() >= 4, "{times:?}");
    let pauses = times.windows(2).map(|two| two[1] - two[0]);
    assert!(pauses.max() < Some(RTT * 15), "{times:?}");
}

#[test]
fn probes_that_find_more_are_followed_by_one_four_rounds_later_and_others_by_ever_later_ones() {
    let mut early = EarlyProbes::default();
    let mut pause = |bandwidth| {
        early.end_probe(bandwidth);
        (1..).find(|rounds| early.is_due(*rounds)).unwrap() - 1
    };
    let found = [100, 110, 112, 113, 200].map(&mut pause);
    assert_eq!(found, [4, 4, 8, 16, 4]);
}

#[test]
fn losses_after_startup_leave_probing_to_the_clock() {
    let mut bench = bench(RATE, PRODUCT);
    bench.until(CRUISE);
    bench.bbr.note_congestion();
    let times = probes(&mut bench, Duration::from_millis(1900));
    assert!(times.is_empty(), "{times:?}");
}

#[test]
fn beside_other_flows_probing_is_left_to_the_clock() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    bench.bbr.others.on_seen();
    let times = probes(&mut bench, Duration::from_millis(1200));
    assert!(times.is_empty(), "{times:?}");
}

#[test]
fn the_draft_probes_by_the_clock() {
    let mut bench = Bench::new();
    bench.until(CRUISE);
    let times = probes(&mut bench, Duration::from_millis(1900));
    assert!(times.is_empty(), "{times:?}");
}

/// A policer drops what is too much without a sign that it is full.
#[test]
fn where_no_packet_can_wait_few_are_lost() {
    let mut bench = bench(RATE, MTU);
    bench.run(Duration::from_secs(10));
    let lost = bench.lost as f64 / (bench.delivered + bench.lost) as f64;
    assert!(lost < 0.02, "{lost}");
}
