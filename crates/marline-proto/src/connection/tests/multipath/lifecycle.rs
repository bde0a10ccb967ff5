use super::*;

#[test]
fn either_end_may_abandon_either_path_during_a_transfer() {
    for by in [Side::Client, Side::Server] {
        for path in [PathId::INITIAL, ONE] {
            let mut several = Several::two(narrow());
            let ends = several.ends;
            let mut transfer = Transfer::down(&mut several.pair, ends, &pattern(3_000_000));
            let half = |pair: &mut Pair| transfer.advance(pair) || transfer.received() > 1_000_000;
            assert!(several.pair.drive_until(TIMEOUT, half));
            let now = several.pair.now;
            let error = ErrorCode::APPLICATION_ABANDON_PATH;
            assert_eq!(several.end(by).abandon_path(now, path, error), Ok(()));
            transfer.complete(&mut several.pair);
            assert_eq!(several.closed(by.peer(), path), Some(error));
            several.pair.drive(Duration::from_secs(3));
            for side in [Side::Client, Side::Server] {
                let left = if path == ONE { 0 } else { 1 };
                assert_eq!(several.paths(side), [left], "at the {side:?}");
            }
            download(&mut several.pair, ends, &pattern(100_000));
            let routes = several.pair.server.endpoint.routes_of_ids();
            assert!(routes <= 4 + 3 * 4, "{routes} routed IDs");
        }
    }
}

#[test]
fn a_path_can_be_opened_after_each_abandoned_one() {
    let mut several = Several::two(Conditions::default());
    for last in 1..20 {
        let now = several.pair.now;
        let abandoned = several
            .client()
            .abandon_path(now, PathId(last), ErrorCode::NO_ERROR);
        assert_eq!(abandoned, Ok(()));
        several.pair.drive(Duration::from_secs(2));
        assert_eq!(several.open(1), Ok(PathId(last + 1)));
        several.pair.drive(Duration::from_secs(1));
        assert!(several.is_validated(PathId(last + 1)), "path {last} + 1");
    }
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(100_000));
}

#[test]
fn what_is_learnt_from_another_main_path_does_not_count_for_that_of_the_handshake() {
    let mut several = Several::two(Conditions::default());
    let server = several.ends.server;
    assert!(!several.pair.server(server).paths.has_moved());
    let now = several.pair.now;
    let abandoned = several
        .client()
        .abandon_path(now, PathId(0), ErrorCode::NO_ERROR);
    assert_eq!(abandoned, Ok(()));
    several.pair.drive(Duration::from_secs(2));
    assert_eq!(several.pair.server(server).paths.main().id, ONE);
    assert!(several.pair.server(server).paths.has_moved());
}

#[test]
fn the_last_path_cannot_be_abandoned() {
    let mut several = Several::two(Conditions::default());
    let now = several.pair.now;
    let abandon = |several: &mut Several, path| {
        let error = ErrorCode::NO_ERROR;
        several.client().abandon_path(now, path, error)
    };
    assert_eq!(abandon(&mut several, ONE), Ok(()));
    assert_eq!(
        abandon(&mut several, ONE),
        Err(AbandonPathError::NoSuchPath)
    );
    assert_eq!(
        abandon(&mut several, PathId::INITIAL),
        Err(AbandonPathError::LastPath)
    );
    assert_eq!(
        abandon(&mut several, PathId(9)),
        Err(AbandonPathError::NoSuchPath)
    );
}

/// The main path at each end, the client first.
fn main_paths(several: &mut Several) -> [PathId; 2] {
    [Side::Client, Side::Server].map(|side| several.end(side).paths.main().id)
}

/// History, bundle and addresses of the connection are those of its main path, so it changes only where these are
/// reported.
#[test]
fn the_main_path_stays_while_it_is_open() {
    let mut several = Several::new();
    several
        .pair
        .network
        .link(address(1), Direction::ToClient)
        .down = true;
    several
        .pair
        .network
        .set_link(address(2), Conditions::default());
    assert_eq!(several.open(1), Ok(ONE));
    assert_eq!(several.open(2), Ok(PathId(2)));
    several.pair.drive(Duration::from_millis(200));
    assert!(several.is_validated(PathId(2)) && !several.is_validated(ONE));
    let now = several.pair.now;
    let abandoned = several
        .client()
        .abandon_path(now, PathId::INITIAL, ErrorCode::NO_ERROR);
    assert_eq!(abandoned, Ok(()));
    several.pair.drive(Duration::from_millis(200));
    assert_eq!(main_paths(&mut several), [PathId(2); 2]);
    // An older path is validated, further ones are opened, and the first is forgotten.
    several
        .pair
        .network
        .set_link(address(1), Conditions::default());
    several.pair.drive(Duration::from_secs(2));
    assert!(several.is_validated(ONE));
    assert_eq!(main_paths(&mut several), [PathId(2); 2]);
    assert_eq!(several.open(1), Ok(PathId(3)));
    several.pair.drive(Duration::from_secs(5));
    assert_eq!(several.paths(Side::Server), [1, 2, 3]);
    assert_eq!(main_paths(&mut several), [PathId(2); 2]);
    let now = several.pair.now;
    let abandoned = several
        .client()
        .abandon_path(now, PathId(2), ErrorCode::NO_ERROR);
    assert_eq!(abandoned, Ok(()));
    several.pair.drive(Duration::from_secs(5));
    assert_eq!(main_paths(&mut several), [ONE; 2]);
}

