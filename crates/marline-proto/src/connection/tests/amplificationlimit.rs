//! A server whose client's address is not validated yet.

use super::*;

/// A pair whose server has a certificate of some 9 KB, more than three times the client's first flight.
fn verbose(seed: u64) -> Pair {
    Pair::with(PairConfig {
        client: patient(),
        server: patient(),
        further_names: 300,
        seed,
        ..PairConfig::default()
    })
}

/// Connects; checks at every step that the server has sent at most three times the received bytes.
fn establish_within_limit(pair: &mut Pair) -> Ends {
    let client = pair.connect();
    let mut server = None;
    let mut was_limited = false;
    let done = pair.drive_until(Duration::from_secs(60), |pair| {
        server = server.or(pair.server.accepted.pop_front());
        if let Some(server) = server {
            let connection = pair.server(server);
            let stats = connection.stats();
            let limit = connection.paths[Slot::FIRST].tuples.active.amplification;
            if !limit.is_validated() {
                assert!(
                    stats.udp_sent.bytes <= 3 * stats.udp_received.bytes,
                    "{} bytes for {}",
                    stats.udp_sent.bytes,
                    stats.udp_received.bytes
                );
                was_limited |= limit.credit() < 1200;
            }
        }
        pair.client(client).is_confirmed()
    });
    assert!(done, "no handshake");
    assert!(was_limited, "the certificate is too short for the test");
    Ends {
        client,
        server: server.expect("the server accepted"),
    }
}

#[test]
fn a_server_sends_a_long_certificate_within_the_amplification_limit() {
    let mut pair = verbose(1);
    let ends = establish_within_limit(&mut pair);
    download(&mut pair, ends, &pattern(10_000));
}

#[test]
fn client_probes_release_a_server_blocked_by_the_amplification_limit() {
    let mut pair = verbose(1);
    let mut number = 0;
    pair.network.filter = Some(Box::new(move |direction, _| {
        number += u32::from(direction == Direction::ToClient);
        direction == Direction::ToClient && (2..=7).contains(&number)
    }));
    let ends = establish_within_limit(&mut pair);
    download(&mut pair, ends, &pattern(10_000));
}

#[test]
fn the_amplification_limit_holds_under_loss() {
    for seed in 0..20 {
        let mut pair = verbose(seed);
        pair.network.set(Conditions {
            loss: 0.3,
            ..Conditions::default()
        });
        establish_within_limit(&mut pair);
    }
}

#[test]
fn a_client_that_vanishes_gets_at_most_three_times_its_first_datagram() {
    let mut pair = verbose(1);
    pair.connect();
    pair.drive(Duration::from_millis(1));
    pair.network.conditions(Direction::ToServer).down = true;
    pair.drive(Duration::from_secs(120));
    let attempted = pair.network.counts(Direction::ToServer).bytes;
    let sent = pair.network.counts(Direction::ToClient).bytes;
    assert!(sent <= 3 * 1200, "{sent} bytes sent, {attempted} attempted");
    assert_eq!(pair.server.endpoint.open_connections(), 0);
}
