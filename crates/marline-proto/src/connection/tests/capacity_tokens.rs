//! Careful Resume (RFC 9959) with capacities in NEW_TOKEN tokens: the server stores nothing, the client returns
//! the token with its next connection.

use std::sync::Mutex;

use super::careful_resume::{ALL, LARGE, Recorded, Recorder, link};
use super::*;
use crate::congestion::Algorithm;
use crate::coordination::careful_resume::CarefulResumeConfig;
use crate::coordination::history::{CarefulHistory, HistoryConfig, MemoryStore};
use crate::limits::CAPACITY_TOKENS;
use crate::observe::Observer;
use crate::observe::events::{CarefulResumePhase as Phase, CarefulResumeTrigger as Trigger};
use crate::testing::SERVER_NAME;

const MIDDLE: usize = 300_000;

struct Visits {
    pair: Pair,
    recorded: Arc<Mutex<Recorded>>,
}

fn visits(controller: Algorithm) -> Visits {
    visits_as(controller, true, 1)
}

fn visits_as(controller: Algorithm, tokens: bool, seed: u64) -> Visits {
    let recorded = Arc::<Mutex<Recorded>>::default();
    let sink = Arc::clone(&recorded);
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            controller: Arc::new(controller),
            careful_resume: CarefulResumeConfig {
                tokens,
                ..CarefulResumeConfig::default()
            },
            ..TransportConfig::default()
        },
        adjust_server: Box::new(move |server| {
            server.observer = Some(Arc::new(move |_| {
                Some(Box::new(Recorder(Arc::clone(&sink))) as Box<dyn Observer>)
            }));
        }),
        seed,
        ..PairConfig::default()
    });
    pair.network.set(link());
    Visits { pair, recorded }
}

/// Visits after one with a large transfer, which issued a token.
fn returning() -> Visits {
    let mut visits = visits(Algorithm::Cubic);
    visits.visit(LARGE);
    assert_eq!(visits.phases(), []);
    visits
}

impl Visits {
    fn visit(&mut self, len: usize) -> Duration {
        let ends = self.pair.establish();
        let took = download(&mut self.pair, ends, &pattern(len));
        close(&mut self.pair, ends.client);
        took
    }

    /// Phases that the server's connections entered since the last call, with their triggers.
    fn phases(&self) -> Vec<(Phase, Option<Trigger>)> {
        let updates = std::mem::take(&mut self.recorded.lock().unwrap().updates);
        let updates = updates.iter();
        updates.map(|update| (update.new, update.trigger)).collect()
    }

    /// The saved window to which a visit of medium size jumps, in bytes.
    fn jumps_to(&mut self) -> Option<u64> {
        self.phases();
        self.visit(MIDDLE);
        let updates = std::mem::take(&mut self.recorded.lock().unwrap().updates);
        let restored = updates.iter().find_map(|update| {
            let jumped = update.new == Phase::Unvalidated;
            update.restored.filter(|_| jumped)
        });
        restored.map(|restored| restored.congestion_window)
    }

    /// Number of tokens with a capacity that a connection of the server issued.
    fn issued(&mut self, handle: ConnectionHandle) -> u8 {
        self.pair
            .server(handle)
            .server
            .as_ref()
            .unwrap()
            .capacity_tokens
            .issued_count
    }

    fn take(&self) -> Vec<u8> {
        let tokens = &self.pair.client_config.tokens;
        tokens
            .take(SERVER_NAME, marline_wire::Version::V1)
            .expect("the server issued a token")
    }

    /// Replaces all tokens of the client with `token`.
    fn put(&mut self, token: &[u8]) {
        self.pair.client_config.tokens = Arc::default();
        self.pair
            .client_config
            .tokens
            .put(SERVER_NAME, marline_wire::Version::V1, token);
    }

    /// Moves the client to another address.
    fn move_to(&mut self, address: &str) {
        self.pair
            .migrate(ConnectionHandle(usize::MAX), address.parse().unwrap());
    }
}

