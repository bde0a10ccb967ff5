//! Section 5.3.3.

use super::*;

#[test]
fn the_cycle_cruises_refills_goes_up_and_down() {
    let mut bench = Bench::new();
    bench.run(Duration::from_millis(4500));
    let begin = [State::Startup, State::Drain { since: 9 }];
    let cycle = [CRUISE, REFILL, UP, DOWN, CRUISE];
    assert_eq!(bench.states, [&begin[..], &cycle].concat());
    assert!(bench.utilization(Duration::from_secs(3)) > 0.95);
    assert_eq!(bench.lost, 0);
}

#[test]
fn phases_have_the_gains_of_the_table() {
    for (state, pacing, window) in [
        (State::Startup, 2.77, 200_000),
        (State::Drain { since: 0 }, 0.5, 200_000),
        (DOWN, 0.9, 200_000),
        (CRUISE, 1.0, 200_000),
        (REFILL, 1.0, 200_000),
        (UP, 1.25, 225_000 + 2 * MTU),
        (State::ProbeRtt, 1.0, 50_000),
    ] {
        let mut bbr = modelled();
        bbr.state = state;
        assert_eq!(bbr.pacing_gain(), pacing, "{state:?}");
        assert_eq!(bbr.max_in_flight(), window, "{state:?}");
    }
}

/// A window of 83 datagrams: a Reno flow would lose one after more than 63 rounds; a smaller one sooner.
#[test]
fn probes_are_as_frequent_as_the_losses_of_reno_and_at_most_three_seconds_apart() {
    let mut bbr = modelled();
    bbr.set_window(PRODUCT);
    bbr.start_down(at(1000));
    assert!((2000..3000).contains(&bbr.cycle.wait.as_millis()));
    assert!(bbr.cycle.rounds_since_up <= 1);
    bbr.cycle.rounds_since_up = 62;
    assert!(!bbr.is_time_to_probe(at(3000)));
    assert!(bbr.is_time_to_probe(at(4000)), "by the clock");
    bbr.cycle.rounds_since_up = 63;
    assert!(bbr.is_time_to_probe(at(1001)), "by rounds");
    bbr.set_window(10 * MTU);
    bbr.cycle.rounds_since_up = 10;
    assert!(bbr.is_time_to_probe(at(1001)));
    bbr.cycle.rounds_since_up = 9;
    assert!(!bbr.is_time_to_probe(at(1001)));
}

#[test]
fn waits_differ_between_paths_and_are_the_same_for_a_seed() {
    let wait = |seed| {
        let mut bbr = Bbr3::new(&ControllerConfig {
            seed,
            ..ControllerConfig::new(MTU)
        });
        bbr.start_down(at(0));
        bbr.cycle.wait
    };
    assert_eq!(wait(1), wait(1));
    assert_ne!(wait(1), wait(2));
}

#[test]
fn a_probe_goes_down_on_a_plateau_and_the_queue_is_drained() {
    let mut bench = Bench::new();
    bench.until(UP);
    let round = bench.bbr.rounds.count();
    bench.until(DOWN);
    assert!(bench.bbr.rounds.count() <= round + 5);
    assert!(!bench.bbr.cycle.went_too_high);
    bench.until(CRUISE);
    assert!(bench.bbr.in_flight <= bench.bbr.in_flight_for(1.0));
}

#[test]
fn losses_of_a_probe_bound_what_is_in_flight_and_end_it() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    bbr.set_window(2 * PRODUCT);
    bbr.start_refill();
    bbr.start_up(&rated(RATE, 0));
    bbr.on_packet_lost(at(10), &lost_packet(1, 2 * MTU, 125_000));
    assert_eq!(bbr.state, UP, "2400 of 125 000 bytes are less than 2 %");
    bbr.on_packet_lost(at(10), &lost_packet(2, 3 * MTU, 125_000));
    assert_eq!(bbr.state, DOWN);
    assert!(bbr.cycle.went_too_high);
    // Within the packet: (0.02 * 123 800 - 2400) / 0.98 bytes after the first 123 800.
    assert_eq!(bbr.bounds.in_flight, 123_877);
    bbr.on_packet_lost(at(11), &lost_packet(3, 4 * MTU, 110_000));
    assert_eq!(bbr.bounds.in_flight, 123_877, "one reaction to a probe");
}

