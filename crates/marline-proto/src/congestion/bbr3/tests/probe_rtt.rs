//! Sections 5.3.4 and 5.5.7.

use super::*;

#[test]
fn the_delay_is_measured_every_five_seconds_for_a_fifth_of_one() {
    let mut bench = Bench::new();
    bench.until(State::ProbeRtt);
    assert!(bench.now > at(5000) && bench.now < at(6000));
    let began = bench.now;
    bench.run(RTT * 2);
    assert!(bench.bbr.in_flight <= PRODUCT / 2 + MTU);
    bench.run_while(|bench| bench.bbr.state == State::ProbeRtt);
    assert_eq!(bench.bbr.state, CRUISE, "the path is drained");
    let took = bench.now - began;
    assert!(took > 200 * MS && took < 400 * MS, "{took:?}");
    bench.run(RTT * 2);
    assert!(bench.bbr.bandwidth.get() > RATE * 9 / 10);
    assert!(bench.utilization(Duration::from_secs(1)) > 0.9);
}

/// Queues of the flow itself hide the delay of the path until it drains them.
#[test]
fn a_longer_delay_is_found_within_two_measurements() {
    let mut bench = Bench::new();
    bench.run(Duration::from_secs(1));
    bench.rtt = 2 * RTT;
    bench.run(Duration::from_secs(17));
    let measured = bench.bbr.min_rtt.get().unwrap();
    assert!(
        measured >= 2 * RTT && measured < 2 * RTT + 5 * MS,
        "{measured:?}"
    );
}

#[test]
fn samples_of_the_drained_path_are_app_limited() {
    let mut bbr = modelled();
    bbr.delivered = 1_000_000;
    bbr.in_flight = 50_000;
    assert!(!bbr.probe_rtt.limits(0));
    bbr.check_probe_rtt(at(6000), true);
    assert_eq!(bbr.state, State::ProbeRtt);
    for (delivered, limits) in [
        (999_999, false),
        (1_000_000, true),
        (1_050_000, true),
        (1_050_001, false),
    ] {
        assert_eq!(bbr.probe_rtt.limits(delivered), limits, "{delivered}");
    }
}

#[test]
fn startup_goes_on_after_a_measurement() {
    let mut bbr = modelled();
    bbr.check_probe_rtt(at(6000), true);
    bbr.round_begins = true;
    bbr.check_probe_rtt(at(6200), false);
    assert_eq!(bbr.state, State::ProbeRtt, "200 ms after it was drained");
    bbr.check_probe_rtt(at(6201), false);
    assert_eq!(bbr.state, State::Startup);
}

#[test]
fn the_window_before_comes_back() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    bbr.set_window(2 * PRODUCT);
    bbr.check_probe_rtt(at(6000), true);
    bbr.update_window(&acked(0));
    assert_eq!(bbr.window(), PRODUCT / 2);
    bbr.round_begins = true;
    bbr.check_probe_rtt(at(6202), false);
    assert_eq!(bbr.window(), 2 * PRODUCT);
}

#[test]
fn the_smallest_of_ten_seconds_counts_and_that_of_five_decides_when_to_measure() {
    let mut min_rtt = MinRtt::default();
    assert!(!min_rtt.update(at(0), Some(RTT)));
    assert!(!min_rtt.update(at(5000), Some(RTT * 2)));
    assert!(min_rtt.update(at(5001), Some(RTT * 2)), "expired");
    assert_eq!(min_rtt.get(), Some(RTT), "still remembered");
    min_rtt.schedule_probe(at(6000));
    assert!(!min_rtt.update(at(10_001), Some(RTT * 3)));
    assert_eq!(min_rtt.get(), Some(RTT * 2));
}
