//! The initial window of a connection.

use super::*;

#[test]
fn without_samples_the_default_is_used() {
    let history = history(mean());
    assert_eq!(history.window(&kind(1)), DEFAULT);
    assert_eq!(history.average(&kind(1)), None);
    assert_eq!(history.learner.capacity(&kind(1)), None);
}

#[test]
fn the_larger_of_default_and_average_is_used() {
    let history = history(mean());
    history.observe(&kind(1), &closed(50_001));
    history.observe(&kind(1), &closed(30_000));
    assert_eq!(history.initial_window(&kind(1)), 40_000.5);
    assert_eq!(history.window(&kind(1)), 40_000);
    for _ in 0..20 {
        history.observe(&kind(1), &closed(2400));
    }
    assert_eq!(history.window(&kind(1)), DEFAULT);
}

#[test]
fn the_cap_limits_averages_and_not_the_default() {
    for (cap, window) in [(100_000, 100_000), (20_000, 20_000), (5000, DEFAULT)] {
        let history = history(HistoryConfig {
            cap: Some(cap),
            ..mean()
        });
        history.observe(&kind(1), &closed(300_000));
        assert_eq!(history.window(&kind(1)), window);
    }
}

#[test]
fn peers_of_one_network_learn_from_each_other_and_of_others_do_not() {
    let history = history(mean());
    history.observe(&kind(1), &closed(50_000));
    assert_eq!(history.window(&kind(2)), 50_000);
    let other_network = ConnectionKind {
        peer: SocketAddr::from(([192, 0, 3, 1], 443)),
        ..kind(1)
    };
    assert_eq!(history.window(&other_network), DEFAULT);
}

#[test]
fn server_names_separate_connections_if_configured() {
    for (per_server_name, other) in [(true, DEFAULT), (false, 50_000)] {
        let history = history(HistoryConfig {
            per_server_name,
            ..mean()
        });
        let named = |name| ConnectionKind {
            server_name: Some(name),
            ..kind(1)
        };
        history.observe(&named("a.example"), &closed(50_000));
        assert_eq!(history.window(&named("a.example")), 50_000);
        assert_eq!(history.window(&named("b.example")), other);
    }
}

#[test]
fn expired_samples_do_not_count() {
    let history = history(mean());
    history.observe(&kind(1), &closed(50_000));
    let almost = HOUR - Duration::from_nanos(1);
    assert_eq!(history.window(&after(almost, kind(1))), 50_000);
    assert_eq!(history.window(&after(HOUR, kind(1))), DEFAULT);
    assert_eq!(history.learner.capacity(&after(HOUR, kind(1))), None);
    history.observe(&after(HOUR, kind(1)), &closed(30_000));
    assert_eq!(history.average(&after(HOUR, kind(1))), Some(30_000.0));
}

#[test]
fn resumed_sessions_begin_as_configured() {
    for (zero_rtt, window) in [
        (ZeroRtt::Carry, 80_000),
        (ZeroRtt::History, 60_000),
        (ZeroRtt::Default, DEFAULT),
    ] {
        let history = history(HistoryConfig { zero_rtt, ..mean() });
        history.observe(&kind(1), &closed(40_000));
        history.observe(&resumed(1), &alive(80_000));
        assert_eq!(history.window(&resumed(1)), window, "{zero_rtt:?}");
        assert_eq!(history.window(&kind(1)), 60_000);
    }
}

#[test]
fn a_window_is_carried_to_the_same_peer_while_its_connection_is_open() {
    for scope in [PathScope::default(), PathScope::Address, PathScope::Global] {
        let history = history(HistoryConfig {
            zero_rtt: ZeroRtt::Carry,
            scope,
            ..mean()
        });
        history.observe(&kind(1), &closed(40_000));
        history.observe(&resumed(1), &alive(80_000));
        assert_eq!(history.window(&resumed(1)), 80_000);
        let neighbor = if scope == PathScope::Address {
            DEFAULT
        } else {
            60_000
        };
        assert_eq!(history.window(&resumed(2)), neighbor);
        history.observe(&kind(1), &closed(90_000));
        assert_eq!(history.window(&resumed(1)), 70_000);
    }
}
