use std::time::Duration;

use super::*;
use crate::congestion::slow_start::NoExit;
use crate::congestion::{Controller, ControllerConfig, Coordinated, Phase};
use crate::samples::{AckSample, CeSample, LossSample, RttView};

const MTU: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn cubic(packets: u64) -> Cubic {
    let mut cubic = Cubic::new(ControllerConfig {
        initial_window: packets * MTU,
        slow_start_exit: Box::new(NoExit),
        ..ControllerConfig::new(MTU)
    });
    cubic.exit_slow_start();
    cubic
}

fn at(elapsed: Duration) -> Instant {
    Instant::EPOCH + Duration::from_secs(1) + elapsed
}

fn ack(now: Instant, bytes: u64, app_limited: bool) -> AckSample {
    AckSample {
        bytes,
        bytes_in_flight: 0,
        prior_in_flight: bytes,
        largest_acked: 0,
        largest_sent: 0,
        largest_acked_sent_at: now - RTT,
        rtt: RttView {
            latest: RTT,
            adjusted: RTT,
            smoothed: RTT,
            min: RTT,
            variance: Duration::ZERO,
        },
        rtt_updated: true,
        rate: None,
        app_limited,
    }
}

fn lose(cubic: &mut Cubic, now: Instant, sent_at: Instant) {
    cubic.on_loss(
        now,
        &LossSample {
            bytes: MTU,
            packets: 1,
            largest_lost: 0,
            latest_sent_at: sent_at,
            largest_sent: 0,
            bytes_in_flight: 0,
            persistent: false,
        },
    );
}

/// Acknowledges a full window every round trip, packet by packet; returns the window after each.
fn rounds(cubic: &mut Cubic, from: Duration, count: u32) -> Vec<u64> {
    (1..=count)
        .map(|round| {
            let now = at(from + RTT * round);
            for _ in 0..cubic.window() / MTU {
                cubic.on_ack(now, &ack(now, MTU, false));
            }
            cubic.window()
        })
        .collect()
}

#[test]
fn returns_to_the_plateau_at_k_then_probes_beyond() {
    let mut cubic = cubic(1000);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    assert_eq!(cubic.window(), 700 * MTU);
    // K = cbrt((1000 - 700) / 0.4) = 9.086 s
    let windows = rounds(&mut cubic, Duration::ZERO, 160);
    let plateau = windows[91];
    assert!(plateau.abs_diff(1000 * MTU) < 5 * MTU, "{plateau}");
    assert!(windows.is_sorted(), "never shrinks without a loss");
    let step = |n: usize| windows[n] - windows[n - 1];
    assert!(step(20) > step(60), "concave before the plateau");
    assert!(step(120) < step(150), "convex after it");
    // 0.4 * (14.9 - 9.086)^3 + 1000 = 1078
    assert!(
        windows[149].abs_diff(1078 * MTU) < 5 * MTU,
        "{}",
        windows[149]
    );
}

#[test]
fn small_windows_grow_like_reno() {
    let mut cubic = cubic(10);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    assert_eq!(cubic.window(), 7 * MTU);
    // 3 * (1 - 0.7) / (1 + 0.7) = 0.53 datagrams a round below the old window
    let windows = rounds(&mut cubic, Duration::ZERO, 5);
    assert!((8_800..9_200).contains(&windows[4]), "{windows:?}");
}

#[test]
fn a_second_loss_below_the_plateau_lowers_it_further() {
    let mut cubic = cubic(1000);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    lose(&mut cubic, at(RTT * 2), at(RTT));
    assert_eq!(cubic.window(), 490 * MTU);
    assert_eq!(cubic.growth.plateau.map(f64::round), Some(595_000.0));
}

#[test]
fn a_spurious_loss_is_undone() {
    let mut cubic = cubic(1000);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    cubic.on_spurious_loss(at(RTT), Instant::EPOCH);
    assert_eq!(cubic.window(), 1000 * MTU);
    assert_eq!(cubic.phase(), Phase::CongestionAvoidance);
    let windows = rounds(&mut cubic, RTT, 10);
    assert!(windows[9] >= 1000 * MTU);
}

