use super::*;

fn with_paths(client: u32, server: u32) -> Several {
    let config = |max_paths| TransportConfig {
        multipath: Some(MultipathConfig {
            max_paths,
            ..MultipathConfig::default()
        }),
        ..TransportConfig::default()
    };
    Several::with(Pair::with(PairConfig {
        client: config(client),
        server: config(server),
        ..PairConfig::default()
    }))
}

#[test]
fn the_smaller_path_limit_of_the_two_ends_applies() {
    for (client, server) in [(3, 5), (5, 3), (3, 3), (1, 4), (2, u32::MAX)] {
        let mut several = with_paths(client, server);
        let most = client.min(server);
        for n in 1..most {
            assert_eq!(several.open(n as u8), Ok(PathId(n)), "{client}, {server}");
        }
        assert_eq!(several.open(200), Err(OpenPathError::LimitReached));
        several.pair.drive(Duration::from_secs(1));
        assert_eq!(several.paths(Side::Server).len(), most as usize);
        assert_eq!(several.open(200), Err(OpenPathError::LimitReached));
    }
}

#[test]
fn only_clients_open_paths() {
    let mut several = Several::new();
    let now = several.pair.now;
    let tuple = FourTuple {
        local: several.pair.server.address,
        remote: several.pair.client.address,
    };
    assert_eq!(
        several.server().open_path(now, tuple),
        Err(OpenPathError::NotClient)
    );
}

#[test]
fn paths_can_be_opened_once_the_handshake_is_confirmed() {
    let mut pair = both(several());
    let client = pair.connect();
    let tuple = FourTuple {
        local: address(1),
        remote: pair.server.address,
    };
    let is_complete = |pair: &mut Pair| !pair.client(client).is_handshaking();
    assert!(pair.drive_until(TIMEOUT, is_complete));
    let now = pair.now;
    let early = pair.client(client).open_path(now, tuple);
    assert_eq!(early, Err(OpenPathError::NotNegotiated));
    let is_confirmed = |pair: &mut Pair| pair.client(client).is_confirmed();
    assert!(pair.drive_until(TIMEOUT, is_confirmed));
    let now = pair.now;
    assert_eq!(pair.client(client).open_path(now, tuple), Ok(ONE));
}

#[test]
fn no_path_can_be_opened_if_the_server_disables_migration() {
    let mut several = Several::with(Pair::with(PairConfig {
        client: several(),
        server: several(),
        adjust_server: Box::new(|server| server.migration = false),
        ..PairConfig::default()
    }));
    assert_eq!(several.open(1), Err(OpenPathError::Forbidden));
}
