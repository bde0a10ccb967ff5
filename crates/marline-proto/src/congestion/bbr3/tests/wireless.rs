//! Measurement and pacing that differ from the draft, and the controller with all extensions.

use super::*;

fn wireless(bench: Bench) -> Bench {
    Bench {
        bbr: Bbr3::with_settings(&ControllerConfig::new(MTU), Bbr3Config::WIRELESS),
        ..bench
    }
}

/// The times at which the path was drained to measure its delay.
fn measurements(bench: &mut Bench, duration: Duration) -> Vec<Duration> {
    let end = bench.now + duration;
    let mut times = Vec::new();
    while bench.now < end {
        bench.run_while(|bench| bench.bbr.state != State::ProbeRtt && bench.now < end);
        if bench.bbr.state == State::ProbeRtt {
            times.push(bench.now - Instant::EPOCH);
        }
        bench.run_while(|bench| bench.bbr.state == State::ProbeRtt);
    }
    times
}

#[test]
fn the_controller_with_all_parameters_is_called_wireless() {
    let all = Bbr3::with_settings(&ControllerConfig::new(MTU), Bbr3Config::WIRELESS);
    assert_eq!(
        (all.name(), all.spec()),
        ("wireless", Spec::named("wireless"))
    );
    assert_eq!(bbr3().name(), "bbr3");
}

#[test]
fn a_path_whose_delay_shows_between_probes_is_drained_every_half_minute() {
    let mut bench = wireless(Bench::new());
    let times = measurements(&mut bench, Duration::from_secs(65));
    assert_eq!(times.len(), 2, "{times:?}");
    assert!(times[0] > Duration::from_secs(25), "{times:?}");
}

#[test]
fn a_path_that_has_become_longer_is_measured_after_five_seconds() {
    let mut bench = wireless(Bench::new());
    bench.run(Duration::from_secs(1));
    bench.rtt = 2 * RTT;
    bench.until(State::ProbeRtt);
    assert!(bench.now < at(7500), "{:?}", bench.now);
}

#[test]
fn startup_is_not_interrupted_on_a_long_path() {
    let mut bench = wireless(Bench::with(100 * RATE, u64::MAX));
    bench.rtt = Duration::from_millis(1500);
    bench.run(Duration::from_secs(12));
    assert_eq!(bench.states, [State::Startup]);
}

#[test]
fn startup_is_paced_at_two_windows_a_round_trip() {
    let mut bench = wireless(Bench::with(100 * RATE, u64::MAX));
    for _ in 0..20 {
        bench.run(RTT / 4);
        // The window grows with the acknowledgment that the pacing rate is computed from.
        let window = bench.bbr.window() - MTU;
        let pacing = bench.bbr.pacing_rate(&bench.rtt_view(RTT));
        assert!(pacing * 101 / 100 >= 50 * window, "{pacing}, {window}");
    }
}

/// As a loss-based controller in slow start.
#[test]
fn startup_delivers_more_than_that_of_the_draft() {
    let delivered = |mut bench: Bench| {
        bench.run(RTT * 6);
        bench.delivered
    };
    let draft = delivered(Bench::with(100 * RATE, u64::MAX));
    let windows = delivered(wireless(Bench::with(100 * RATE, u64::MAX)));
    assert!(windows > draft * 11 / 10, "{windows}, the draft {draft}");
}

/// A slow path, whose model holds less than an initial window.
#[test]
fn the_window_of_startup_grows_with_three_initial_windows_whatever_was_measured() {
    let mut bench = wireless(Bench::with(RATE / 20, u64::MAX));
    let first = bench.bbr.initial_window;
    bench.run_while(|bench| bench.bbr.delivered_here < first * 3);
    assert_eq!(bench.bbr.state, State::Startup);
    let window = bench.bbr.window();
    assert!(window >= first * 4 - MTU, "{window}");
}

#[test]
fn drain_leaves_room_for_what_startup_lost() {
    for (mut bench, gain) in [(wireless(Bench::new()), 0.85), (Bench::new(), 0.5)] {
        bench.run_while(|bench| !matches!(bench.bbr.state, State::Drain { .. }));
        assert_eq!(bench.bbr.pacing_gain(), gain);
    }
}