#[test]
fn marks_cannot_be_undone() {
    let mut cubic = cubic(1000);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    cubic.on_ce(
        at(RTT),
        &CeSample {
            sent_at: Instant::EPOCH,
            new_ce: 1,
            l4s: false,
            largest_sent: 0,
        },
    );
    cubic.on_spurious_loss(at(RTT), Instant::EPOCH);
    assert_eq!(cubic.window(), 700 * MTU);
}

#[test]
fn time_without_data_does_not_count() {
    let mut cubic = cubic(1000);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    let before = rounds(&mut cubic, Duration::ZERO, 20)[19];
    let pause = Duration::from_secs(2);
    cubic.on_ack(at(pause), &ack(at(pause), MTU, true));
    let long = Duration::from_secs(600);
    let after = rounds(&mut cubic, long, 1)[0];
    assert!(
        after - before < 10 * MTU,
        "ten minutes of pause make no jump: {before} to {after}"
    );
}

#[test]
fn backoff_is_configurable() {
    let mut cubic = Cubic::new(ControllerConfig {
        initial_window: 100 * MTU,
        backoff: Some(0.85),
        ..ControllerConfig::new(MTU)
    });
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    assert_eq!(cubic.window(), 85 * MTU);
}

/// At the minimum window the back-off leaves more than it says.
#[test]
fn no_plateau_is_below_the_window_that_congestion_left() {
    let mut cubic = cubic(2);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    lose(&mut cubic, at(RTT * 2), at(RTT));
    assert_eq!(cubic.window(), 2 * MTU);
    rounds(&mut cubic, RTT * 3, 1);
    assert_eq!(cubic.growth.epoch.map(|it| it.plateau), Some(2_000.0));
    assert_eq!(cubic.growth.epoch.map(|it| it.k), Some(0.0));
}

/// On either side of the plateau growth is unaffected if the window is set to its present value.
#[test]
fn a_window_set_where_it_is_changes_nothing() {
    for set_at in [40, 140] {
        let mut set = cubic(1000);
        lose(&mut set, at(Duration::ZERO), Instant::EPOCH);
        let mut alone = cubic(1000);
        lose(&mut alone, at(Duration::ZERO), Instant::EPOCH);
        rounds(&mut set, Duration::ZERO, set_at);
        rounds(&mut alone, Duration::ZERO, set_at);
        set.set_window(set.window());
        let windows = rounds(&mut set, RTT * set_at, 40);
        let expected = rounds(&mut alone, RTT * set_at, 40);
        assert_eq!(windows, expected);
    }
}

#[test]
fn a_window_that_is_raised_grows_as_at_that_height() {
    let mut raised = cubic(1000);
    lose(&mut raised, at(Duration::ZERO), Instant::EPOCH);
    rounds(&mut raised, Duration::ZERO, 10);
    raised.set_window(1100 * MTU);
    assert_eq!(raised.growth.plateau, Some(1_000_000.0));
    // cbrt(100 / 0.4) = 6.3 s after the plateau: 0.4 * (7.3^3 - 6.3^3) = 55.6 in a second
    let windows = rounds(&mut raised, RTT * 10, 10);
    let growth = windows[9] / MTU - 1100;
    assert!((50..60).contains(&growth), "{growth}");
}

/// Without a plateau the window that slow start left is one.
#[test]
fn the_end_of_slow_start_begins_a_plateau() {
    let mut cubic = cubic(1000);
    let windows = rounds(&mut cubic, Duration::ZERO, 50);
    assert_eq!(cubic.growth.plateau, Some(1_000_000.0));
    assert_eq!(cubic.growth.epoch.map(|epoch| epoch.k), Some(0.0));
    // Reno gains 50 datagrams in 50 rounds, 0.4 * 5^3 is the same.
    assert!(windows[49].abs_diff(1050 * MTU) < 5 * MTU);

    cubic.enter_slow_start();
    cubic.set_window(2000 * MTU);
    cubic.exit_slow_start();
    let next = rounds(&mut cubic, RTT * 50, 1)[0];
    assert!(next < 2002 * MTU, "{next}");
    assert_eq!(cubic.growth.plateau, Some(2_000_000.0));
}