/// The server and the client challenge the address of a path that is not open yet.
#[test]
fn a_path_that_is_being_opened_moves_with_the_socket() {
    let mut several = Several::new();
    let [first, second]: [SocketAddr; 2] =
        ["203.0.113.7:50000", "203.0.113.8:50000"].map(|address| address.parse().unwrap());
    let client = several.ends.client;
    several.pair.migrate(client, first);
    let now = several.pair.now;
    let tuple = FourTuple {
        local: first,
        remote: several.pair.server.address,
    };
    assert_eq!(several.client().open_path(now, tuple), Ok(ONE));
    assert!(!several.is_validated(ONE), "the address is new");
    several.pair.drive(Duration::from_millis(5));
    several.pair.migrate(client, second);
    several.pair.drive(Duration::from_secs(5));
    assert!(several.is_validated(ONE));
    for path in several.client().stats().paths {
        assert_eq!(path.local, Some(second), "{:?}", path.id);
    }
    for path in several.server().stats().paths {
        assert_eq!(path.remote, second, "{:?}", path.id);
    }
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(100_000));
    assert_eq!(several.paths(Side::Server), [0, 1]);
}

#[test]
fn a_path_to_another_address_of_the_server_moves_with_the_socket() {
    let mut several = Several::new();
    let local = several.pair.client.address;
    let remote: SocketAddr = "192.0.2.3:443".parse().expect("an address");
    let now = several.pair.now;
    let tuple = FourTuple { local, remote };
    assert_eq!(several.client().open_path(now, tuple), Ok(ONE));
    several.pair.drive(Duration::from_secs(1));
    assert!(several.is_validated(ONE));
    let elsewhere: SocketAddr = "203.0.113.7:50000".parse().expect("an address");
    let client = several.ends.client;
    several.pair.migrate(client, elsewhere);
    several.pair.drive(Duration::from_secs(2));
    for path in several.server().stats().paths {
        assert_eq!(path.remote, elsewhere, "{:?}", path.id);
    }
    assert_eq!(several.client().stats().paths[1].remote, remote);
}

#[test]
fn a_nat_rebinding_of_one_path_leaves_the_other_as_it_is() {
    let mut several = Several::two(narrow());
    several
        .pair
        .rebind_nat("203.0.113.5:7777".parse().expect("an address"));
    let ends = several.ends;
    upload(&mut several.pair, ends, &pattern(1_000_000));
    download(&mut several.pair, ends, &pattern(1_000_000));
    assert_eq!(several.paths(Side::Server), [0, 1]);
    let stats = several.server().stats();
    assert_eq!(stats.paths[0].remote.port(), 7777);
    assert_eq!(stats.paths[1].remote, address(1));
}

#[test]
fn closing_a_connection_with_two_paths_removes_all_routes() {
    let mut several = Several::two(Conditions::default());
    let client = several.ends.client;
    close(&mut several.pair, client);
    assert_eq!(several.pair.server.endpoint.routes_of_ids(), 0);
    assert_eq!(several.pair.client.endpoint.routes_of_ids(), 0);
}

#[test]
fn a_path_is_open_soon_after_its_first_challenge_or_response_is_lost() {
    for direction in [Direction::ToServer, Direction::ToClient] {
        for lost in 1..=2 {
            let mut several = Several::with(both(several()));
            several
                .pair
                .network
                .set_link(address(1), Conditions::default());
            let mut left = lost;
            several.pair.network.filter = Some(Box::new(move |to, datagram| {
                let is_new = [datagram.source, datagram.destination].contains(&address(1));
                let is_lost = to == direction && is_new && left > 0;
                left -= u32::from(is_lost);
                is_lost
            }));
            assert_eq!(several.open(1), Ok(ONE));
            // The probe timeout of Initial packets, 300 ms, or up to twice that the second time, and a round trip.
            let most = Duration::from_millis(400) * (2 * lost - 1);
            several.pair.drive(most);
            assert!(several.is_validated(ONE), "{lost} lost, {direction:?}");
        }
    }
}
