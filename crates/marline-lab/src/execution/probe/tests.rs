use marline::observe::Event;
use marline::observe::events::{
    BundleAction, BundlePhase, BundleTrigger, BundleUpdated, CongestionStateUpdated, Ecn,
    LossTrigger, MetricsUpdated, PacketKind, PacketLost, PacketSent,
};

use marline::{Instant, MakeObserver, PathId};

use super::{EngineAction, Probe, RoundTrips, SeenBundle};

fn observer(make: &MakeObserver) -> Box<dyn marline::observe::Observer> {
    let connection = marline::ConnectionInfo {
        side: marline::Side::Server,
        original_destination: marline::ConnectionId::default(),
        remote: ([10, 0, 0, 2], 4433).into(),
    };
    make(&connection).unwrap()
}

fn sent() -> Event<'static> {
    Event::PacketSent(PacketSent {
        path: PathId::INITIAL,
        kind: PacketKind::OneRtt,
        number: Some(1),
        size: 1200,
        payload: &[],
        ecn: Ecn::NotEct,
        datagram: 0,
        is_mtu_probe: false,
        trigger: None,
    })
}

fn lost(is_mtu_probe: bool) -> Event<'static> {
    Event::PacketLost(PacketLost {
        path: PathId::INITIAL,
        kind: PacketKind::OneRtt,
        number: 1,
        size: 1200,
        is_mtu_probe,
        trigger: LossTrigger::ReorderingThreshold,
    })
}

fn metrics(congestion_window: u64, ssthresh: Option<u64>) -> Event<'static> {
    Event::MetricsUpdated(MetricsUpdated {
        congestion_window,
        ssthresh,
        ..MetricsUpdated::default()
    })
}

fn recovery() -> Event<'static> {
    Event::CongestionStateUpdated(CongestionStateUpdated {
        path: PathId::INITIAL,
        old: Some("slow_start"),
        new: "recovery",
        trigger: None,
    })
}

#[test]
fn a_loss_that_ends_slow_start_is_one_event() {
    let probe = Probe::default();
    let mut watcher = observer(&probe.observers(false));
    let at = Instant::from_nanos;
    watcher.on_event(at(1), &metrics(38_400, None));
    for _ in 0..7 {
        watcher.on_event(at(2), &sent());
    }
    watcher.on_event(at(3), &lost(true));
    watcher.on_event(at(3), &lost(false));
    watcher.on_event(at(3), &metrics(19_200, Some(19_200)));
    watcher.on_event(at(3), &recovery());
    let seen = probe.seen().clone();
    assert_eq!((seen.fluctuations, seen.packets_lost), (1, 1));
    let first = seen.first_fluctuation.unwrap();
    assert_eq!(
        (first.at, first.packets_sent, first.window),
        (at(3), 7, 38_400)
    );

    watcher.on_event(at(9), &recovery());
    assert_eq!(
        probe.seen().fluctuations,
        2,
        "a later loss counts separately"
    );
    assert_eq!(probe.seen().first_fluctuation, Some(first));
}

#[test]
fn rising_delays_that_end_slow_start_are_an_event() {
    let probe = Probe::default();
    let mut watcher = observer(&probe.observers(false));
    watcher.on_event(Instant::from_nanos(5), &metrics(50_000, Some(50_000)));
    watcher.on_event(Instant::from_nanos(6), &metrics(50_100, Some(50_000)));
    assert_eq!(probe.seen().fluctuations, 1);
}

fn decided(
    action: BundleAction,
    phase: BundlePhase,
    affected: usize,
    own: usize,
    fluctuations: u64,
) -> Event<'static> {
    Event::BundleUpdated(BundleUpdated {
        bundle: 4,
        path: None,
        trigger: BundleTrigger::Loss,
        action,
        phase,
        affected: Some(affected),
        own,
        gamma: 1.2,
        fluctuations,
        before: &[30_000, 21_000],
        after: &[24_000, 24_000],
    })
}

#[test]
fn each_end_of_slow_start_is_an_event() {
    let probe = Probe::default();
    let mut watcher = observer(&probe.observers(false));
    let at = Instant::from_nanos;
    watcher.on_event(at(1), &metrics(50_000, Some(50_000)));
    watcher.on_event(at(1), &metrics(40_000, None));
    assert_eq!(probe.seen().fluctuations, 1);
    watcher.on_event(at(2), &metrics(60_000, Some(60_000)));
    watcher.on_event(at(3), &metrics(60_100, Some(60_000)));
    assert_eq!(probe.seen().fluctuations, 2);
}

