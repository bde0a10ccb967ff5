//! Section 5.4.

use super::*;

#[test]
fn sending_resumes_at_the_bandwidth_and_the_delay_is_not_measured() {
    let mut bench = Bench::new();
    bench.until(CRUISE);
    bench.paused = true;
    bench.run(Duration::from_secs(6));
    assert_eq!(bench.bytes_in_flight(), 0);
    let window = bench.bbr.window();
    let from = bench.states.len();
    bench.bbr.state = UP;
    bench.bbr.on_idle(bench.now, Duration::from_secs(5));
    let rate = bench.bbr.pacing_rate(&bench.rtt_view(RTT));
    assert_eq!(rate, bench.bbr.bandwidth_now() * 99 / 100, "without a gain");
    bench.bbr.state = CRUISE;
    bench.paused = false;
    bench.run(RTT * 4);
    assert!(!bench.states[from..].contains(&State::ProbeRtt));
    assert!(bench.bbr.window() >= window);
}

#[test]
fn a_pause_can_end_a_measurement() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    bbr.app_limited = true;
    bbr.check_probe_rtt(at(6000), true);
    bbr.on_idle(at(6200), MS);
    assert_eq!(bbr.state, State::ProbeRtt);
    bbr.on_idle(at(6201), MS);
    assert_eq!(bbr.state, CRUISE);
}

#[test]
fn losing_all_that_is_in_flight_is_no_pause() {
    let mut bbr = modelled();
    bbr.on_idle(at(10), MS);
    assert!(!bbr.was_idle);
}
