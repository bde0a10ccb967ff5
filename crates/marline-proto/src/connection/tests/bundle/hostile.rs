//! Clients that announce any number of connections, many bundles, and early data.

use super::*;
use crate::coordination::bundle::MAX_MEMBERS;

const FLOOR: u64 = 2 * 1200;

#[test]
fn any_announced_number_of_connections_leaves_the_minimum_window() {
    for connections in [0, (1 << 62) - 1, u64::MAX] {
        let mut bundled = bundled(BundleConfig::default(), Algorithm::Cubic);
        let handles: Vec<_> = (0..3).map(|_| bundled.open(1, connections)).collect();
        assert!(bundled.windows(&handles).iter().all(|&it| it >= FLOOR));
        bundled.transfer(&handles, 50_000);
    }
}

#[test]
fn members_beyond_the_announced_number_get_ever_smaller_windows() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let handles: Vec<_> = (0..4).map(|_| bundled.open(1, 1)).collect();
    let windows = bundled.windows(&handles);
    assert!(windows.is_sorted_by(|a, b| a > b), "{windows:?}");
}

/// An observer of a ClientHello can replay it, but not complete the handshake.
#[test]
fn an_incomplete_handshake_takes_no_place_in_a_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    for direction in [Direction::ToServer, Direction::ToClient] {
        bundled.pair.network.conditions(direction).delay = Duration::from_millis(20);
    }
    bundled.pair.client_config.bundle = Some(Membership {
        id: MembershipId([1; 16]),
        connections: 3,
    });
    for attempt in 1..=MAX_MEMBERS + 1 {
        bundled.pair.connect();
        let accepted = bundled
            .pair
            .drive_until(TIMEOUT, |pair| pair.server.connections.len() == attempt);
        assert!(accepted, "the server did not accept attempt {attempt}");
        bundled.pair.client.connections.clear();
    }
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 0);
    bundled.pair.server.accepted.clear();
    let handles = bundled.open_all(1, 3);
    let parts: Vec<u64> = bundled
        .updates()
        .iter()
        .map(|update| update.decision.after[0] / 1200)
        .collect();
    assert_eq!(parts, split_initial_window(32, 3).collect::<Vec<_>>());
    for ends in handles {
        assert_eq!(bundled.pair.server(ends.server).bundle(), Some(0));
    }
}

#[test]
fn forty_bundles_are_independent_and_end_with_their_connections() {
    const BUNDLES: u8 = 40;
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let handles: Vec<_> = (0..BUNDLES).map(|id| bundled.open(id, 1)).collect();
    let endpoint = &bundled.pair.server.endpoint;
    assert_eq!(endpoint.open_bundles(), usize::from(BUNDLES));
    let windows = bundled.windows(&handles);
    assert!(windows.iter().all(|&window| window == 32 * 1200));
    for ends in handles {
        let now = bundled.pair.now;
        bundled.pair.client(ends.client).close(now, 0, b"");
    }
    let removed = bundled
        .pair
        .drive_until(TIMEOUT, |pair| pair.server.connections.is_empty());
    assert!(removed);
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 0);
}

#[test]
fn a_connection_beyond_the_limit_of_members_is_in_no_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let most = MAX_MEMBERS as u64;
    let mut handles = bundled.open_all(1, most);
    handles.push(bundled.open(1, most));
    let alone = handles[MAX_MEMBERS].server;
    assert_eq!(bundled.pair.server(alone).bundle(), None);
    assert_eq!(bundled.windows(&handles[MAX_MEMBERS..]), [32 * 1200]);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles, 30_000);
    let updates = bundled.updates();
    assert!(
        updates
            .iter()
            .all(|update| update.decision.after.len() <= MAX_MEMBERS)
    );
}

#[test]
fn bundles_are_neither_shared_between_endpoints_nor_kept_across_a_restart() {
    let mut here = bundled(BundleConfig::default(), Algorithm::NewReno);
    let mut there = bundled(BundleConfig::default(), Algorithm::NewReno);
    for bundled in [&mut here, &mut there] {
        let server = bundled.open(1, 3).server;
        assert_eq!(bundled.pair.server(server).bundle(), Some(0));
        assert_eq!(bundled.updates().len(), 1);
    }
    here.pair.restart_server();
    let ends = here.open(1, 3);
    let window = here.windows(&[ends])[0];
    assert_eq!(
        window,
        11 * 1200,
        "the window is not that of a first member"
    );
}

#[test]
fn a_resumed_connection_joins_the_bundle_that_it_names_itself() {
    let early = PairConfig {
        zero_rtt: true,
        ..PairConfig::default()
    };
    let mut bundled = bundled_as(BundleConfig::default(), Algorithm::NewReno, early);
    let first = bundled.open(1, 3);
    bundled.pair.drive(Duration::from_millis(200));
    assert_eq!(bundled.pair.server(first.server).bundle(), Some(0));

    let resume = |bundled: &mut Bundled, membership: Option<Membership>| {
        bundled.pair.client_config.bundle = membership;
        let client = bundled.pair.connect();
        let connection = bundled.pair.client(client);
        assert!(connection.has_zero_rtt());
        let coordinates = connection.peer_coordinates_bundles();
        assert!(!coordinates, "a remembered parameter was used");
        let id = connection.open(Dir::Uni).expect("limits are remembered");
        connection.write(id, b"early").expect("0-RTT is possible");
        let done = bundled
            .pair
            .drive_until(TIMEOUT, |pair| pair.client(client).is_confirmed());
        assert!(done && bundled.pair.client(client).is_early_data_accepted());
        let server = bundled.pair.server.accepted.pop_front().expect("accepted");
        bundled.pair.drive(Duration::from_millis(200));
        Ends { client, server }
    };
    let other = Membership {
        id: MembershipId([2; 16]),
        connections: 1,
    };
    let second = resume(&mut bundled, Some(other));
    assert_eq!(bundled.pair.server(second.server).bundle(), Some(1));
    let alone = resume(&mut bundled, None);
    assert_eq!(bundled.pair.server(alone.server).bundle(), None);
    assert!(bundled.pair.client(alone.client).peer_coordinates_bundles());
    let same = Membership {
        id: MembershipId([1; 16]),
        connections: 3,
    };
    let third = resume(&mut bundled, Some(same));
    assert_eq!(bundled.pair.server(third.server).bundle(), Some(0));
    assert!(bundled.pair.client(first.client).peer_coordinates_bundles());
}

#[test]
fn debug_output_does_not_contain_bundle_identifiers() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let ends = bundled.open(0xab, 3);
    let texts = [
        format!("{:?}", bundled.pair.client_config.bundle),
        format!("{:?}", bundled.pair.client(ends.client)),
        format!("{:?}", bundled.pair.server(ends.server)),
        format!("{:?}", bundled.pair.server.endpoint),
    ];
    for text in texts {
        assert!(!text.contains("ababab") && !text.contains("171, 171, 171"));
    }
}
