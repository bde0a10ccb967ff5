//! Sections 5.3.1 and 5.3.2.

use super::*;

#[test]
fn startup_ends_when_the_bandwidth_grows_no_more_and_drain_empties_the_queue() {
    let mut bench = Bench::new();
    bench.run_while(|bench| bench.bbr.state == State::Startup);
    let bandwidth = bench.bbr.bandwidth.get();
    assert!(bandwidth.abs_diff(RATE) < RATE / 50, "{bandwidth}");
    assert_eq!(bench.bbr.pacing_gain(), 0.5);
    assert!(bench.now < at(600), "{:?}", bench.now);
    bench.until(CRUISE);
    assert!(bench.bbr.in_flight <= bench.bbr.in_flight_for(1.0));
    assert!(bench.now < at(700), "{:?}", bench.now);
}

#[test]
fn startup_doubles_the_rate_every_round() {
    let mut bench = Bench::with(100 * RATE, u64::MAX);
    bench.run(RTT * 2);
    let mut before = bench.bbr.bandwidth.get();
    for _ in 0..4 {
        bench.run(RTT);
        let bandwidth = bench.bbr.bandwidth.get();
        assert!(bandwidth * 10 > before * 16, "{before} to {bandwidth}");
        before = bandwidth;
    }
}

/// Of five samples the first three grow.
#[test]
fn three_rounds_with_less_than_a_quarter_more_show_a_full_pipe() {
    let mut pipe = FullPipe::default();
    for (rate, is_full) in [
        (1000, false),
        (1250, false),
        (1300, false),
        (1500, false),
        (1562, true),
    ] {
        pipe.on_round(rate);
        assert_eq!((pipe.is_now(), pipe.is_reached()), (is_full, is_full));
    }
    pipe.restart(1500);
    assert_eq!((pipe.is_now(), pipe.is_reached()), (false, true));
}

#[test]
fn app_limited_rounds_without_losses_do_not_end_startup() {
    let mut bench = Bench::new();
    bench.application = Some(RATE / 20);
    bench.run(Duration::from_secs(4));
    assert_eq!(bench.bbr.state, State::Startup);
    assert!(bench.bbr.window() <= 10 * MTU, "a window that is not used");
}

#[test]
fn startup_ends_by_losses_in_six_ranges_of_a_round() {
    let end = |ranges: u64, share: u64| {
        let mut bbr = modelled();
        for range in 0..ranges {
            bbr.on_packet_lost(at(10), &lost_packet(10 * range, MTU, PRODUCT));
            bbr.on_packet_lost(at(10), &lost_packet(10 * range + 1, MTU, PRODUCT));
        }
        let rate = RateSample {
            lost: share,
            app_limited: true,
            ..rated(RATE, 0)
        };
        let ack = AckSample {
            rate: Some(rate),
            ..acked(2 * PRODUCT)
        };
        bbr.on_ack(at(50), &ack);
        bbr
    };
    assert_eq!(end(5, PRODUCT / 10).state, State::Startup);
    assert_eq!(end(6, PRODUCT / 50).state, State::Startup, "exactly 2 %");
    let bbr = end(6, PRODUCT / 49);
    assert!(matches!(bbr.state, State::Drain { .. }));
    assert_eq!(bbr.bounds.in_flight, PRODUCT, "what was delivered");
}

#[test]
fn a_shallow_buffer_ends_startup_by_losses_and_bounds_what_is_in_flight() {
    let mut bench = Bench::with(4 * RATE, PRODUCT);
    bench.run_while(|bench| bench.bbr.state == State::Startup);
    assert!(bench.bbr.bounds.in_flight < 6 * PRODUCT);
    assert!(bench.lost > 0);
}

#[test]
fn drain_ends_after_three_rounds_whatever_is_in_flight() {
    let mut bench = Bench::new();
    bench.run_while(|bench| bench.bbr.state == State::Startup);
    let State::Drain { since } = bench.bbr.state else {
        panic!("{:?}", bench.bbr.state);
    };
    bench.rate = RATE / 4;
    bench.until(DOWN);
    assert_eq!(bench.bbr.rounds.count(), since + 4);
    assert!(bench.bbr.in_flight > bench.bbr.in_flight_for(1.0));
}
