//! Path failure detection: suspected paths, probes, and abandoned paths.

use super::*;
use crate::observe::PathStage;

/// A connection with two paths and this configuration at both ends.
fn set_up(config: MultipathConfig) -> Several {
    let transport = TransportConfig {
        multipath: Some(config),
        ..TransportConfig::default()
    };
    Several::two_of(transport, Conditions::GOOD)
}

/// Transfers data in both directions, so that both ends expect acknowledgments on both paths.
fn exchange(several: &mut Several, bytes: usize) {
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(bytes));
    upload(&mut several.pair, ends, &pattern(bytes));
}

fn cut(several: &mut Several, path: PathId, conditions: Conditions) {
    match path {
        PathId::INITIAL => several.pair.network.set(conditions),
        _ => several.pair.network.set_link(address(1), conditions),
    }
}

fn is_live(several: &mut Several, side: Side, path: PathId) -> bool {
    let connection = several.end(side);
    let at = connection.paths.by_id(path).expect("the path is there");
    connection.paths[at].is_live()
}

fn packets_sent(several: &mut Several, side: Side, path: PathId) -> u64 {
    let connection = several.end(side);
    let at = connection.paths.by_id(path).expect("the path is there");
    connection.paths[at].counters.packets_sent
}

#[test]
fn a_suspected_path_is_probed_each_second_and_used_when_it_answers() {
    for dead in [PathId::INITIAL, ONE] {
        let mut several = set_up(MultipathConfig::default());
        exchange(&mut several, 200_000);
        cut(&mut several, dead, DEAD);
        exchange(&mut several, 400_000);
        let probing = [Side::Client, Side::Server].map(|side| !is_live(&mut several, side, dead));
        assert!(probing.iter().any(|&probes| probes), "no end suspects it");
        let stats = several.server().stats();
        assert_eq!(stats.paths[dead.0 as usize].stage, PathStage::Suspected);
        several.pair.drive(Duration::from_secs(10));
        let before = packets_sent(&mut several, Side::Server, dead);
        several.pair.drive(Duration::from_secs(10));
        let probes = packets_sent(&mut several, Side::Server, dead) - before;
        assert!(probes <= 21, "{probes} packets in ten seconds");

        cut(&mut several, dead, Conditions::GOOD);
        several.pair.drive(Duration::from_millis(1100));
        for side in [Side::Client, Side::Server] {
            assert!(is_live(&mut several, side, dead), "{dead} at the {side:?}");
        }
    }
}

#[test]
fn a_path_that_does_not_answer_for_the_configured_time_is_abandoned() {
    for dead in [PathId::INITIAL, ONE] {
        let mut several = set_up(MultipathConfig {
            give_up_after: Some(Duration::from_secs(5)),
            ..MultipathConfig::default()
        });
        cut(&mut several, dead, DEAD);
        exchange(&mut several, 200_000);
        several.pair.drive(Duration::from_secs(4));
        assert_eq!(several.closed(Side::Client, dead), None);
        several.pair.drive(Duration::from_secs(2));
        for side in [Side::Client, Side::Server] {
            let error = Some(ErrorCode::PATH_UNSTABLE_OR_POOR);
            assert_eq!(several.closed(side, dead), error, "{side:?}");
        }
        exchange(&mut several, 200_000);
        let other = PathId(1 - dead.0);
        assert_eq!(several.closed(Side::Client, other), None);
    }
}

#[test]
fn a_dead_path_is_kept_and_probed_ever_more_rarely_if_so_configured() {
    let mut several = set_up(MultipathConfig {
        give_up_after: None,
        keep_alive: Some(Duration::from_secs(10)),
        ..MultipathConfig::default()
    });
    cut(&mut several, ONE, DEAD);
    exchange(&mut several, 200_000);
    several.pair.drive(Duration::from_secs(3600));
    assert_eq!(several.closed(Side::Server, ONE), None);
    assert_eq!(several.server().error(), None);
    let server = several.server();
    let at = server.paths.by_id(ONE).expect("the path is there");
    let remembered = server.paths[at].space.sent.len();
    assert!(remembered < 800, "{remembered} packets");
    cut(&mut several, ONE, Conditions::GOOD);
    several.pair.drive(Duration::from_secs(64));
    assert!(is_live(&mut several, Side::Server, ONE));
}

