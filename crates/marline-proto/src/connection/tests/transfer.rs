//! Bytes arrive as they were sent, whatever the network does.

use super::*;

/// A stream's worth of bytes that differ from place to place.
fn pattern(len: usize) -> Bytes {
    (0..len)
        .map(|n| (n * 31 + n / 251) as u8)
        .collect::<Vec<u8>>()
        .into()
}

/// Moves `data` from the server to the client; returns the virtual time it took.
pub(super) fn download(
    pair: &mut Pair,
    client: ConnectionHandle,
    server: ConnectionHandle,
    data: &Bytes,
) -> Duration {
    let began = pair.now;
    let id = pair
        .server(server)
        .open(Dir::Uni)
        .expect("the client allows streams");
    let mut rest = data.clone();
    let mut received = Vec::new();
    let mut finished = false;
    let done = pair.drive_until(Duration::from_secs(300), |pair| {
        let now = pair.now;
        let connection = pair.server(server);
        while !rest.is_empty() {
            match connection.write_chunk(id, &mut rest) {
                Ok(_) => {}
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
        if rest.is_empty() && !finished {
            finished = true;
            connection.finish(id).expect("the stream is open");
        }
        let connection = pair.client(client);
        loop {
            match connection.read(now, id, usize::MAX) {
                Ok(Some(bytes)) => received.extend_from_slice(&bytes),
                Ok(None) => return true,
                Err(ReadError::Blocked) => return false,
                Err(_) if received.is_empty() => return false,
                Err(error) => panic!("{error}"),
            }
        }
    });
    assert!(
        done,
        "stalled after {} of {} bytes",
        received.len(),
        data.len()
    );
    assert!(received == *data, "the bytes differ");
    pair.now - began
}

#[test]
fn a_handshake_takes_one_round_trip_and_is_confirmed() {
    let mut pair = Pair::new();
    let began = pair.now;
    let (client, server) = pair.establish();
    assert_eq!(pair.now - began, Duration::from_millis(40));
    assert_eq!(pair.client(client).alpn(), Some(crate::testing::ALPN));
    assert_eq!(
        pair.server(server).server_name(),
        Some(crate::testing::SERVER_NAME)
    );
    pair.drive(Duration::from_secs(1));
    assert_eq!(pair.client(client).stats().packets_lost(), 0);
    assert_eq!(pair.server(server).stats().packets_lost(), 0);
}

#[test]
fn a_clean_network_delivers() {
    let mut pair = Pair::new();
    let (client, server) = pair.establish();
    download(&mut pair, client, server, &pattern(5 << 20));
    let stats = pair.server(server).stats();
    assert_eq!(stats.packets_lost(), 0);
    assert_eq!(stats.paths[0].mtu, 1472);
}

#[test]
fn loss_reordering_duplication_and_corruption_do_not_show() {
    for seed in 0..20 {
        let mut pair = Pair::with(PairConfig {
            seed,
            ..PairConfig::default()
        });
        pair.network.set(Conditions {
            loss: 0.03,
            jitter: Duration::from_millis(8),
            duplicate: 0.02,
            corrupt: 0.02,
            rate: Some(2_000_000),
            ..Conditions::default()
        });
        let (client, server) = pair.establish();
        download(&mut pair, client, server, &pattern(300_000));
    }
}

#[test]
fn a_bottleneck_is_used_well() {
    let mut pair = Pair::new();
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 50_000,
        delay: Duration::from_millis(25),
        ..Conditions::default()
    });
    let (client, server) = pair.establish();
    let took = download(&mut pair, client, server, &pattern(5_000_000));
    assert!(
        took < Duration::from_millis(5_500),
        "4 s at full rate, took {took:?}"
    );
}

#[test]
fn a_close_is_heard_and_both_ends_forget() {
    let mut pair = Pair::new();
    let (client, server) = pair.establish();
    let now = pair.now;
    pair.client(client).close(now, 7, b"done");
    pair.drive(Duration::from_secs(5));
    let heard = pair
        .server
        .events
        .iter()
        .find_map(|(handle, event)| match event {
            Event::Closed(error) if *handle == server => Some(error.clone()),
            _ => None,
        });
    let reason = Bytes::from_static(b"done");
    assert_eq!(
        heard,
        Some(ConnectionError::PeerApplication { code: 7, reason })
    );
    assert_eq!(pair.client.endpoint.open_connections(), 0);
    assert_eq!(pair.server.endpoint.open_connections(), 0);
}

#[test]
fn silence_ends_a_connection() {
    let mut pair = Pair::new();
    let (_, server) = pair.establish();
    pair.network.conditions(Direction::ToServer).down = true;
    pair.drive(Duration::from_secs(60));
    let ended = pair.server.events.iter().any(|(handle, event)| {
        *handle == server && matches!(event, Event::Closed(ConnectionError::IdleTimeout))
    });
    assert!(ended);
}
