//! Sections 5.5.2 to 5.5.9, 5.6.2 and 5.6.3.

use super::*;

#[test]
fn the_bandwidth_is_the_largest_of_two_cycles() {
    let mut bandwidth = MaxBandwidth::default();
    assert_eq!(bandwidth.get(), 0);
    bandwidth.update(100);
    bandwidth.update(80);
    bandwidth.advance();
    bandwidth.update(50);
    assert_eq!(bandwidth.get(), 100);
    bandwidth.advance();
    assert_eq!(bandwidth.get(), 50);
    bandwidth.advance();
    assert_eq!(bandwidth.get(), 50, "nothing newer was measured");
}

#[test]
fn app_limited_samples_count_if_they_are_larger() {
    let mut bbr = bbr3();
    let limited = |rate, prior| RateSample {
        app_limited: true,
        ..rated(rate, prior)
    };
    bbr.update_bandwidth(&rated(1_000_000, 0));
    bbr.bandwidth.advance();
    bbr.bandwidth.advance();
    bbr.update_bandwidth(&limited(500_000, 100_000));
    assert_eq!(bbr.bandwidth.get(), 1_000_000);
    bbr.update_bandwidth(&limited(2_000_000, 200_000));
    assert_eq!(bbr.bandwidth.get(), 2_000_000);
}

#[test]
fn bytes_beyond_what_the_bandwidth_explains_are_extra() {
    let burst = |bytes, round, is_startup| AckedBurst {
        bytes,
        bandwidth: 1_000_000,
        round,
        window: 30_000,
        is_startup,
    };
    let mut extra = ExtraAcked::default();
    extra.update(at(0), &burst(10_000, 0, true));
    assert_eq!(extra.get(), 10_000);
    extra.update(at(5), &burst(10_000, 0, true));
    assert_eq!(extra.get(), 15_000, "20 000 in 5 ms that explain 5000");
    extra.update(at(6), &burst(1_000_000, 0, true));
    assert_eq!(extra.get(), 30_000, "not more than the window");
    extra.restart(at(2000));
    extra.update(at(2000), &burst(1000, 2, true));
    assert_eq!(extra.get(), 1000, "a round of startup");
    extra.update(at(2000), &burst(0, 10, false));
    assert_eq!(extra.get(), 30_000, "ten rounds afterwards");
    extra.update(at(4000), &burst(500, 11, false));
    assert!(extra.get() < 30_000);
}

#[test]
fn the_window_has_room_for_aggregated_acknowledgments() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    let burst = AckedBurst {
        bytes: 40_000,
        bandwidth: RATE,
        round: 0,
        window: PRODUCT,
        is_startup: false,
    };
    bbr.extra_acked.update(at(0), &burst);
    assert_eq!(bbr.max_in_flight(), 2 * PRODUCT + 40_000);
}

/// A margin of 1 % drains queues; before the first sample the initial window sets the pace.
#[test]
fn the_pacing_rate_follows_gain_and_bandwidth() {
    let mut bbr = bbr3();
    let rtt = acked(0).rtt;
    assert_eq!(bbr.pacing_rate(&rtt), 831_000, "2.77 * 12 000 / 0.04");
    bbr.on_ack(at(40), &acked(0));
    bbr.bandwidth.update(100_000);
    bbr.update_pacing_rate(&acked(0));
    assert_eq!(bbr.pacing_rate(&rtt), 831_000, "startup does not slow down");
    bbr.bandwidth.update(1_000_000);
    bbr.update_pacing_rate(&acked(0));
    assert_eq!(bbr.pacing_rate(&rtt), 2_742_300);
    bbr.exit_slow_start();
    bbr.state = CRUISE;
    bbr.update_pacing_rate(&acked(0));
    assert_eq!(bbr.pacing_rate(&rtt), 990_000);
}

#[test]
fn a_quantum_is_what_a_millisecond_delivers_within_bounds() {
    let mut bbr = bbr3();
    for (rate, quantum) in [
        (1_000, 2_400),
        (10_000_000, 10_000),
        (1_000_000_000, 65_536),
    ] {
        bbr.pacing_rate = Some(rate);
        assert_eq!(bbr.send_quantum(), quantum);
    }
}
