//! Migration of the client to another address, or to the preferred address of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Mutex;

use super::*;

/// The destination connection IDs of short headers, by address of the client and whether the packet went to the
/// server.
type Seen = Arc<Mutex<BTreeMap<(SocketAddr, bool), BTreeSet<Vec<u8>>>>>;

/// Records the connection IDs of all packets.
fn watch(pair: &mut Pair) -> Seen {
    let seen = Seen::default();
    let recorded = Arc::clone(&seen);
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        let to_server = direction == Direction::ToServer;
        let client = if to_server {
            datagram.source
        } else {
            datagram.destination
        };
        if datagram.bytes[0] & 0x80 == 0 {
            let id = datagram.bytes[1..9].to_vec();
            recorded
                .lock()
                .unwrap()
                .entry((client, to_server))
                .or_default()
                .insert(id);
        }
        false
    }));
    seen
}

/// A pair whose server has the preferred address `address`.
fn preferring(address: SocketAddr) -> Pair {
    Pair::with(PairConfig {
        adjust_server: Box::new(move |server| server.preferred_address = Some(address)),
        ..PairConfig::default()
    })
}

fn slow(pair: &mut Pair) {
    pair.network.set(Conditions {
        rate: Some(250_000),
        queue: 50_000,
        delay: Duration::from_millis(15),
        ..Conditions::default()
    });
}

#[test]
fn no_connection_id_is_used_with_two_addresses_of_a_migrating_client() {
    for loss in [0.0, 0.03] {
        let mut pair = Pair::new();
        slow(&mut pair);
        let seen = watch(&mut pair);
        let ends = pair.establish();
        for direction in [Direction::ToServer, Direction::ToClient] {
            pair.network.conditions(direction).loss = loss;
        }
        let mut transfer = Transfer::down(&mut pair, ends, &pattern(1_500_000));
        for address in ["198.51.100.7:50000", "203.0.113.7:50001", "192.0.2.5:50002"] {
            pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
            let (now, address) = (pair.now, address.parse().unwrap());
            pair.client(ends.client).rebind(now, address);
            pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
            assert_eq!(pair.server(ends.server).remote_address(), address);
        }
        transfer.complete(&mut pair);
        pair.drive(Duration::from_secs(5));
        assert!(
            pair.server(ends.server).paths[Slot::FIRST]
                .tuples
                .previous
                .is_none()
        );
        assert!(
            pair.client(ends.client).paths[Slot::FIRST]
                .tuples
                .previous
                .is_none()
        );
        let seen = seen.lock().unwrap();
        for (address, ids) in &*seen {
            for (other, others) in &*seen {
                assert!(
                    address == other || ids.is_disjoint(others),
                    "an ID of {address:?} is used with {other:?} too, loss {loss}"
                );
            }
        }
        // Four addresses, in both directions.
        assert_eq!(seen.len(), 8);
    }
}

#[test]
fn a_client_returns_to_its_address_if_validation_of_the_new_one_fails() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let home = pair.client.address;
    let nowhere: SocketAddr = "203.0.113.66:50000".parse().unwrap();
    pair.network.filter = Some(Box::new(move |_, datagram| {
        datagram.source == nowhere || datagram.destination == nowhere
    }));
    let now = pair.now;
    pair.client(ends.client).rebind(now, nowhere);
    pair.drive(Duration::from_secs(10));
    assert_eq!(pair.client(ends.client).local_address(), home);
    upload(&mut pair, ends, &pattern(100_000));
}