#[test]
fn larger_datagrams_make_no_jump() {
    let mut cubic = cubic(1000);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    let before = rounds(&mut cubic, Duration::ZERO, 10)[9];
    cubic.on_mtu(2 * MTU);
    let after = rounds(&mut cubic, RTT * 10, 1)[0];
    assert!(after - before < 15 * MTU, "{before} to {after}");
}

/// 100 datagrams in the window, 2 of 100 ms after the start of an epoch.
fn grown(acked: u64, now: Instant) -> GrowthSample {
    GrowthSample {
        now,
        acked,
        window: 100 * MTU,
        unit: MTU as f64,
        share: 1.0,
        rtt: RTT * 10,
        backoff: 0.7,
        flows: 1.0,
    }
}

/// alpha = 3 N^2 (1 - beta) / (1 + beta), with beta = (N - 1 + 0.7) / N.
#[test]
fn emulated_flows_grow_like_as_many_of_reno() {
    for (flows, backoff, alpha) in [
        (1.0, 0.7, 0.529_411_764_705_882),
        (2.0, 0.85, 0.972_972_972_972_973),
        (3.0, 0.9, 1.421_052_631_578_947),
    ] {
        let growth = reno_friendly_growth(flows, backoff);
        assert!((growth - alpha).abs() < 1e-12, "{growth}");
        for (prior, alpha) in [(100_001.0, alpha), (100_000.0, flows)] {
            let mut curve = Curve {
                plateau: Some(100_000.0),
                prior,
                ..Curve::default()
            };
            let sample = GrowthSample {
                flows,
                backoff,
                ..grown(100 * MTU, at(Duration::ZERO))
            };
            curve.grow(&sample);
            let reno = curve.epoch.expect("it began").reno;
            assert!((reno - 100_000.0 - alpha * 1_000.0).abs() < 1e-6, "{reno}");
        }
    }
}

/// RFC 9438, sections 4.2 and 4.4: W_cubic(t + RTT), at most half as much again, a part for each byte.
#[test]
fn growth_is_a_part_of_the_way_to_the_target() {
    let epoch = |plateau: u64| {
        let mut curve = Curve {
            plateau: Some((plateau * MTU) as f64),
            ..Curve::default()
        };
        curve.grow(&grown(0, at(Duration::ZERO)));
        curve
    };
    let after = at(Duration::from_secs(2));
    // 200 + 0.4 * (3 - cbrt(250))^3 = 185.6, more than 150 datagrams.
    let mut limited = epoch(200);
    assert_eq!(limited.grow(&grown(10 * MTU, after)), 105 * MTU);
    // 110 + 0.4 * (3 - cbrt(25))^3 = 110.0
    let mut free = epoch(110);
    assert_eq!(free.grow(&grown(100 * MTU, after)), 110 * MTU);

    let mut slow = epoch(200);
    assert_eq!(slow.grow(&grown(1, after)), 100 * MTU, "half a byte");
    assert_eq!(slow.grow(&grown(1, after)), 100 * MTU + 1);
}

/// RFC 9438, section 4.3: alpha is 1 from the window before the congestion event on.
#[test]
fn reno_friendly_growth_is_a_datagram_a_round_from_the_earlier_window_on() {
    for (prior, alpha) in [(100_001.0, 3.0 * 0.3 / 1.7), (100_000.0, 1.0)] {
        let mut curve = Curve {
            plateau: Some(100_000.0),
            prior,
            ..Curve::default()
        };
        curve.grow(&grown(100 * MTU, at(Duration::ZERO)));
        let reno = curve.epoch.expect("it began").reno;
        assert!((reno - 100_000.0 - alpha * 1_000.0).abs() < 1e-6, "{reno}");
    }
}

