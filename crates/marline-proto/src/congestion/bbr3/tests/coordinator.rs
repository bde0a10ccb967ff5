//! Windows, bandwidths and thresholds set by a coordinator.

use super::*;

#[test]
fn a_lowered_bandwidth_holds_until_packets_sent_since_show_more() {
    let mut bench = Bench::new();
    bench.run(Duration::from_secs(1));
    bench.bbr.set_bandwidth(RATE / 5);
    assert_eq!(bench.bbr.bandwidth(), Some(RATE / 5));
    let rate = bench.bbr.pacing_rate(&bench.rtt_view(RTT));
    assert!(rate <= RATE / 4);
    assert!(bench.bbr.window() <= 2 * PRODUCT);
    bench.run(RTT / 2);
    assert_eq!(bench.bbr.bandwidth(), Some(RATE / 5), "the old flight");
    bench.run(Duration::from_secs(12));
    let bandwidth = bench.bbr.bandwidth().unwrap();
    assert!(bandwidth > RATE * 9 / 10, "{bandwidth}");
}

#[test]
fn a_raised_bandwidth_is_replaced_by_measurements() {
    let mut bench = Bench::new();
    bench.run(Duration::from_secs(1));
    bench.bbr.set_bandwidth(2 * RATE);
    assert_eq!(bench.bbr.bandwidth(), Some(2 * RATE));
    bench.run(Duration::from_secs(12));
    let bandwidth = bench.bbr.bandwidth.get();
    assert!(bandwidth < RATE * 11 / 10, "{bandwidth}");
}

#[test]
fn a_window_set_before_the_model_is_the_initial_window() {
    let mut bbr = bbr3();
    bbr.set_window(5 * MTU);
    assert_eq!(bbr.window(), 5 * MTU);
    assert_eq!(bbr.product(1.0), 5 * MTU);
    assert_eq!(bbr.pacing_rate(&acked(0).rtt), 415_500);
}

#[test]
fn slow_start_is_entered_without_bounds_and_left_by_drain() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    assert!(matches!(bbr.state, State::Drain { .. }));
    bbr.bounds.in_flight = PRODUCT;
    bbr.enter_slow_start();
    assert_eq!((bbr.state, bbr.bounds), (State::Startup, Bounds::default()));
}
