//! Initial windows learned from earlier connections.

use std::sync::Mutex;

use super::*;
use crate::congestion::{Algorithm, ConnectionKind, InitialWindow, Rfc9002Window};
use crate::coordination::bundle::{Membership, MembershipId};
use crate::coordination::history::{
    HistoryConfig, HistoryWindow, MemoryStore, PathScope, PathStore, ZeroRtt,
};
use crate::observe::events::InitialWindowChosen;
use crate::observe::{Event as Observed, Observer};
use crate::testing::SERVER_NAME;

const DEFAULT: u64 = 12_000;

/// 20 Mbit/s and 40 ms, with a queue of two bandwidth-delay products.
fn link() -> Conditions {
    Conditions {
        rate: Some(2_500_000),
        queue: 200_000,
        delay: Duration::from_millis(20),
        ..Conditions::default()
    }
}

struct Visits {
    pair: Pair,
    history: Arc<HistoryWindow>,
    store: Arc<MemoryStore>,
}

/// The initial window of one connection, and the time of its transfer.
#[derive(Clone, Copy, Debug)]
struct Visit {
    window: u64,
    took: Duration,
}

fn visits(controller: Algorithm, config: HistoryConfig) -> Visits {
    visits_as(controller, config, PairConfig::default())
}

/// Visits to a server with a history; other settings are those of `pair`.
fn visits_as(controller: Algorithm, config: HistoryConfig, pair: PairConfig) -> Visits {
    let store = Arc::new(MemoryStore::default());
    let history = Arc::new(HistoryWindow::new(
        config,
        store.clone(),
        Arc::new(Rfc9002Window),
    ));
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            controller: Arc::new(controller),
            initial_window: history.clone(),
            history: Some(history.clone()),
            ..TransportConfig::default()
        },
        ..pair
    });
    pair.network.set(link());
    Visits {
        pair,
        history,
        store,
    }
}

/// A connection, and the initial window of the server.
struct Begun {
    ends: Ends,
    window: u64,
}

impl Visits {
    /// Connects.
    fn begin(&mut self) -> Begun {
        let ends = self.pair.establish();
        let recovery = &self.pair.server(ends.server).paths[Slot::FIRST].recovery;
        Begun {
            ends,
            window: recovery.initial_window().bytes,
        }
    }

    /// Downloads `len` bytes over a new connection and closes it.
    fn visit(&mut self, len: usize) -> Visit {
        let Begun { ends, window } = self.begin();
        let took = download(&mut self.pair, ends, &pattern(len));
        close(&mut self.pair, ends.client);
        Visit { window, took }
    }

    /// The average window of the client's network.
    fn average(&self) -> Option<f64> {
        self.history.average(&ConnectionKind {
            now: self.pair.now,
            peer: self.pair.client.address,
            server_name: Some(SERVER_NAME),
            resumed: false,
            max_datagram_size: 1200,
        })
    }

    /// Moves the client to another address.
    fn move_to(&mut self, address: &str) {
        let closed = self.pair.connect();
        let now = self.pair.now;
        self.pair.client(closed).close(now, 0, b"");
        self.pair.drive(Duration::from_secs(1));
        self.pair.migrate(closed, address.parse().unwrap());
        self.pair.server.accepted.clear();
    }
}

#[test]
fn the_next_connection_starts_with_the_average_window() {
    for controller in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr] {
        let plain = visits(controller, HistoryConfig::default()).visit(150_000);
        assert_eq!(plain.window, DEFAULT);

        let mut visits = visits(controller, HistoryConfig::default());
        visits.visit(3_000_000);
        let average = visits.average().unwrap();
        assert!(average > 80_000.0, "{controller:?}: {average}");
        let again = visits.visit(150_000);
        assert_eq!(again.window, (average as u64).min(240_000));
        assert!(
            again.took * 4 < plain.took * 3,
            "{controller:?}: {again:?}, {plain:?}"
        );
    }
}