#[test]
fn no_path_is_abandoned_while_no_other_answers() {
    let mut several = set_up(MultipathConfig {
        give_up_after: Some(Duration::from_secs(5)),
        ..MultipathConfig::default()
    });
    let ends = several.ends;
    let data = pattern(2_000_000);
    for path in [PathId::INITIAL, ONE] {
        cut(
            &mut several,
            path,
            Conditions {
                rate: Some(1_000_000),
                ..Conditions::GOOD
            },
        );
    }
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    let begun = |pair: &mut Pair| transfer.advance(pair) || transfer.received() > 500_000;
    assert!(several.pair.drive_until(TIMEOUT, begun));
    cut(&mut several, PathId::INITIAL, DEAD);
    cut(&mut several, ONE, DEAD);
    several.pair.drive(Duration::from_secs(20));
    // The time until the other path is abandoned starts when the first one works again.
    cut(&mut several, ONE, Conditions::GOOD);
    transfer.complete(&mut several.pair);
    several.pair.drive(Duration::from_secs(2));
    for side in [Side::Client, Side::Server] {
        assert_eq!(several.closed(side, PathId::INITIAL), None);
        assert_eq!(several.closed(side, ONE), None);
    }
    cut(&mut several, PathId::INITIAL, Conditions::GOOD);
    several.pair.drive(Duration::from_secs(10));
    assert!(is_live(&mut several, Side::Server, PathId::INITIAL));
}

#[test]
fn a_connection_without_a_working_path_ends_by_its_idle_timeout() {
    let mut several = set_up(MultipathConfig::default());
    exchange(&mut several, 200_000);
    cut(&mut several, PathId::INITIAL, DEAD);
    cut(&mut several, ONE, DEAD);
    let now = several.pair.now;
    several.client().ping();
    several.client().handle_timeout(now);
    several.pair.drive(Duration::from_secs(25));
    assert_eq!(several.client().error(), None);
    several.pair.drive(Duration::from_secs(10));
    let ending = client_end(&several.pair, several.ends.client);
    assert_eq!(ending, Some(ConnectionError::IdleTimeout));
}

#[test]
fn idle_paths_are_kept_alive_if_so_configured() {
    for keep_alive in [None, Some(Duration::from_secs(5))] {
        let mut several = set_up(MultipathConfig {
            keep_alive,
            ..MultipathConfig::default()
        });
        several.client().set_path_status(ONE, PathStatus::Backup);
        several.pair.drive(Duration::from_secs(3));
        let paths = [PathId::INITIAL, ONE];
        let before = paths.map(|path| packets_sent(&mut several, Side::Client, path));
        several.pair.drive(Duration::from_secs(26));
        let sent = paths.map(|path| packets_sent(&mut several, Side::Client, path));
        let sent = [sent[0] - before[0], sent[1] - before[1]];
        match keep_alive {
            // Either end may send the keep-alive.
            Some(_) => assert!(
                sent.iter().all(|packets| (5..=12).contains(packets)),
                "{sent:?}"
            ),
            None => assert_eq!(sent, [0, 0]),
        }
    }
}

#[test]
fn all_functions_of_a_connection_survive_the_failure_of_its_first_path() {
    let small = TransportConfig {
        receive_window: Some(60_000),
        stream_receive_window: Some(40_000),
        max_receive_window: 60_000,
        max_stream_receive_window: 40_000,
        ..several()
    };
    for from in [Side::Server, Side::Client] {
        let mut several = Several::two_of(small.clone(), Conditions::GOOD);
        cut(&mut several, PathId::INITIAL, DEAD);
        // Data, flow control credit, acknowledgments and connection IDs are sent on the other path.
        let now = several.pair.now;
        assert!(several.client().initiate_key_update(now));
        let ends = several.ends;
        let data = pattern(1_000_000);
        let took = match from {
            Side::Server => download(&mut several.pair, ends, &data),
            Side::Client => upload(&mut several.pair, ends, &data),
        };
        assert!(took < Duration::from_secs(2), "{took:?}");
        several.pair.network.set_link(address(2), Conditions::GOOD);
        let third = several.open(2);
        assert_eq!(third, Ok(PathId(2)));
        several.pair.drive(Duration::from_secs(1));
        assert!(several.is_validated(PathId(2)));
        let now = several.pair.now;
        several.end(from).close(now, 7, b"enough");
        several.pair.drive(Duration::from_secs(5));
        let ending = match from {
            Side::Server => client_end(&several.pair, ends.client),
            Side::Client => server_end(&several.pair, ends.server),
        };
        let expected = ConnectionError::PeerApplication {
            code: 7,
            reason: Bytes::from_static(b"enough"),
        };
        assert_eq!(ending, Some(expected));
    }
}

#[test]
fn connection_close_is_sent_on_all_paths() {
    for dead in [PathId::INITIAL, ONE] {
        let mut several = set_up(MultipathConfig::default());
        // The failure is not detected yet.
        cut(&mut several, dead, DEAD);
        let now = several.pair.now;
        several.client().close(now, 3, b"");
        several.pair.drive(Duration::from_secs(1));
        let expected = ConnectionError::PeerApplication {
            code: 3,
            reason: Bytes::new(),
        };
        let ending = server_end(&several.pair, several.ends.server);
        assert_eq!(ending, Some(expected));
    }
}