/// RFC 9438, section 4.7: only below the earlier plateau.
#[test]
fn fast_convergence_needs_a_window_below_the_plateau() {
    let mut curve = Curve::default();
    for (window, plateau) in [(1000, 1000.0), (1000, 1000.0), (999, 999.0 * 1.7 / 2.0)] {
        curve.on_congestion(window, 0.7);
        assert_eq!(curve.plateau, Some(plateau));
    }
}

#[test]
fn window_that_a_coordinator_raises_before_an_epoch_leaves_the_plateau() {
    for (moved, plateau) in [(false, 100.0), (true, 90.0)] {
        let mut curve = Curve::default();
        curve.on_congestion(90 * MTU, 0.7);
        if moved {
            curve.on_window_set(63 * MTU, 100 * MTU);
        }
        curve.grow(&grown(MTU, at(Duration::ZERO)));
        let epoch = curve.epoch.expect("it began");
        assert_eq!(epoch.plateau, plateau * MTU as f64);
    }
}

/// A changing share begins an epoch, but does not raise the plateau.
#[test]
fn new_share_begins_an_epoch_with_the_same_plateau() {
    let mut curve = Curve {
        plateau: Some(90_000.0),
        is_moved: true,
        ..Curve::default()
    };
    curve.grow(&grown(MTU, at(Duration::ZERO)));
    curve.is_moved = false;
    let sample = GrowthSample {
        share: 0.5,
        ..grown(MTU, at(RTT))
    };
    curve.grow(&sample);
    let epoch = curve.epoch.expect("another");
    assert_eq!((epoch.start, epoch.plateau), (at(RTT), 90_000.0));
}

#[test]
fn datagram_size_and_set_windows_scale_an_epoch() {
    let mut curve = Curve::default();
    curve.grow(&grown(0, at(Duration::ZERO)));
    let larger = GrowthSample {
        unit: 2.0 * MTU as f64,
        ..grown(0, at(RTT))
    };
    curve.grow(&larger);
    let epoch = curve.epoch.expect("it began");
    assert_eq!((epoch.start, epoch.unit), (at(Duration::ZERO), 2_000.0));
    curve.on_window_set(100 * MTU, 150 * MTU);
    assert_eq!(curve.epoch.expect("the same").reno, 150_000.0);
}

/// RFC 9438, section 5.8.
#[test]
fn time_without_anything_in_flight_does_not_count() {
    let [mut idle, mut busy] = [(); 2].map(|()| {
        let mut cubic = cubic(1000);
        lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
        rounds(&mut cubic, Duration::ZERO, 20);
        cubic
    });
    let pause = Duration::from_secs(60);
    idle.on_idle(at(RTT * 20 + pause), pause);
    let busy = rounds(&mut busy, RTT * 20, 10)[9];
    let idle = rounds(&mut idle, RTT * 20 + pause, 10)[9];
    // The round trip of the first acknowledgment counts as idle too.
    assert!(idle.abs_diff(busy) < 10 * MTU, "{idle} and {busy}");
}

/// Persistent congestion means that the path is another one.
#[test]
fn collapse_forgets_the_plateau_and_a_spurious_one_restores_it() {
    let mut cubic = cubic(1000);
    lose(&mut cubic, at(Duration::ZERO), Instant::EPOCH);
    let before = cubic.growth.plateau;
    let loss = LossSample {
        bytes: MTU,
        packets: 2,
        largest_lost: 0,
        latest_sent_at: at(RTT),
        largest_sent: 0,
        bytes_in_flight: 0,
        persistent: true,
    };
    cubic.on_loss(at(RTT * 2), &loss);
    assert_eq!(cubic.growth.plateau, None);
    cubic.on_spurious_loss(at(RTT * 3), at(RTT));
    assert_eq!(cubic.growth.plateau, before);
}