/// The initial windows that the server's connections reported.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<InitialWindowChosen>>>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &Observed<'_>) {
        if let Observed::InitialWindowChosen(chosen) = event {
            self.0.lock().unwrap().push(*chosen);
        }
    }
}

#[test]
fn the_initial_window_of_every_path_is_reported() {
    let recorder = Recorder::default();
    let observer = recorder.clone();
    let pair = PairConfig {
        adjust_server: Box::new(move |server| {
            server.observer = Some(Arc::new(move |_| Some(Box::new(observer.clone()))));
        }),
        ..PairConfig::default()
    };
    let mut visits = visits_as(Algorithm::Cubic, HistoryConfig::default(), pair);
    visits.visit(3_000_000);
    let learnt = visits.average().unwrap() as u64;
    let ends = visits.begin().ends;
    download(&mut visits.pair, ends, &pattern(100_000));
    visits
        .pair
        .migrate(ends.client, "198.51.100.1:50000".parse().unwrap());
    download(&mut visits.pair, ends, &pattern(100_000));
    let chosen = recorder.0.lock().unwrap();
    let windows: Vec<_> = chosen.iter().map(|chosen| chosen.window).collect();
    assert_eq!(windows, [DEFAULT, learnt.min(240_000), DEFAULT]);
    let are_learnt: Vec<_> = chosen.iter().map(InitialWindowChosen::is_learnt).collect();
    assert_eq!(are_learnt, [false, true, false]);
    assert_eq!(visits.pair.server(ends.server).initial_window(), DEFAULT);
}

#[test]
fn clients_of_another_network_start_with_the_default_window() {
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
    visits.visit(3_000_000);
    visits.move_to("192.0.2.77:50000");
    assert!(visits.visit(100_000).window > DEFAULT, "the same network");
    visits.move_to("198.51.100.1:50000");
    assert_eq!(visits.visit(100_000).window, DEFAULT);
}

#[test]
fn an_app_limited_connection_does_not_lower_the_average() {
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
    visits.visit(3_000_000);
    let before = visits.average().unwrap();
    let ends = visits.begin().ends;
    for _ in 0..100 {
        download(&mut visits.pair, ends, &pattern(5000));
    }
    assert!(
        !visits.pair.server(ends.server).paths[Slot::FIRST]
            .recovery
            .was_window_limited()
    );
    close(&mut visits.pair, ends.client);
    assert!(visits.average().unwrap() >= before);
}

#[test]
fn a_connection_that_ends_early_is_not_recorded() {
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
    visits.visit(2000);
    assert!(visits.store.is_empty());
    let client = visits.pair.connect();
    let now = visits.pair.now;
    visits.pair.client(client).close(now, 0, b"");
    visits.pair.drive(Duration::from_secs(30));
    assert!(visits.store.is_empty());
}

#[test]
fn a_connection_is_recorded_once_however_it_ends() {
    for how in 0..3 {
        let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
        let ends = visits.begin().ends;
        download(&mut visits.pair, ends, &pattern(500_000));
        let now = visits.pair.now;
        match how {
            0 => visits.pair.server(ends.server).close(now, 0, b""),
            1 => visits.pair.client(ends.client).close(now, 0, b""),
            _ => drop(visits.pair.client.connections.remove(&ends.client)),
        }
        visits.pair.drive(Duration::from_secs(60));
        assert_eq!(visits.pair.server.connections.len(), 0);
        let key = PathScope::default().key(visits.pair.client.address, Some(SERVER_NAME));
        let record = visits.store.recall(visits.pair.now, &key).unwrap();
        assert_eq!(record.samples, 1, "{how}");
    }
}

#[test]
fn a_learnt_window_expires_after_an_hour() {
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
    visits.visit(3_000_000);
    visits.pair.drive(Duration::from_secs(3601));
    assert_eq!(visits.visit(100_000).window, DEFAULT);
}

