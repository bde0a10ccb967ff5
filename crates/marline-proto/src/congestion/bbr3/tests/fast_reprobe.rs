//! Probing before the draft's time.

use super::super::fast_reprobe::widen;
use super::*;

fn bench(rate: u64, buffer: u64) -> Bench {
    Bench {
        bbr: Bbr3::with_settings(&ControllerConfig::new(MTU), Bbr3Config::WIRELESS),
        ..Bench::with(rate, buffer)
    }
}

/// The times of probes until `duration` from now has passed.
fn probes(bench: &mut Bench, duration: Duration) -> Vec<Duration> {
    let (start, end) = (bench.now, bench.now + duration);
    let mut times = Vec::new();
    let is_probing = |bench: &Bench| matches!(bench.bbr.state, REFILL | UP);
    while bench.now < end {
        bench.run_while(|bench| !is_probing(bench) && bench.now < end);
        if is_probing(bench) {
            times.push(bench.now - start);
        }
        bench.run_while(is_probing);
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
fn a_path_whose_queue_is_empty_is_probed_every_twenty_rounds() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    let times = probes(&mut bench, Duration::from_secs(2));
    assert!(times.len() >= 3, "{times:?}");
    let pauses = times.windows(2).map(|two| two[1] - two[0]);
    assert!(pauses.max() < Some(RTT * 20), "{times:?}");
}

#[test]
fn a_probe_of_an_empty_queue_sends_at_twice_the_bandwidth_until_a_packet_waits() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    bench.until(UP);
    assert_eq!(bench.states[bench.states.len() - 2..], [CRUISE, UP]);
    assert_eq!(bench.bbr.pacing_gain(), 2.0);
    bench.run_while(|bench| !bench.bbr.meets_queue());
    assert_eq!((bench.bbr.state, bench.bbr.pacing_gain()), (UP, 1.25));
}

#[test]
fn after_a_loss_probes_fill_the_path_first_and_send_a_quarter_more() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    let lost = lost_packet(bench.next_number - 1, MTU, PRODUCT);
    bench.bbr.on_packet_lost(bench.now, &lost);
    bench.until(UP);
    assert_eq!(bench.states[bench.states.len() - 2..], [REFILL, UP]);
    assert_eq!(bench.bbr.pacing_gain(), 1.25);
}

/// The bound excludes the amount that startup lost.
#[test]
fn where_losses_bound_the_bytes_in_flight_a_probe_of_an_empty_queue_is_open() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    let lost = lost_packet(bench.next_number - 1, MTU, PRODUCT);
    bench.bbr.on_packet_lost(bench.now, &lost);
    bench.bbr.bounds.in_flight = PRODUCT * 2;
    bench.until(UP);
    assert_eq!(bench.states[bench.states.len() - 2..], [CRUISE, UP]);
    assert_eq!(bench.bbr.pacing_gain(), 2.0);
}

#[test]
fn a_mark_ends_an_open_probe() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    bench.until(UP);
    bench.bbr.on_ce(bench.now, &mark(1));
    assert_eq!((bench.bbr.state, bench.bbr.pacing_gain()), (UP, 1.25));
}

/// The bandwidth of a cruising controller half a second after losses that halved it.
fn half_a_second_after_losses(settings: Bbr3Config, others_queue: Duration) -> u64 {
    let mut bench = bench(RATE, PRODUCT);
    bench.bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), settings);
    bench.until(CRUISE);
    bench.bbr.note_congestion();
    bench.bbr.bounds.short_bandwidth = RATE / 2;
    bench.bbr.bounds.short_in_flight = PRODUCT;
    bench.rtt += others_queue;
    bench.run(Duration::from_millis(500));
    assert_eq!(bench.bbr.state, CRUISE);
    bench.bbr.bandwidth_now()
}

#[test]
fn bounds_that_losses_lowered_are_widened_while_the_queue_is_empty() {
    let queue = Duration::from_millis(20);
    let empty = half_a_second_after_losses(Bbr3Config::WIRELESS, Duration::ZERO);
    assert!(empty > RATE * 9 / 10, "{empty}");
    let queued = half_a_second_after_losses(Bbr3Config::WIRELESS, queue);
    assert!(queued < RATE * 2 / 3, "{queued}");
    let draft = half_a_second_after_losses(Bbr3Config::default(), Duration::ZERO);
    assert_eq!(draft, RATE / 2);
}

#[test]
fn bounds_are_not_widened_beyond_what_the_path_is_known_to_hold() {
    let mut bound = 10;
    for (growth, most, expected) in [(5, 100, 15), (5, 18, 18), (5, 12, 18)] {
        widen(&mut bound, growth, most);
        assert_eq!(bound, expected);
    }
}

#[test]
fn probes_that_find_more_are_followed_by_one_four_rounds_later_and_others_by_ever_later_ones() {
    let mut early = FastReprobe::default();
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
fn while_other_flows_fill_the_queue_probing_is_left_to_the_clock() {
    let mut bench = bench(RATE, u64::MAX);
    bench.until(CRUISE);
    bench.bbr.fast_reprobe = FastReprobe::default();
    bench.bbr.fast_reprobe.end_probe(RATE);
    bench.bbr.cycle.rounds_since_up = 5;
    assert!(bench.bbr.probes_early(bench.now));
    bench.bbr.cross_traffic.on_seen(bench.now);
    assert!(!bench.bbr.probes_early(bench.now));
}

#[test]
fn others_count_as_gone_once_the_queue_is_empty_for_a_part_of_their_time() {
    let pause = |known_for: Duration| {
        let mut bench = bench(RATE, u64::MAX);
        bench.run(Duration::from_secs(4));
        bench.until(UP);
        bench.until(CRUISE);
        bench.bbr.cross_traffic.on_seen(bench.now - known_for);
        probes(&mut bench, Duration::from_secs(1)).first().copied()
    };
    let just_seen = pause(Duration::ZERO);
    assert!(
        just_seen.is_some_and(|pause| (RTT / 2..RTT * 3).contains(&pause)),
        "{just_seen:?}"
    );
    let long_known = pause(RTT * 80);
    assert!(
        long_known.is_some_and(|pause| (RTT * 9..RTT * 13).contains(&pause)),
        "{long_known:?}"
    );
}

#[test]
fn the_draft_probes_by_the_clock() {
    let mut bench = Bench::new();
    bench.until(CRUISE);
    let times = probes(&mut bench, Duration::from_millis(1900));
    assert!(times.is_empty(), "{times:?}");
}

/// A policer drops excess packets without a sign that it is full.
#[test]
fn where_no_packet_can_wait_few_are_lost() {
    let mut bench = bench(RATE, MTU);
    bench.run(Duration::from_secs(10));
    let lost = bench.lost as f64 / (bench.delivered + bench.lost) as f64;
    assert!(lost < 0.02, "{lost}");
}
