//! Idle timeouts and keep-alive (RFC 9000, section 10.1).

use super::*;

#[test]
fn an_idle_connection_ends_at_both_ends_after_thirty_seconds() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let began = pair.now;
    pair.drive(Duration::from_secs(29));
    assert_eq!(client_end(&pair, ends.client), None);
    let ended = pair.drive_until(Duration::from_secs(60), |pair| {
        client_end(pair, ends.client).is_some() && server_end(pair, ends.server).is_some()
    });
    assert!(ended);
    assert!(pair.now - began < Duration::from_secs(32));
    assert_eq!(
        client_end(&pair, ends.client),
        Some(ConnectionError::IdleTimeout)
    );
    assert_eq!(
        server_end(&pair, ends.server),
        Some(ConnectionError::IdleTimeout)
    );
    assert_eq!(pair.client.endpoint.open_connections(), 0);
    assert_eq!(pair.server.endpoint.open_connections(), 0);
}

#[test]
fn the_smaller_idle_timeout_applies_to_both_ends() {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            max_idle_timeout: Some(Duration::from_secs(3)),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let ends = pair.establish();
    pair.drive(Duration::from_secs(5));
    assert_eq!(
        client_end(&pair, ends.client),
        Some(ConnectionError::IdleTimeout)
    );
    assert_eq!(
        server_end(&pair, ends.server),
        Some(ConnectionError::IdleTimeout)
    );
}

#[test]
fn a_connection_with_data_to_send_over_a_dead_link_times_out() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(1 << 20));
    pair.network.conditions(Direction::ToServer).down = true;
    for _ in 0..12 {
        pair.drive(Duration::from_secs(5));
        if server_end(&pair, ends.server).is_none() {
            transfer.advance(&mut pair);
        }
    }
    assert_eq!(
        server_end(&pair, ends.server),
        Some(ConnectionError::IdleTimeout)
    );
}

#[test]
fn keep_alive_of_one_end_keeps_the_connection_open() {
    let mut pair = Pair::with(PairConfig {
        client: TransportConfig {
            keep_alive: Some(Duration::from_secs(10)),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let ends = pair.establish();
    let before = pair.network.counts(Direction::ToServer).sent;
    pair.drive(Duration::from_secs(600));
    assert_eq!(client_end(&pair, ends.client), None);
    assert_eq!(server_end(&pair, ends.server), None);
    let sent = pair.network.counts(Direction::ToServer).sent - before;
    assert!((55..=70).contains(&sent), "{sent} datagrams in ten minutes");
}

#[test]
fn without_an_idle_timeout_a_connection_stays_open_for_a_day() {
    let mut pair = both(TransportConfig {
        max_idle_timeout: None,
        ..TransportConfig::default()
    });
    let ends = pair.establish();
    pair.drive(Duration::from_secs(86_400));
    download(&mut pair, ends, &pattern(10_000));
}

#[test]
fn a_client_that_awaits_a_response_sends_pings_at_growing_intervals() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let _transfer = Transfer::response(&mut pair, ends, &pattern(10));
    // The server does not respond for two minutes.
    let pings = |pair: &mut Pair| pair.server(ends.server).stats().frames_received.ping;
    pair.drive(Duration::from_millis(900));
    // PMTU probes are PINGs as well.
    let probes = pings(&mut pair);
    pair.drive(Duration::from_secs(119));
    let sent = pings(&mut pair) - probes;
    assert!((9..14).contains(&sent), "{sent} PINGs in two minutes");
    assert_eq!(
        client_end(&pair, ends.client),
        None,
        "the PINGs keep it alive"
    );
}

#[test]
fn a_client_that_awaits_nothing_sends_no_pings() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(10_000));
    pair.drive(Duration::from_millis(900));
    let probes = pair.server(ends.server).stats().frames_received.ping;
    pair.drive(Duration::from_secs(25));
    assert_eq!(
        pair.server(ends.server).stats().frames_received.ping,
        probes
    );
}