#[test]
fn a_learnt_initial_window_is_paced_over_a_round_trip() {
    const BURST: u64 = 10;
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
    visits.visit(3_000_000);
    // With such a short round trip, the pacer may send ten packets in a burst.
    visits.pair.network.set(Conditions {
        delay: Duration::from_millis(5),
        ..Conditions::default()
    });
    let Begun { ends, window } = visits.begin();
    visits.pair.drive(Duration::from_millis(100));
    let pair = &mut visits.pair;
    let count = |pair: &mut Pair| pair.network.counts(Direction::ToClient);
    let (began, before) = (pair.now, count(pair));
    let mut transfer = Transfer::down(pair, ends, &pattern(1_000_000));
    let (mut at, mut then, mut most) = (began, before.sent, 0);
    let sent = pair.drive_until(TIMEOUT, |pair| {
        if pair.now > at {
            (at, then) = (pair.now, count(pair).sent);
        }
        transfer.advance(pair);
        pair.flush();
        most = most.max(count(pair).sent - then);
        count(pair).bytes - before.bytes > window * 9 / 10
    });
    assert!(sent);
    assert!(most <= BURST, "{most} packets at once");
    let took = pair.now - began;
    assert!(took > Duration::from_millis(7), "{took:?}");
    assert!(took < Duration::from_millis(11), "{took:?}");
}

#[test]
fn a_loss_in_the_handshake_prevents_the_use_of_a_learnt_window() {
    let long = PairConfig {
        further_names: 100,
        ..PairConfig::default()
    };
    let mut visits = visits_as(Algorithm::Cubic, HistoryConfig::default(), long);
    visits.visit(3_000_000);
    // A full handshake: with its certificate, the server's flight has more than one datagram.
    visits.pair.reconfigure_server(|_, tls| {
        tls.session_storage = rustls::server::ServerSessionMemoryCache::new(16);
    });
    let mut number = 0;
    visits.pair.network.filter = Some(Box::new(move |direction, _| {
        number += i32::from(direction == Direction::ToClient);
        direction == Direction::ToClient && number == 2
    }));
    let Begun { ends, window } = visits.begin();
    assert!(
        visits.pair.server(ends.server).paths[Slot::FIRST]
            .recovery
            .had_congestion()
    );
    assert_eq!(window, DEFAULT);
}

#[test]
fn a_path_that_failed_validation_is_not_recorded() {
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
    let home = visits.pair.client.address;
    visits.move_to("203.0.113.66:50000");
    visits.visit(3_000_000);
    visits.move_to(&home.to_string());
    let Begun { ends, window } = visits.begin();
    assert_eq!(window, DEFAULT);
    visits.pair.drive(Duration::from_secs(1));
    // An attacker forwards a packet from the address with a large learned window, and does not answer there.
    let captured: Arc<Mutex<Option<Datagram>>> = Arc::default();
    let keep = Arc::clone(&captured);
    visits.pair.network.filter = Some(Box::new(move |direction, datagram| {
        if direction == Direction::ToServer {
            keep.lock().unwrap().get_or_insert(datagram.clone());
        }
        true
    }));
    visits.pair.client(ends.client).ping();
    visits.pair.flush();
    let copy = captured.lock().unwrap().take().unwrap();
    visits.pair.client.connections.remove(&ends.client);
    let attacker = "203.0.113.66:6666".parse().unwrap();
    visits.pair.deliver_from(attacker, copy.bytes);
    let path = &mut visits.pair.server(ends.server).paths[Slot::FIRST];
    assert!(path.recovery.initial_window().bytes > DEFAULT);
    path.tuples.previous.as_mut().unwrap().validation = None;
    visits.pair.drive(Duration::from_secs(5));
    let server = visits.pair.server(ends.server);
    assert_eq!(server.remote_address(), home);
    // Ten datagrams of the size that was discovered.
    assert_eq!(
        server.paths[Slot::FIRST].recovery.initial_window().bytes,
        14_720
    );
    assert_eq!(server.member_view().window, 14_720);
    visits.pair.drive(Duration::from_secs(60));
    assert_eq!(visits.store.len(), 1);
}

