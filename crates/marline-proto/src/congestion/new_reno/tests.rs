use std::time::Duration;

use super::*;
use crate::Instant;
use crate::congestion::{Controller, ControllerConfig, Coordinated, Phase};
use crate::samples::{AckSample, LossSample, RttView};

const MTU: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(1000 + millis)
}

fn rtt() -> RttView {
    RttView {
        latest: RTT,
        adjusted: RTT,
        smoothed: RTT,
        min: RTT,
        variance: Duration::ZERO,
    }
}

fn ack(sent_at: Instant, bytes: u64) -> AckSample {
    AckSample {
        bytes,
        bytes_in_flight: 0,
        prior_in_flight: bytes,
        largest_acked: 0,
        largest_sent: 0,
        largest_acked_sent_at: sent_at,
        rtt: rtt(),
        rtt_updated: true,
        rate: None,
        app_limited: false,
    }
}

fn loss(sent_at: Instant, persistent: bool) -> LossSample {
    LossSample {
        bytes: MTU,
        packets: 1,
        largest_lost: 0,
        latest_sent_at: sent_at,
        largest_sent: 0,
        bytes_in_flight: 0,
        persistent,
    }
}

fn reno() -> NewReno {
    NewReno::new(ControllerConfig {
        initial_window: 20 * MTU,
        ..ControllerConfig::new(MTU)
    })
}

#[test]
fn slow_start_grows_by_what_is_acknowledged() {
    let mut reno = reno();
    reno.on_ack(at(100), &ack(at(0), 3 * MTU));
    assert_eq!(reno.window(), 23 * MTU);
    assert_eq!(reno.phase(), Phase::SlowStart);
    assert_eq!(reno.ssthresh(), None);
}

#[test]
fn recovery_lasts_until_a_later_packet_is_acknowledged() {
    let mut reno = reno();
    reno.on_loss(at(100), &loss(at(0), false));
    assert_eq!((reno.window(), reno.phase()), (10 * MTU, Phase::Recovery));
    reno.on_ack(at(150), &ack(at(50), 10 * MTU));
    assert_eq!((reno.window(), reno.phase()), (10 * MTU, Phase::Recovery));
    reno.on_ack(at(201), &ack(at(101), 5 * MTU));
    assert_eq!(reno.phase(), Phase::CongestionAvoidance);
    reno.on_ack(at(201), &ack(at(101), 5 * MTU));
    assert_eq!(reno.window(), 11 * MTU, "one datagram a round");
}

#[test]
fn a_spurious_loss_is_undone_but_not_a_real_one() {
    let mut reno = reno();
    reno.on_loss(at(100), &loss(at(0), false));
    reno.on_spurious_loss(at(150), at(120));
    assert_eq!(reno.window(), 10 * MTU, "of another flight");
    reno.on_spurious_loss(at(150), at(0));
    assert_eq!((reno.window(), reno.phase()), (20 * MTU, Phase::SlowStart));
    reno.on_spurious_loss(at(150), at(0));
    assert_eq!(reno.window(), 20 * MTU, "once");
}

#[test]
fn persistent_congestion_starts_over() {
    let mut reno = reno();
    reno.on_loss(at(1000), &loss(at(900), true));
    assert_eq!(reno.window(), 2 * MTU);
    assert_eq!(reno.ssthresh(), Some(10 * MTU));
    reno.on_ack(at(1100), &ack(at(1001), 2 * MTU));
    assert_eq!(reno.window(), 4 * MTU);
}

#[test]
fn acknowledged_bytes_count_after_a_spurious_loss_and_after_a_collapse() {
    let nearly_a_round = || {
        let mut reno = reno();
        reno.exit_slow_start();
        reno.on_loss(at(100), &loss(at(0), false));
        reno.on_ack(at(201), &ack(at(101), 9 * MTU));
        assert_eq!(reno.window(), 10 * MTU);
        reno
    };
    let mut undone = nearly_a_round();
    undone.on_spurious_loss(at(210), at(0));
    undone.on_ack(at(220), &ack(at(120), 11 * MTU));
    assert_eq!(undone.window(), 21 * MTU);

    let mut collapsed = nearly_a_round();
    collapsed.on_loss(at(210), &loss(at(0), true));
    collapsed.on_ack(at(320), &ack(at(220), 8 * MTU));
    assert_eq!(collapsed.window(), 10 * MTU);
    collapsed.on_ack(at(320), &ack(at(220), MTU));
    assert_eq!(collapsed.window(), 11 * MTU);
}

#[test]
fn paces_faster_than_the_window_needs() {
    let mut reno = reno();
    assert_eq!(reno.pacing_rate(&rtt()), 2 * 20 * MTU * 10);
    reno.exit_slow_start();
    assert_eq!(reno.pacing_rate(&rtt()), 20 * MTU * 10 * 5 / 4);
}

fn grown(acked: u64) -> GrowthSample {
    GrowthSample {
        now: at(0),
        acked,
        window: 10 * MTU,
        unit: MTU as f64,
        share: 1.0,
        rtt: RTT,
        backoff: 0.5,
        flows: 1.0,
    }
}

#[test]
fn emulated_flows_add_a_datagram_each_in_a_round_trip() {
    for flows in [2, 4] {
        let mut growth = Additive::default();
        let sample = GrowthSample {
            flows: flows as f64,
            ..grown(10 * MTU)
        };
        assert_eq!(growth.grow(&sample), (10 + flows) * MTU);
    }
}

/// Appropriate byte counting: what exceeds a window counts for the next one.
#[test]
fn bytes_beyond_a_window_count_for_the_next() {
    let mut growth = Additive::default();
    assert_eq!(growth.grow(&grown(9 * MTU)), 10 * MTU);
    assert_eq!(growth.grow(&grown(6 * MTU)), 11 * MTU);
    assert_eq!(growth.acked, 5 * MTU);
}

/// RFC 9002, section 7.3.3: the window grows by a datagram for each window acknowledged since.
#[test]
fn bytes_acknowledged_before_a_loss_do_not_count() {
    let mut growth = Additive::default();
    growth.grow(&grown(9 * MTU));
    growth.on_congestion(10 * MTU, 0.5);
    assert_eq!(growth.grow(&grown(9 * MTU)), 10 * MTU);
}

#[test]
fn bytes_acknowledged_before_a_window_was_set_count_for_one_datagram_at_most() {
    let mut growth = Additive::default();
    growth.grow(&grown(9 * MTU));
    growth.on_window_set(10 * MTU, 2 * MTU);
    assert_eq!(growth.acked, 2 * MTU);
    growth.on_window_set(2 * MTU, 9 * MTU);
    assert_eq!(growth.acked, 2 * MTU);
}