#[test]
fn careful_resume_returns_to_the_capacity_in_the_clients_token() {
    for controller in ALL {
        let mut visits = visits(controller);
        let first = visits.visit(MIDDLE);
        visits.pair.client_config.tokens = Arc::default();
        visits.visit(LARGE);
        assert_eq!(visits.phases(), []);
        let again = visits.visit(MIDDLE);
        let phases = visits.phases();
        assert_eq!(phases[0], (Phase::Reconnaissance, None));
        let jumped = (Phase::Unvalidated, Some(Trigger::CongestionWindowLimited));
        assert_eq!(phases[1], jumped, "{controller:?}");
        assert_eq!(phases.last().unwrap().0, Phase::Normal, "{phases:?}");
        assert!(
            phases.iter().all(|(phase, _)| *phase != Phase::SafeRetreat),
            "{controller:?}: {phases:?}"
        );
        assert!(again < first, "{controller:?}: {again:?}, {first:?}");
        // The second connection issued a token too.
        assert!(visits.jumps_to().is_some(), "{controller:?}");
    }
}

#[test]
fn a_restarted_server_uses_the_capacity_in_a_token() {
    let mut visits = returning();
    visits.pair.restart_server();
    assert!(visits.jumps_to().is_some());
}

#[test]
fn the_capacity_in_a_token_is_ignored_from_another_address() {
    let mut visits = returning();
    visits.move_to("192.0.2.99:50000");
    assert_eq!(visits.jumps_to(), None);
}

#[test]
fn the_capacity_in_a_token_is_used_once() {
    let mut visits = returning();
    let token = visits.take();
    visits.put(&token);
    assert!(visits.jumps_to().is_some());
    visits.put(&token);
    assert_eq!(visits.jumps_to(), None);
}

#[test]
fn a_capacity_expires_after_an_hour_although_new_tokens_are_issued_for_it() {
    for (age, is_valid) in [(3600, true), (3601, false)] {
        let mut visits = returning();
        visits.pair.server.unix_time_s = age / 2;
        // This visit issues a new token with the same capacity.
        visits.visit(2000);
        visits.pair.server.unix_time_s = age;
        assert_eq!(visits.jumps_to().is_some(), is_valid, "{age} s");
    }
}

#[test]
fn the_capacity_in_an_altered_token_is_ignored() {
    let mut visits = returning();
    let mut token = visits.take();
    let last = token.len() - 20;
    token[last] ^= 1;
    visits.put(&token);
    assert_eq!(visits.jumps_to(), None);
}

#[test]
fn the_capacity_in_a_token_of_another_key_is_ignored() {
    let token = returning().take();
    let mut other = visits_as(Algorithm::Cubic, true, 2);
    other.put(&token);
    assert_eq!(other.jumps_to(), None);
}

#[test]
fn by_default_capacities_are_neither_issued_nor_used() {
    let token = returning().take();
    let mut plain = visits_as(Algorithm::Cubic, false, 1);
    plain.put(&token);
    assert_eq!(plain.jumps_to(), None);
    let ends = plain.pair.establish();
    download(&mut plain.pair, ends, &pattern(LARGE));
    let stats = plain.pair.client(ends.client).stats();
    assert_eq!(stats.frames_received.new_token, 1);
    let key = plain.take();
    assert!(key.len() < token.len());
}

#[test]
fn app_limited_connections_pass_on_the_capacity_that_they_received() {
    let mut visits = returning();
    for _ in 0..3 {
        visits.visit(2000);
    }
    let ends = visits.pair.establish();
    // Two of them and a PMTU probe are less than the initial window.
    for _ in 0..60 {
        download(&mut visits.pair, ends, &pattern(4000));
    }
    close(&mut visits.pair, ends.client);
    assert!(visits.jumps_to().is_some());
}

#[test]
fn one_of_two_concurrent_connections_uses_the_capacity_in_its_token() {
    // Both tokens were issued by the first connection.
    connect_twice(returning());
}

#[test]
fn one_of_two_concurrent_connections_uses_the_capacity_with_tokens_and_a_store() {
    let mut visits = visits(Algorithm::Cubic);
    visits.pair.reconfigure_server(|server, _| {
        server.transport = Arc::new(TransportConfig {
            history: Some(Arc::new(CarefulHistory::new(
                HistoryConfig::default(),
                Arc::new(MemoryStore::default()),
            ))),
            ..(*server.transport).clone()
        });
    });
    visits.visit(LARGE);
    connect_twice(visits);
}