#[test]
fn a_client_that_probes_an_address_migrates_once_it_answers() {
    let mut pair = Pair::new();
    slow(&mut pair);
    let seen = watch(&mut pair);
    let ends = pair.establish();
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(300_000));
    pair.drive_until(Duration::from_secs(1), |pair| {
        transfer.advance(pair);
        transfer.received() > 30_000
    });
    let (now, home) = (pair.now, pair.client.address);
    let next: SocketAddr = "198.51.100.7:50000".parse().unwrap();
    let start = MigrationStart::AfterValidation;
    let migrated = pair.client(ends.client).migrate(now, next, start);
    assert_eq!(migrated, Ok(()));
    assert!(pair.client(ends.client).is_probing_address());
    assert_eq!(pair.client(ends.client).local_address(), home);
    transfer.complete(&mut pair);
    assert_eq!(pair.client(ends.client).local_address(), next);
    assert_eq!(pair.server(ends.server).remote_address(), next);
    let seen = seen.lock().unwrap();
    let ids = |address| &seen[&(address, true)];
    assert!(ids(home).is_disjoint(ids(next)));
}

#[test]
fn a_client_stays_at_its_address_if_one_that_it_probes_does_not_answer() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let home = pair.client.address;
    let nowhere: SocketAddr = "203.0.113.66:50000".parse().unwrap();
    pair.network.filter = Some(Box::new(move |_, datagram| datagram.source == nowhere));
    let (now, start) = (pair.now, MigrationStart::AfterValidation);
    let migrated = pair.client(ends.client).migrate(now, nowhere, start);
    assert_eq!(migrated, Ok(()));
    upload(&mut pair, ends, &pattern(100_000));
    pair.drive(Duration::from_secs(10));
    assert!(!pair.client(ends.client).is_probing_address());
    assert_eq!(pair.client(ends.client).local_address(), home);
}

#[test]
fn migration_is_refused_before_confirmation_and_where_the_server_forbids_it() {
    let next: SocketAddr = "198.51.100.7:50000".parse().unwrap();
    let starts = [MigrationStart::AtOnce, MigrationStart::AfterValidation];
    let mut pair = Pair::with(PairConfig {
        adjust_server: Box::new(|server| server.migration = false),
        ..PairConfig::default()
    });
    let client = pair.connect();
    for start in starts {
        let now = pair.now;
        let refused = pair.client(client).migrate(now, next, start);
        assert_eq!(refused, Err(MigrateError::NotConfirmed));
    }
    let ends = pair.establish();
    let home = pair.client.address;
    for start in starts {
        let now = pair.now;
        let refused = pair.client(ends.client).migrate(now, next, start);
        assert_eq!(refused, Err(MigrateError::Forbidden));
        let refused = pair.server(ends.server).migrate(now, next, start);
        assert_eq!(refused, Err(MigrateError::NotApplicable));
    }
    assert_eq!(pair.client(ends.client).local_address(), home);
}

/// The times of the last packet that a client reports while its path does not answer.
fn unresponsive(pair: &mut Pair, client: ConnectionHandle) -> BTreeSet<Option<Instant>> {
    let mut reported = BTreeSet::new();
    pair.drive_until(Duration::from_secs(20), |pair| {
        let now = pair.now;
        let events: Vec<_> = pair.client.events.drain(..).collect();
        for (_, event) in events {
            if matches!(event, Event::PathUnresponsive) {
                reported.insert(pair.client(client).unresponsive_since(now));
            }
        }
        false
    });
    reported
}

#[test]
fn a_client_that_awaits_a_response_reports_that_its_path_has_become_silent() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let now = pair.now;
    let client = pair.client(ends.client);
    let id = client.open(Dir::Bi).unwrap();
    client.write(id, b"a request").unwrap();
    client.finish(id).unwrap();
    pair.drive(Duration::from_millis(500));
    let silent_from = pair.now;
    pair.network.filter = Some(Box::new(|_, _| true));
    let reported = unresponsive(&mut pair, ends.client);
    assert_eq!(reported.len(), 1, "{reported:?}");
    let since = reported.first().unwrap().unwrap();
    assert!((now..=silent_from).contains(&since), "{since:?}");
    pair.network.filter = None;
    pair.drive(Duration::from_secs(9));
    let now = pair.now;
    assert_eq!(pair.client(ends.client).unresponsive_since(now), None);
}

