//! NAT rebindings on impaired links: full queues, outages, consecutive rebindings (RFC 9000, sections 8.2 and 9.3).

use std::net::SocketAddr;

use super::*;

/// 10 Mbit/s and 30 ms with a queue of 25 datagrams.
fn link() -> Conditions {
    Conditions {
        rate: Some(1_250_000),
        queue: 30_000,
        delay: Duration::from_millis(15),
        ..Conditions::default()
    }
}

fn binding(n: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 50_001 + n))
}

#[test]
fn a_challenge_after_a_change_of_port_is_repeated_after_the_probe_timeout_of_the_path() {
    let mut pair = Pair::new();
    pair.network.set(link());
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(200_000));
    pair.drive(Duration::from_secs(1));
    pair.network.nat = Some(binding(0));
    pair.network.conditions(Direction::ToClient).down = true;
    pair.client(ends.client).ping();
    pair.drive(Duration::from_millis(30));
    let now = pair.now;
    let path = &pair.server(ends.server).paths[Slot::FIRST];
    assert!(path.tuples.active.validation.is_some(), "the port is new");
    let next = path.next_validation_timeout().expect("a challenge left") - now;
    assert!(next < Duration::from_millis(150), "{next:?}");
    assert_eq!(path.credit_for_data(), 0, "the credit is for challenges");
}

#[test]
fn an_outage_after_a_rebinding_is_survived_until_the_idle_timeout() {
    for outage in [1, 3, 8, 20] {
        let mut pair = Pair::new();
        pair.network.set(link());
        let ends = pair.establish();
        let mut transfer = Transfer::response(&mut pair, ends, &pattern(3_000_000));
        pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
        pair.network.nat = Some(binding(0));
        // One datagram of the client reveals the new port, then all packets are lost.
        pair.drive_until(Duration::from_millis(20), |pair| transfer.advance(pair));
        for direction in [Direction::ToClient, Direction::ToServer] {
            pair.network.conditions(direction).down = true;
        }
        pair.drive(Duration::from_secs(outage));
        pair.network.set(link());
        let after = transfer.complete(&mut pair);
        assert_eq!(server_end(&pair, ends.server), None, "{outage} s");
        assert!(after < Duration::from_secs(25), "{outage} s: {after:?}");
    }
}

#[test]
fn rebindings_every_half_second_do_not_end_a_transfer() {
    for loss in [0.0, 0.02] {
        let mut pair = Pair::new();
        pair.network.set(Conditions { loss, ..link() });
        let ends = pair.establish();
        let mut transfer = Transfer::response(&mut pair, ends, &pattern(5_000_000));
        let mut rebindings = 0;
        while !pair.drive_until(Duration::from_millis(500), |pair| transfer.advance(pair)) {
            pair.network.nat = Some(binding(rebindings));
            rebindings += 1;
            assert!(rebindings < 100, "stalled after {}", transfer.received());
            assert_eq!(
                client_end(&pair, ends.client),
                None,
                "{rebindings}, loss {loss}"
            );
            assert_eq!(
                server_end(&pair, ends.server),
                None,
                "{rebindings}, loss {loss}"
            );
        }
        assert!(rebindings > 5, "{rebindings} rebindings");
    }
}

#[test]
fn a_server_moves_to_the_last_address_of_the_peer_when_that_answers() {
    let mut pair = Pair::new();
    pair.network.set(link());
    let ends = pair.establish();
    let mut transfer = Transfer::response(&mut pair, ends, &pattern(2_000_000));
    pair.drive_until(Duration::from_millis(500), |pair| transfer.advance(pair));
    pair.network.nat = Some(binding(0));
    pair.drive_until(Duration::from_millis(20), |pair| transfer.advance(pair));
    // The client sends nothing by itself for longer than the validation timeout.
    pair.network.conditions(Direction::ToClient).down = true;
    pair.drive(Duration::from_secs(6));
    assert_eq!(server_end(&pair, ends.server), None);
    assert_eq!(client_end(&pair, ends.client), None);
    pair.network.set(link());
    transfer.complete(&mut pair);
    assert_eq!(pair.server(ends.server).remote_address(), binding(0));
}

#[test]
fn an_address_that_failed_validation_is_forgotten_when_the_peer_is_back_at_the_one_before() {
    let mut pair = Pair::new();
    pair.network.set(link());
    let ends = pair.establish();
    let mut transfer = Transfer::response(&mut pair, ends, &pattern(10_000_000));
    pair.drive_until(Duration::from_millis(500), |pair| transfer.advance(pair));
    let home = pair.server(ends.server).remote_address();
    // One datagram appears to come from elsewhere, as if forwarded by an attacker; nothing answers there.
    pair.network.nat = Some(binding(0));
    pair.drive_until(Duration::from_millis(20), |pair| transfer.advance(pair));
    for direction in [Direction::ToClient, Direction::ToServer] {
        pair.network.conditions(direction).down = true;
    }
    pair.drive(Duration::from_secs(5));
    let tuples = &pair.server(ends.server).paths[Slot::FIRST].tuples;
    assert!(tuples.probed.is_some(), "it is challenged further");
    pair.network.set(link());
    pair.network.nat = None;
    transfer.complete(&mut pair);
    let connection = pair.server(ends.server);
    assert_eq!(connection.remote_address(), home);
    assert!(connection.paths[Slot::FIRST].tuples.probed.is_none());
}
