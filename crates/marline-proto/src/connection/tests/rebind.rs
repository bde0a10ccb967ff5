//! NAT rebinding: the client gets another port or another address, without being notified.

use std::net::SocketAddr;

use super::*;

/// A slow download during which the NAT changes its binding every second.
fn download_behind(mut pair: Pair, bindings: &[&str]) {
    pair.network.set(Conditions {
        rate: Some(250_000),
        queue: 50_000,
        delay: Duration::from_millis(15),
        ..Conditions::default()
    });
    let ends = pair.establish();
    let began = pair.now;
    let size = 375_000 * (bindings.len() + 1);
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(size));
    let mut done = false;
    for binding in bindings {
        done = pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
        assert!(!done, "complete before {binding}");
        let binding: SocketAddr = binding.parse().expect("an address");
        pair.network.nat = Some(binding);
        pair.drive_until(Duration::from_millis(500), |pair| transfer.advance(pair));
        let connection = pair.server(ends.server);
        assert_eq!(connection.remote_address(), binding);
        let active = &connection.paths[Slot::FIRST].tuples.active;
        assert!(active.amplification.is_validated(), "{binding}");
        assert!(active.validation.is_none(), "{binding}");
    }
    done |= pair.drive_until(TIMEOUT, |pair| transfer.advance(pair));
    assert!(done, "stalled after {} bytes", transfer.received());
    let took = pair.now - began;
    let bound = Duration::from_millis(1500) * (bindings.len() as u32 + 3);
    assert!(took < bound, "took {took:?}");
    pair.drive(Duration::from_secs(5));
    assert_eq!(client_end(&pair, ends.client), None);
    assert_eq!(server_end(&pair, ends.server), None);
    let previous = &pair.server(ends.server).paths[Slot::FIRST].tuples.previous;
    assert!(previous.is_none(), "the previous 4-tuple is still kept");
}

const PORTS: [&str; 4] = [
    "192.0.2.1:50001",
    "192.0.2.1:50002",
    "192.0.2.1:50003",
    "192.0.2.1:50004",
];

#[test]
fn a_transfer_continues_when_a_nat_changes_the_port_of_the_client() {
    download_behind(Pair::new(), &PORTS);
}

#[test]
fn a_transfer_continues_when_a_nat_changes_the_address_of_the_client() {
    download_behind(
        Pair::new(),
        &[
            "198.51.100.1:50001",
            "198.51.100.2:50001",
            "203.0.113.9:40000",
        ],
    );
}

#[test]
fn a_server_that_disables_migration_follows_a_client_to_another_port() {
    let pair = Pair::with(PairConfig {
        adjust_server: Box::new(|server| server.migration = false),
        ..PairConfig::default()
    });
    download_behind(pair, &PORTS[..2]);
}

#[test]
fn the_congestion_window_is_kept_for_another_port_and_not_for_another_address() {
    for (binding, survives) in [("192.0.2.1:50001", true), ("203.0.113.1:50000", false)] {
        let mut pair = Pair::new();
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(3_000_000));
        let before = pair.server(ends.server).stats().paths[0].congestion_window;
        pair.network.nat = Some(binding.parse().unwrap());
        pair.client(ends.client).ping();
        pair.drive(Duration::from_millis(15));
        let after = pair.server(ends.server).stats().paths[0].congestion_window;
        assert_eq!(
            after >= before,
            survives,
            "{binding}: {before}, then {after}"
        );
    }
}

#[test]
fn an_idle_client_behind_a_new_port_is_answered() {
    for seed in 0..10 {
        let mut pair = seeded(seed);
        let ends = pair.establish();
        pair.drive(Duration::from_secs(5));
        pair.network.nat = Some("192.0.2.1:60000".parse().unwrap());
        pair.network.set(Conditions {
            loss: 0.2,
            ..Conditions::default()
        });
        upload(&mut pair, ends, &pattern(10_000));
        download(&mut pair, ends, &pattern(10_000));
    }
}