/// Two concurrent connections, of which one jumps.
fn connect_twice(mut visits: Visits) {
    let pairs = [visits.pair.establish(), visits.pair.establish()];
    let data = pattern(MIDDLE);
    let mut transfers = pairs.map(|ends| Transfer::down(&mut visits.pair, ends, &data));
    let done = visits.pair.drive_until(TIMEOUT, |pair| {
        let done = transfers
            .each_mut()
            .map(|transfer| transfer.received() == data.len() || transfer.advance(pair));
        done == [true, true]
    });
    assert!(done);
    let phases = visits.phases();
    let count = |phase| phases.iter().filter(|(is, _)| *is == phase).count();
    assert_eq!(count(Phase::Reconnaissance), 2);
    assert_eq!(count(Phase::Unvalidated), 1, "{phases:?}");
    let stopped = (Phase::Normal, None);
    assert!(
        phases.contains(&stopped),
        "no connection stopped: {phases:?}"
    );
}

#[test]
fn safe_retreat_on_a_narrower_path_issues_a_token_with_a_smaller_capacity() {
    let mut visits = returning();
    let token = visits.take();
    visits.put(&token);
    let narrow = Conditions {
        rate: Some(250_000),
        queue: 15_000,
        ..link()
    };
    visits.pair.network.set(narrow);
    visits.visit(LARGE);
    let phases = visits.phases();
    assert!(
        phases.iter().any(|(phase, _)| *phase == Phase::SafeRetreat),
        "{phases:?}"
    );
    visits.pair.network.set(link());
    let window = visits.jumps_to();
    assert!(window.is_none_or(|window| window < 60_000), "{window:?}");
}

#[test]
fn a_migration_ends_careful_resume_and_later_tokens_are_of_the_new_path() {
    let mut visits = returning();
    let token = visits.take();
    visits.put(&token);
    let ends = visits.pair.establish();
    visits
        .pair
        .migrate(ends.client, "198.51.100.1:50000".parse().unwrap());
    download(&mut visits.pair, ends, &pattern(MIDDLE));
    let phases = [
        (Phase::Reconnaissance, None),
        (Phase::Normal, Some(Trigger::PathChanged)),
    ];
    assert_eq!(visits.phases(), phases);
    close(&mut visits.pair, ends.client);
    // The tokens issued after the migration have the capacity of the new path.
    assert!(visits.jumps_to().is_some());
    visits.move_to("192.0.2.1:50000");
    assert_eq!(visits.jumps_to(), None);
}

#[test]
fn a_path_whose_rate_varies_causes_at_most_five_capacity_tokens() {
    for controller in [Algorithm::NewReno, Algorithm::Bbr] {
        let mut visits = visits(controller);
        let ends = visits.pair.establish();
        for rate in [10_000_000, 300_000, 10_000_000, 300_000] {
            let rate = Some(rate);
            visits.pair.network.set(Conditions { rate, ..link() });
            download(&mut visits.pair, ends, &pattern(1_000_000));
        }
        let issued = visits.issued(ends.server);
        assert!((2..=5).contains(&issued), "{controller:?}: {issued}");
        let stats = visits.pair.client(ends.client).stats();
        // The token of the handshake has no capacity.
        let received = stats.frames_received.new_token;
        assert!(received > issued.into(), "{received} of {issued}");
    }
}

#[test]
fn no_capacity_token_is_issued_beyond_the_limit() {
    let mut visits = visits(Algorithm::Cubic);
    let ends = visits.pair.establish();
    let server_side = visits.pair.server(ends.server).server.as_mut().unwrap();
    server_side.capacity_tokens.issued_count = CAPACITY_TOKENS - 1;
    download(&mut visits.pair, ends, &pattern(LARGE));
    assert_eq!(visits.issued(ends.server), CAPACITY_TOKENS);
    let stats = visits.pair.client(ends.client).stats();
    assert_eq!(stats.frames_received.new_token, 2);
}