#[test]
fn paths_available_is_emitted_when_a_path_can_be_opened() {
    let mut pair = both(TransportConfig {
        multipath: Some(MultipathConfig {
            max_paths: 2,
            ..MultipathConfig::default()
        }),
        ..TransportConfig::default()
    });
    let client = pair.connect();
    let remote = pair.server.address;
    let open = |pair: &mut Pair, n| {
        let now = pair.now;
        let local = address(n);
        pair.client(client)
            .open_path(now, FourTuple { local, remote })
    };
    let take_emitted = |pair: &mut Pair| {
        let is_available = |event: &Event| matches!(event, Event::PathsAvailable);
        pair.drive(Duration::from_secs(3));
        let events = &mut pair.client.events;
        let before = events.len();
        events.retain(|(_, event)| !is_available(event));
        before - events.len()
    };
    // Before the handshake is confirmed.
    assert!(pair.drive_until(TIMEOUT, |pair| pair.client(client).is_multipath()));
    assert_eq!(open(&mut pair, 1), Err(OpenPathError::NotNegotiated));
    assert_eq!(take_emitted(&mut pair), 1);
    assert_eq!(open(&mut pair, 1), Ok(ONE));
    assert_eq!(take_emitted(&mut pair), 0);
    // The limit is reached until an abandoned path is removed.
    assert_eq!(open(&mut pair, 2), Err(OpenPathError::LimitReached));
    assert_eq!(take_emitted(&mut pair), 0);
    let now = pair.now;
    let abandoned = pair
        .client(client)
        .abandon_path(now, ONE, ErrorCode::NO_ERROR);
    assert_eq!(abandoned, Ok(()));
    assert_eq!(take_emitted(&mut pair), 1);
    assert_eq!(open(&mut pair, 2), Ok(PathId(2)));
}

#[test]
fn a_path_that_loses_all_packets_of_the_server_is_abandoned() {
    let mut several = Several::new();
    several.pair.network.set_link(address(1), Conditions::GOOD);
    several
        .pair
        .network
        .link(address(1), Direction::ToClient)
        .down = true;
    assert_eq!(several.open(1), Ok(ONE));
    several.pair.drive(Duration::from_secs(10));
    for side in [Side::Client, Side::Server] {
        let error = Some(ErrorCode::PATH_UNSTABLE_OR_POOR);
        assert_eq!(several.closed(side, ONE), error, "{side:?}");
        assert_eq!(several.paths(side), [0]);
    }
}

#[test]
fn a_pause_of_all_paths_suspects_none() {
    let busy = Conditions {
        rate: Some(1_000_000),
        queue: 60_000,
        ..Conditions::GOOD
    };
    let mut several = Several::two_of(super::several(), busy);
    let ends = several.ends;
    let data = pattern(3_000_000);
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    let begun = |pair: &mut Pair| transfer.advance(pair) || transfer.received() > 1_000_000;
    assert!(several.pair.drive_until(TIMEOUT, begun));
    for path in [PathId::INITIAL, ONE] {
        cut(&mut several, path, DEAD);
    }
    let suspected = |several: &mut Several| {
        let paths = several.server().paths.iter();
        paths.filter(|path| path.liveness.is_suspected()).count()
    };
    for _ in 0..30 {
        several.pair.drive(Duration::from_millis(10));
        assert_eq!(suspected(&mut several), 0);
    }
    for path in [PathId::INITIAL, ONE] {
        cut(&mut several, path, busy);
    }
    transfer.complete(&mut several.pair);
}

#[test]
fn a_delay_that_jumps_causes_copies_but_no_congestion_event() {
    let link = |delay| Conditions {
        delay: Duration::from_millis(delay),
        rate: Some(1_000_000),
        queue: 1 << 20,
        ..Conditions::GOOD
    };
    let mut several = Several::two_of(super::several(), link(10));
    let ends = several.ends;
    let data = pattern(6_000_000);
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    let events = |several: &mut Several| {
        several.server().paths[Slot::FIRST]
            .recovery
            .counters()
            .congestion_events
    };
    let mut suspicions = 0;
    for delay in [120, 230, 340, 450] {
        let until = transfer.received() + 700_000;
        let moved = |pair: &mut Pair| transfer.advance(pair) || transfer.received() > until;
        assert!(several.pair.drive_until(TIMEOUT, moved));
        let before = events(&mut several);
        cut(&mut several, PathId::INITIAL, link(delay));
        let mut suspected = false;
        several
            .pair
            .drive_until(Duration::from_millis(400), |pair| {
                transfer.advance(pair);
                let server = pair.server(ends.server);
                suspected |= server.paths[Slot::FIRST].liveness.is_suspected();
                false
            });
        suspicions += u32::from(suspected);
        assert_eq!(events(&mut several), before);
        assert!(is_live(&mut several, Side::Server, PathId::INITIAL));
    }
    transfer.complete(&mut several.pair);
    // Each false suspicion doubles the time allowed.
    assert!((1..=2).contains(&suspicions), "{suspicions} suspicions");
    let sent = several.sent(Side::Server, PathId::INITIAL) + several.sent(Side::Server, ONE);
    assert!(sent < 7_200_000, "{sent} bytes for six million");
}