#[test]
fn losses_do_not_bound_what_is_in_flight_below_seven_tenths_of_the_target() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    bbr.set_window(2 * PRODUCT);
    bbr.start_up(&rated(RATE, 0));
    bbr.on_packet_lost(at(10), &lost_packet(1, 10 * MTU, 20 * MTU));
    assert_eq!(bbr.bounds.in_flight, PRODUCT * 7 / 10);
}

#[test]
fn app_limited_losses_end_a_probe_without_a_bound() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    bbr.start_up(&rated(RATE, 0));
    let lost = PacketLoss {
        app_limited: true,
        ..lost_packet(1, 10 * MTU, 20 * MTU)
    };
    bbr.on_packet_lost(at(10), &lost);
    assert_eq!((bbr.state, bbr.bounds.in_flight), (DOWN, UNBOUNDED));
}

#[test]
fn app_limited_probes_last_while_nothing_is_lost() {
    let mut bench = Bench::new();
    bench.until(UP);
    bench.application = Some(RATE / 2);
    bench.run(Duration::from_secs(2));
    assert_eq!(bench.bbr.state, UP);
}

/// The probe after one that went too high goes down as soon as its packets are sent, and if that is safe
/// continues.
#[test]
fn a_precautionary_probe_is_short_and_goes_on_if_nothing_is_lost() {
    let mut bench = Bench::with(RATE, PRODUCT / 2);
    bench.run_while(|bench| !bench.bbr.cycle.went_too_high);
    assert!(bench.bbr.bounds.in_flight != UNBOUNDED);
    bench.buffer = u64::MAX;
    bench.until(UP);
    bench.until(DOWN);
    assert!(bench.bbr.cycle.was_precautionary);
    let from = bench.states.len();
    bench.until(UP);
    assert_eq!(bench.states[from..], [REFILL, UP], "without cruising");
}

#[test]
fn the_slope_of_the_long_term_bound_doubles_every_round() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    bbr.set_window(2 * PRODUCT);
    bbr.bounds.in_flight = 2 * PRODUCT;
    bbr.window_use.on_sent(true);
    bbr.start_refill();
    bbr.start_up(&rated(RATE, 0));
    let mut growth = Vec::new();
    for _ in 0..4 {
        let before = bbr.bounds.in_flight;
        bbr.window = bbr.bounds.in_flight;
        bbr.round_begins = true;
        bbr.raise_long_term(bbr.window);
        growth.push((bbr.bounds.in_flight - before) / MTU);
    }
    assert_eq!(growth, [1, 2, 4, 8]);
}

#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut bench = Bench::new();
    bench.until(CRUISE);
    bench.rate = 10 * RATE;
    bench.run(Duration::from_secs(10));
    let bandwidth = bench.bbr.bandwidth.get();
    assert!(bandwidth > 8 * RATE, "{bandwidth}");
}

#[test]
fn a_tenth_of_the_bandwidth_is_found() {
    let mut bench = Bench::with(10 * RATE, 10 * PRODUCT);
    bench.until(CRUISE);
    bench.rate = RATE;
    bench.buffer = PRODUCT;
    bench.run(Duration::from_secs(1));
    assert!(bench.bbr.bandwidth_now() < 8 * RATE, "by losses");
    bench.run(Duration::from_secs(12));
    let bandwidth = bench.bbr.bandwidth.get();
    assert!(bandwidth.abs_diff(RATE) < RATE / 10, "{bandwidth}");
}

#[test]
fn small_and_large_buffers_are_used_with_few_losses() {
    for (buffer, least, losses) in [
        (PRODUCT / 4, 0.85, 0.02),
        (PRODUCT, 0.9, 0.01),
        (10 * PRODUCT, 0.95, 0.0),
    ] {
        let mut bench = Bench::with(RATE, buffer);
        bench.run(Duration::from_secs(1));
        let used = bench.utilization(Duration::from_secs(10));
        let lost = bench.loss_rate(Duration::from_secs(10));
        assert!(used > least, "{buffer}: {used:.2}");
        assert!(lost <= losses, "{buffer}: {lost:.4}");
    }
}

#[test]
fn a_product_of_less_than_a_packet_keeps_four_in_flight() {
    let mut bench = Bench::with(10_000, u64::MAX);
    bench.run(Duration::from_secs(30));
    assert!(matches!(
        bench.bbr.state,
        State::ProbeBw(_) | State::ProbeRtt
    ));
    assert!(bench.bbr.window() >= 4 * MTU);
    assert!(bench.utilization(Duration::from_secs(30)) > 0.9);
}
