//! With which window a connection begins.

use super::*;

#[test]
fn without_history_the_default_holds() {
    let history = history(mean());
    assert_eq!(history.window(&kind(1)), DEFAULT);
    assert_eq!(history.average(&kind(1)), None);
    assert_eq!(history.learner.capacity(&kind(1)), None);
}

#[test]
fn the_larger_of_default_and_average_is_taken() {
    let history = history(mean());
    history.observe(&kind(1), &closed(50_001));
    history.observe(&kind(1), &closed(30_000));
    assert_eq!(history.first_window(&kind(1)), 40_000.5);
    assert_eq!(history.window(&kind(1)), 40_000);
    for _ in 0..20 {
        history.observe(&kind(1), &closed(2400));
    }
    assert_eq!(history.window(&kind(1)), DEFAULT);
}

#[test]
fn a_cap_holds_for_averages_and_not_for_the_default() {
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
fn neighbors_learn_from_each_other_and_strangers_do_not() {
    let history = history(mean());
    history.observe(&kind(1), &closed(50_000));
    assert_eq!(history.window(&kind(2)), 50_000);
    let stranger = ConnectionKind {
        peer: SocketAddr::from(([192, 0, 3, 1], 443)),
        ..kind(1)
    };
    assert_eq!(history.window(&stranger), DEFAULT);
}

#[test]
fn server_names_count_where_they_are_asked_for() {
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
fn what_is_too_old_is_forgotten_and_counted_no_more() {
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
fn resumed_sessions_begin_as_they_are_told() {
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
fn a_window_is_carried_while_its_connection_lives_and_to_its_peer_only() {
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