#[test]
fn a_bundle_splits_the_learnt_window() {
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
    visits.visit(3_000_000);
    let learnt = visits.average().unwrap() as u64;
    visits.pair.reconfigure_server(|server, _| {
        server.transport = Arc::new(TransportConfig {
            bundle: Some(Arc::default()),
            ..(*server.transport).clone()
        });
    });
    visits.pair.client_config.bundle = Some(Membership {
        id: MembershipId([7; 16]),
        connections: 3,
    });
    let ends = visits.pair.establish();
    let window = visits.pair.server(ends.server).member_view().window;
    assert!(window.abs_diff(learnt / 3) < 2400, "{window} of {learnt}");
}

#[test]
fn a_migration_records_the_old_path_and_looks_up_the_new_one() {
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::default());
    visits.visit(3_000_000);
    let home = visits.pair.client.address;
    visits.move_to("198.51.100.1:50000");
    let Begun { ends, window } = visits.begin();
    assert_eq!(window, DEFAULT);
    download(&mut visits.pair, ends, &pattern(3_000_000));
    assert_eq!(visits.store.len(), 1);
    visits.pair.migrate(ends.client, home);
    download(&mut visits.pair, ends, &pattern(100_000));
    assert_eq!(visits.store.len(), 2, "the old path was not recorded");
    let learnt = visits.average().unwrap() as u64;
    let recovery = &visits.pair.server(ends.server).paths[Slot::FIRST].recovery;
    assert_eq!(recovery.initial_window().bytes, learnt.min(240_000));
}

#[test]
fn a_resumed_connection_starts_with_the_window_of_an_open_one() {
    let config = HistoryConfig {
        zero_rtt: ZeroRtt::Carry,
        cap: None,
        ..HistoryConfig::default()
    };
    let mut visits = visits(Algorithm::Cubic, config);
    visits.visit(100_000);
    let earlier = visits.begin().ends;
    download(&mut visits.pair, earlier, &pattern(1_000_000));
    let before = visits.average().unwrap();
    let open = visits.pair.server(earlier.server).member_view().window;
    assert!(open > 2 * before as u64, "{open}, {before}");
    let Begun { ends, window } = visits.begin();
    assert!(visits.pair.server(ends.server).is_resumed());
    assert_eq!(window, open);
    assert!(visits.average().unwrap() > before, "no sample was recorded");
    // Without a token the address is not validated, and no open connection reports its window.
    visits.pair.client_config.tokens = Arc::default();
    let recorded = visits.average();
    visits.begin();
    assert_eq!(visits.average(), recorded);
    close_all(&mut visits.pair);
    let window = visits.begin().window;
    assert_eq!(window, visits.average().unwrap() as u64);
}

/// The client closes all its connections.
fn close_all(pair: &mut Pair) {
    let now = pair.now;
    for connection in pair.client.connections.values_mut() {
        connection.close(now, 0, b"");
    }
    pair.drive(Duration::from_secs(5));
    assert_eq!(pair.server.endpoint.open_connections(), 0);
    pair.client.events.clear();
    pair.server.events.clear();
}

#[test]
fn no_learnt_window_is_used_before_the_address_is_validated() {
    let mut visits = visits(Algorithm::Cubic, HistoryConfig::published());
    visits.visit(3_000_000);
    let kind = ConnectionKind {
        now: visits.pair.now,
        peer: visits.pair.client.address,
        server_name: None,
        resumed: false,
        max_datagram_size: 1200,
    };
    assert!(visits.history.window(&kind) > DEFAULT);
    visits.pair.connect();
    visits.pair.drive(Duration::from_millis(30));
    let server = *visits.pair.server.connections.keys().next().unwrap();
    assert_eq!(
        visits.pair.server(server).member_view().window,
        DEFAULT,
        "the address is not validated"
    );
}