#[test]
fn an_idle_client_does_not_notice_that_its_path_is_silent() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    upload(&mut pair, ends, &pattern(10_000));
    pair.drive(Duration::from_secs(5));
    pair.network.filter = Some(Box::new(|_, _| true));
    assert_eq!(unresponsive(&mut pair, ends.client), BTreeSet::new());
}

#[test]
fn a_client_migrates_to_the_preferred_address_of_the_server() {
    let elsewhere: SocketAddr = "192.0.2.3:443".parse().unwrap();
    let mut pair = preferring(elsewhere);
    let ends = pair.establish();
    upload(&mut pair, ends, &pattern(1_000_000));
    download(&mut pair, ends, &pattern(1_000_000));
    assert_eq!(pair.client(ends.client).remote_address(), elsewhere);
    assert_eq!(pair.server(ends.server).local_address(), elsewhere);
    assert_eq!(pair.client(ends.client).stats().packets_lost(), 0);
}

#[test]
fn a_client_is_at_the_preferred_address_soon_after_its_first_challenge_is_lost() {
    let elsewhere: SocketAddr = "192.0.2.3:443".parse().unwrap();
    let mut pair = preferring(elsewhere);
    let mut is_lost = true;
    pair.network.filter = Some(Box::new(move |_, datagram| {
        datagram.destination == elsewhere && std::mem::take(&mut is_lost)
    }));
    let ends = pair.establish();
    pair.drive(Duration::from_millis(500));
    assert_eq!(pair.client(ends.client).remote_address(), elsewhere);
}

#[test]
fn a_client_that_moves_while_it_probes_the_preferred_address_goes_there_from_its_new_one() {
    let elsewhere: SocketAddr = "192.0.2.3:443".parse().unwrap();
    let home: SocketAddr = "198.51.100.7:50000".parse().unwrap();
    let mut pair = preferring(elsewhere);
    let former = pair.client.address;
    let seen = watch(&mut pair);
    let ends = pair.establish();
    let is_probing = |pair: &mut Pair| {
        let path = &pair.client(ends.client).paths[Slot::FIRST];
        path.tuples.probed.is_some()
    };
    assert!(pair.drive_until(Duration::from_secs(1), is_probing));
    pair.migrate(ends.client, home);
    let seen_before = std::mem::take(&mut *seen.lock().unwrap());
    upload(&mut pair, ends, &pattern(1_000_000));
    pair.drive(Duration::from_secs(5));
    let client = pair.client(ends.client);
    assert_eq!(client.remote_address(), elsewhere);
    assert_eq!(client.local_address(), home);
    assert_eq!(pair.server(ends.server).remote_address(), home);
    let seen = seen.lock().unwrap();
    assert!(!seen.contains_key(&(former, true)), "sent from the old one");
    assert!(seen[&(home, true)].is_disjoint(&seen_before[&(former, true)]));
}

#[test]
fn a_client_does_not_migrate_to_an_unreachable_preferred_address() {
    let elsewhere: SocketAddr = "192.0.2.3:443".parse().unwrap();
    let mut pair = preferring(elsewhere);
    pair.network.filter = Some(Box::new(move |_, datagram| {
        datagram.destination == elsewhere
    }));
    let ends = pair.establish();
    let home = pair.server.address;
    upload(&mut pair, ends, &pattern(1_000_000));
    pair.drive(Duration::from_secs(10));
    download(&mut pair, ends, &pattern(1_000_000));
    assert_eq!(pair.client(ends.client).remote_address(), home);
    assert!(
        pair.client(ends.client).paths[Slot::FIRST]
            .tuples
            .probed
            .is_none()
    );
}