#[test]
fn a_member_made_to_leave_slow_start_has_no_event() {
    let probe = Probe::default();
    let make = probe.observers(false);
    let (mut one, mut other) = (observer(&make), observer(&make));
    let at = Instant::from_nanos;
    let exit = |own| {
        let (action, phase) = (BundleAction::Exited, BundlePhase::CongestionAvoidance);
        decided(action, phase, 1, own, 8)
    };
    other.on_event(at(5), &metrics(21_000, Some(21_000)));
    one.on_event(at(5), &exit(0));
    one.on_event(at(5), &metrics(30_000, Some(30_000)));
    other.on_event(at(5), &exit(1));
    other.on_event(at(5), &metrics(21_000, Some(21_000)));
    assert_eq!(probe.seen().fluctuations, 1);
    let bundle = probe.seen().bundles[&(1, 4)];
    assert_eq!(bundle.left_slow_start, Some(at(5)));
}

#[test]
fn decisions_count_once_for_all_members() {
    let probe = Probe::default();
    let make = probe.observers(true);
    let mut members = [observer(&make), observer(&make)];
    let at = Instant::from_nanos;
    let mut report = |now, action, phase, fluctuations| {
        for (own, member) in members.iter_mut().enumerate() {
            member.on_event(at(now), &decided(action, phase, 0, own, fluctuations));
        }
    };
    let search = BundlePhase::SlowStart;
    report(1, BundleAction::Synchronized, search, 1);
    probe.reset();
    report(2, BundleAction::Coalesced, search, 1);
    report(3, BundleAction::Synchronized, search, 2);
    report(4, BundleAction::Exited, BundlePhase::CongestionAvoidance, 3);
    report(5, BundleAction::None, BundlePhase::CongestionAvoidance, 3);
    let avoid = BundlePhase::CongestionAvoidance;
    report(6, BundleAction::EqualizedRates, avoid, 3);
    let seen = probe.seen().clone();
    assert_eq!(
        seen.bundles[&(1, 4)],
        SeenBundle {
            decisions: 3,
            coalesced: 1,
            fluctuations: 3,
            left_slow_start: Some(at(4)),
        }
    );
    assert_eq!(
        seen.engine_actions,
        [
            (EngineAction::Synchronized, at(1)),
            (EngineAction::Synchronized, at(3)),
            (EngineAction::Exited, at(4)),
            (EngineAction::Equalized, at(6)),
        ]
    );
    // Bundles of another endpoint have numbers of their own.
    let (action, phase) = (BundleAction::Split, BundlePhase::SlowStart);
    observer(&probe.observers(false)).on_event(at(7), &decided(action, phase, 0, 0, 0));
    assert_eq!(probe.seen().bundles.len(), 2);
}

#[test]
fn counters_are_shared_and_series_are_per_connection() {
    let probe = Probe::default();
    let make = probe.observers(true);
    let (mut one, mut other) = (observer(&make), observer(&make));
    one.on_event(Instant::from_nanos(1), &sent());
    probe.reset();
    one.on_event(Instant::from_nanos(2), &sent());
    other.on_event(Instant::from_nanos(2), &sent());
    other.on_event(Instant::from_nanos(2), &metrics(9_000, None));
    other.on_event(Instant::from_nanos(3), &metrics(9_000, None));
    let seen = probe.seen();
    assert_eq!(seen.packets_sent, 2, "counters are reset");
    assert_eq!(seen.paths.len(), 2);
    assert_eq!(
        seen.paths[1].window.len(),
        1,
        "equal values are recorded once"
    );
}

#[test]
fn quantiles_of_round_trips_are_exact_to_a_tenth_of_a_millisecond() {
    let mut rtts = RoundTrips::default();
    assert_eq!(rtts.quantile_ms(0.5), None);
    (1..=100).for_each(|millis| rtts.add(std::time::Duration::from_millis(millis)));
    for (part, expected) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
        let seen = rtts.quantile_ms(part).unwrap();
        assert!((seen - expected).abs() <= 0.1, "{part}: {seen}");
    }
}
