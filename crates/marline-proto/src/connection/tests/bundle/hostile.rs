//! Clients that announce what they like, many bundles, and early data.

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

/// Whoever sees a ClientHello can repeat what it says, but not go on with the handshake.
#[test]
fn an_incomplete_handshake_takes_no_place_in_a_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    for up in [Direction::ToServer, Direction::ToClient] {
        bundled.pair.network.conditions(up).delay = Duration::from_millis(20);
    }
    bundled.pair.client_config.bundle = Some(Membership {
        id: MembershipId([1; 16]),
        connections: 3,
    });
    let strangers = MAX_MEMBERS + 1;
    for stranger in 1..=strangers {
        bundled.pair.connect();
        let heard = bundled
            .pair
            .drive_until(PATIENCE, |pair| pair.server.connections.len() == stranger);
        assert!(heard, "the server answers");
        bundled.pair.client.connections.clear();
    }
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 0);
    bundled.pair.server.accepted.clear();
    let handles = bundled.open_all(1, 3);
    let told = bundled.told();
    let parts: Vec<u64> = told.iter().map(|(_, it)| it.after[0] / 1200).collect();
    assert_eq!(parts, split_initial_window(32, 3).collect::<Vec<_>>());
    for (_, server) in handles {
        assert_eq!(bundled.pair.server(server).bundle(), Some(0));
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
    for (client, _) in handles {
        let now = bundled.pair.now;
        bundled.pair.client(client).close(now, 0, b"");
    }
    let gone = bundled
        .pair
        .drive_until(PATIENCE, |pair| pair.server.connections.is_empty());
    assert!(gone);
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 0);
}

#[test]
fn a_connection_beyond_the_limit_of_members_is_in_no_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let most = MAX_MEMBERS as u64;
    let mut handles = bundled.open_all(1, most);
    handles.push(bundled.open(1, most));
    let (_, alone) = handles[MAX_MEMBERS];
    assert_eq!(bundled.pair.server(alone).bundle(), None);
    assert_eq!(bundled.windows(&handles[MAX_MEMBERS..]), [32 * 1200]);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles, 30_000);
    let told = bundled.told();
    assert!(
        told.iter()
            .all(|(_, decision)| decision.after.len() <= MAX_MEMBERS)
    );
}

#[test]
fn bundles_are_neither_shared_between_endpoints_nor_kept_across_a_restart() {
    let mut here = bundled(BundleConfig::default(), Algorithm::NewReno);
    let mut there = bundled(BundleConfig::default(), Algorithm::NewReno);
    for bundled in [&mut here, &mut there] {
        let (_, server) = bundled.open(1, 3);
        assert_eq!(bundled.pair.server(server).bundle(), Some(0));
        assert_eq!(bundled.told().len(), 1);
    }
    // Nor does the one that comes after it.
    here.pair.restart_server();
    let (_, server) = here.open(1, 3);
    let window = here.windows(&[(ConnectionHandle(0), server)])[0];
    assert_eq!(window, 11 * 1200, "it is the first again");
}

#[test]
fn a_resumed_connection_joins_the_bundle_that_it_names_itself() {
    let early = PairConfig {
        zero_rtt: true,
        ..PairConfig::default()
    };
    let mut bundled = bundled_as(BundleConfig::default(), Algorithm::NewReno, early);
    let (client, first) = bundled.open(1, 3);
    bundled.pair.drive(Duration::from_millis(200));
    assert_eq!(bundled.pair.server(first).bundle(), Some(0));

    let resume = |bundled: &mut Bundled, membership: Option<Membership>| {
        bundled.pair.client_config.bundle = membership;
        let client = bundled.pair.connect();
        let connection = bundled.pair.client(client);
        assert!(connection.has_zero_rtt());
        let said = connection.peer_coordinates_bundles();
        assert!(!said, "that is not remembered");
        let id = connection.open(Dir::Uni).expect("limits are remembered");
        connection.write(id, b"early").expect("0-RTT is possible");
        let done = bundled
            .pair
            .drive_until(PATIENCE, |pair| pair.client(client).is_confirmed());
        assert!(done && bundled.pair.client(client).is_early_data_accepted());
        let server = bundled.pair.server.accepted.pop_front().expect("accepted");
        bundled.pair.drive(Duration::from_millis(200));
        (client, server)
    };
    let other = Membership {
        id: MembershipId([2; 16]),
        connections: 1,
    };
    let (_, second) = resume(&mut bundled, Some(other));
    assert_eq!(bundled.pair.server(second).bundle(), Some(1));
    let (client_alone, alone) = resume(&mut bundled, None);
    assert_eq!(bundled.pair.server(alone).bundle(), None);
    assert!(bundled.pair.client(client_alone).peer_coordinates_bundles());
    let same = Membership {
        id: MembershipId([1; 16]),
        connections: 3,
    };
    let (_, third) = resume(&mut bundled, Some(same));
    assert_eq!(bundled.pair.server(third).bundle(), Some(0));
    assert!(bundled.pair.client(client).peer_coordinates_bundles());
}

#[test]
fn debug_output_does_not_contain_bundle_identifiers() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let (client, server) = bundled.open(0xab, 3);
    let texts = [
        format!("{:?}", bundled.pair.client_config.bundle),
        format!("{:?}", bundled.pair.client(client)),
        format!("{:?}", bundled.pair.server(server)),
        format!("{:?}", bundled.pair.server.endpoint),
    ];
    for text in texts {
        assert!(!text.contains("ababab") && !text.contains("171, 171, 171"));
    }
}