#[test]
fn packets_copied_from_another_address_do_not_move_the_connection() {
    let mut pair = Pair::new();
    slow(&mut pair);
    let ends = pair.establish();
    let home = pair.client.address;
    let attacker: SocketAddr = "203.0.113.66:6666".parse().unwrap();
    let newest: Arc<Mutex<Option<Datagram>>> = Arc::default();
    let diverted = Arc::new(Mutex::new(0));
    let (keep, count) = (Arc::clone(&newest), Arc::clone(&diverted));
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        if direction == Direction::ToServer {
            *keep.lock().unwrap() = Some(datagram.clone());
        }
        let lost = datagram.destination == attacker;
        *count.lock().unwrap() += usize::from(lost) * datagram.bytes.len();
        lost
    }));
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(1_000_000));
    let mut copied = 0;
    for _ in 0..5 {
        pair.drive_until(Duration::from_millis(300), |pair| transfer.advance(pair));
        let copy = newest.lock().unwrap().take();
        if let Some(mut copy) = copy {
            copied += copy.bytes.len();
            copy.source = attacker;
            // It arrives before the original.
            let before = *pair.network.conditions(Direction::ToServer);
            pair.network.conditions(Direction::ToServer).delay = Duration::ZERO;
            pair.network.inject(pair.now, Direction::ToServer, copy);
            *pair.network.conditions(Direction::ToServer) = before;
        }
    }
    transfer.complete(&mut pair);
    assert_eq!(pair.server(ends.server).remote_address(), home);
    let diverted = *diverted.lock().unwrap();
    assert!(
        diverted <= 3 * copied,
        "the attacker got {diverted} bytes for {copied}"
    );
}

/// A client that changes its address during a transfer.
#[derive(Clone, Copy, Debug)]
struct Move {
    rtt: u64,
    is_upload: bool,
    /// Whether a NAT changes the port; otherwise the client migrates to another host address.
    is_rebinding: bool,
    /// Direction in which the first datagrams are lost, with the first challenges and responses.
    direction: Direction,
    lost: u32,
}

impl Move {
    /// The time without progress of the transfer, on a path of 20 Mbit/s.
    fn stall(self) -> Duration {
        let mut pair = Pair::new();
        pair.network.set(Conditions {
            rate: Some(2_500_000),
            queue: 100_000,
            delay: Duration::from_millis(self.rtt) / 2,
            ..Conditions::default()
        });
        let ends = pair.establish();
        let data = pattern(12_000_000);
        let mut transfer = match self.is_upload {
            true => Transfer::up(&mut pair, ends, &data),
            false => Transfer::down(&mut pair, ends, &data),
        };
        pair.drive_until(Duration::from_millis(1500), |pair| transfer.advance(pair));
        match self.is_rebinding {
            true => pair.network.nat = Some("192.0.2.1:50123".parse().unwrap()),
            false => pair.migrate(ends.client, "198.51.100.7:50000".parse().unwrap()),
        }
        let mut left = self.lost;
        pair.network.filter = Some(Box::new(move |direction, _| {
            let is_lost = direction == self.direction && left > 0;
            left -= u32::from(is_lost);
            is_lost
        }));
        let (mut last, mut longest) = (pair.now, Duration::ZERO);
        let mut received = transfer.received();
        pair.drive_until(Duration::from_secs(2), |pair| {
            let done = transfer.advance(pair);
            if transfer.received() > received {
                received = transfer.received();
                longest = longest.max(pair.now - last);
                last = pair.now;
            }
            done
        });
        longest
    }
}

#[test]
fn a_transfer_stands_still_for_few_round_trips_after_its_client_has_moved() {
    for rtt in [20, 100] {
        for is_upload in [true, false] {
            for is_rebinding in [true, false] {
                for direction in [Direction::ToServer, Direction::ToClient] {
                    for lost in 0..3 {
                        let moved = Move {
                            rtt,
                            is_upload,
                            is_rebinding,
                            direction,
                            lost,
                        };
                        let stall = moved.stall();
                        let most = 4 * Duration::from_millis(rtt);
                        assert!(stall < most, "{moved:?}: {stall:?}");
                    }
                }
            }
        }
    }
}
