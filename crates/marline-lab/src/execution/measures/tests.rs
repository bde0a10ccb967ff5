use marline::observe::Event;
use marline::observe::events::{BundleAction, BundlePhase, BundleTrigger, BundleUpdated};

use super::*;

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

/// A transfer that began a second ago and took two.
fn measured() -> Measured {
    Measured {
        start: at(1_000_000_000),
        completion_s: 2.0,
        bytes: 1000,
        handshakes: 0,
    }
}

/// A probe of one connection that gets these decisions, a second apart.
fn probe(decisions: &[(BundleAction, BundlePhase)]) -> Probe {
    let probe = Probe::default();
    let make = probe.observers(true);
    let connection = marline::ConnectionInfo {
        side: marline::Side::Server,
        original_destination: marline::ConnectionId::default(),
        remote: ([10, 0, 0, 2], 4433).into(),
    };
    let mut watcher = make(&connection).unwrap();
    for (&(action, phase), fluctuations) in decisions.iter().zip(1..) {
        let event = Event::BundleUpdated(BundleUpdated {
            bundle: 0,
            path: None,
            trigger: BundleTrigger::Loss,
            action,
            phase,
            affected: Some(0),
            own: 0,
            gamma: 1.2,
            fluctuations,
            before: &[30_000, 21_000],
            after: &[24_000, 24_000],
        });
        watcher.on_event(at(500_000_000 + 1_000_000_000 * fluctuations), &event);
    }
    probe
}

#[test]
fn engine_actions_become_metrics() {
    let decisions = [
        (BundleAction::Synchronized, BundlePhase::SlowStart),
        (BundleAction::Exited, BundlePhase::CongestionAvoidance),
        (BundleAction::Equalized, BundlePhase::CongestionAvoidance),
    ];
    let outcome = measured().outcome(&probe(&decisions), None, true);
    let metric = |name: &str| outcome.metrics[name];
    assert_eq!(metric("bundle_decisions"), 3.0);
    assert_eq!(metric("bundle_fluctuations"), 3.0);
    assert_eq!(metric("bundle_left_slow_start_s"), 1.5);
    assert_eq!(metric("coalesced"), 0.0);
    let moments = outcome.series.unwrap().moments;
    assert_eq!(moments["synchronized"], [0.5]);
    assert_eq!(moments["exited"], [1.5]);
    assert_eq!(moments["equalized"], [2.5]);

    let still_in_slow_start = measured().outcome(&probe(&decisions[..1]), None, false);
    assert_eq!(still_in_slow_start.metrics["bundle_left_slow_start_s"], 2.0);
}

#[test]
fn without_a_bundle_there_are_no_bundle_metrics() {
    let outcome = measured().outcome(&probe(&[]), None, true);
    let mut names = outcome.metrics.keys();
    assert!(!names.any(|name| name.contains("bundle") || name == "coalesced"));
}

#[test]
fn ideal_time_adds_each_path_after_its_delay() {
    let path = |rtt_s, rate_bps| PathCapacity { rtt_s, rate_bps };
    let both = Ideal {
        first: path(0.02, 1e7 * OVERHEAD),
        others: vec![path(0.2, 1e7 * OVERHEAD)],
    };
    let alone = Ideal::of(both.first);
    // 90 ms alone, at 1250 bytes a millisecond, are 112.5 kB.
    assert_eq!(both.seconds(100_000, 0), alone.seconds(100_000, 0));
    let close = |measured: f64, expected: f64| {
        assert!((measured - expected).abs() < 1e-9, "{measured} {expected}");
    };
    close(both.seconds(112_500 + 250_000, 0), 0.02 + 0.09 + 0.1);
    close(both.seconds(362_500, 2), 0.04 + 0.02 + 0.09 + 0.1);
    close(both.goodput_bps(), 2e7);
}

#[test]
fn links_without_fixed_limits_have_no_ideal() {
    let of = |link: &str| {
        let spec = format!("title = 'x'\nlink = '{link}'\nworkload.objects = '1MB'\nrepeats = 2\n");
        let experiment = crate::scenario::Experiment::parse(&spec, "x.toml", &[]).unwrap();
        ideal_of(&experiment.cells[0].settings)
    };
    let fixed = "rate=8mbps,rtt=40ms";
    assert!(of(fixed).is_some());
    assert!(of("lte-a").is_some());
    for varying in ["blockage=5s/1s,blockage-rate=10%", "handover=5s"] {
        assert_eq!(of(&format!("{fixed},{varying}")), None, "{varying}");
    }
    assert_eq!(of("model=wifi,wifi.distance=10m@0s+60m@20s"), None);
}
