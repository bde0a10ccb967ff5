//! Connections that belong together, and those that do not.

use std::sync::{Arc, Mutex};

use super::*;
use crate::congestion::slow_start::NoExit;
use crate::congestion::{Algorithm, FixedWindow};
use crate::coordination::bundle::{
    BundleConfig, BundleScope, Membership, MembershipId, split_initial_window,
};
use crate::observe::events::{BundleAction, BundlePhase, BundleTrigger};
use crate::observe::{Event as Observed, Observer};

mod hostile;
mod migration;

/// An event of a decision, without the borrows.
#[derive(Clone, Debug, PartialEq)]
struct Decision {
    bundle: u64,
    trigger: BundleTrigger,
    action: BundleAction,
    phase: BundlePhase,
    affected: Option<usize>,
    gamma: f64,
    fluctuations: u64,
    before: Vec<u64>,
    after: Vec<u64>,
}

/// The events of the members of all bundles: own index and decision.
type Told = Arc<Mutex<Vec<(usize, Decision)>>>;

struct Listener(Told);

impl Observer for Listener {
    fn on_event(&mut self, _now: Instant, event: &Observed<'_>) {
        if let Observed::BundleUpdated(event) = event {
            let decision = Decision {
                bundle: event.bundle,
                trigger: event.trigger,
                action: event.action,
                phase: event.phase,
                affected: event.affected,
                gamma: event.gamma,
                fluctuations: event.fluctuations,
                before: event.before.to_vec(),
                after: event.after.to_vec(),
            };
            self.0.lock().unwrap().push((event.own, decision));
        }
    }
}

/// 20 Mbit/s and 40 ms, with room for two windows of it.
pub(super) fn link(loss: f64) -> Conditions {
    Conditions {
        rate: Some(2_500_000),
        queue: 200_000,
        delay: Duration::from_millis(20),
        loss,
        ..Conditions::default()
    }
}

struct Bundled {
    pair: Pair,
    told: Told,
}

fn bundled(config: BundleConfig, controller: Algorithm) -> Bundled {
    bundled_as(config, controller, PairConfig::default())
}

/// A server that coordinates, in a pair that is otherwise as `pair` says.
fn bundled_as(config: BundleConfig, controller: Algorithm, pair: PairConfig) -> Bundled {
    let told = Told::default();
    let listener = Arc::clone(&told);
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            bundle: Some(Arc::new(config)),
            controller: Arc::new(controller),
            initial_window: Arc::new(FixedWindow { packets: 32 }),
            slow_start_exit: Arc::new(|| Box::new(NoExit)),
            ..TransportConfig::default()
        },
        adjust_server: Box::new(move |server| {
            server.observer = Some(Arc::new(move |_| {
                Some(Box::new(Listener(Arc::clone(&listener))) as Box<dyn Observer>)
            }));
        }),
        ..pair
    });
    pair.network.set(link(0.0));
    Bundled { pair, told }
}

impl Bundled {
    fn open(&mut self, id: u8, connections: u64) -> (ConnectionHandle, ConnectionHandle) {
        self.pair.client_config.bundle = Some(Membership {
            id: MembershipId([id; 16]),
            connections,
        });
        self.pair.establish()
    }

    fn open_all(&mut self, id: u8, connections: u64) -> Vec<(ConnectionHandle, ConnectionHandle)> {
        (0..connections)
            .map(|_| self.open(id, connections))
            .collect()
    }

    fn windows(&mut self, handles: &[(ConnectionHandle, ConnectionHandle)]) -> Vec<u64> {
        handles
            .iter()
            .map(|&(_, server)| self.pair.server(server).member_view().window)
            .collect()
    }

    fn told(&self) -> Vec<(usize, Decision)> {
        self.told.lock().unwrap().clone()
    }

    /// Moves `len` bytes over each connection, all at once; returns the time it took.
    fn transfer(
        &mut self,
        handles: &[(ConnectionHandle, ConnectionHandle)],
        len: usize,
    ) -> Duration {
        let data = pattern(len);
        let mut transfers: Vec<_> = handles
            .iter()
            .map(|&handles| Transfer::down(&mut self.pair, handles, &data))
            .collect();
        let start = self.pair.now;
        let done = self.pair.drive_until(PATIENCE, |pair| {
            transfers.retain_mut(|transfer| !transfer.advance(pair));
            transfers.is_empty()
        });
        assert!(done, "the transfers took too long");
        self.pair.now - start
    }
}

#[test]
fn members_share_one_initial_window() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    let told = bundled.told();
    let parts: Vec<u64> = told
        .iter()
        .map(|(_, decision)| decision.after[0] / 1200)
        .collect();
    assert_eq!(parts, split_initial_window(32, 3).collect::<Vec<_>>());
    let numbers: Vec<_> = handles
        .iter()
        .map(|&(_, server)| bundled.pair.server(server).bundle())
        .collect();
    assert_eq!(numbers, [Some(0); 3]);
    let (client, _) = handles[0];
    assert!(bundled.pair.client(client).peer_coordinates_bundles());
}

#[test]
fn a_loss_equalizes_the_windows_of_all_members_and_slow_start_continues() {
    let mut bundled = bundled(BundleConfig::published(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles, 400_000);
    let told = bundled.told();
    let synchronized: Vec<_> = told
        .iter()
        .map(|(_, decision)| decision)
        .filter(|decision| decision.action == BundleAction::Synchronized)
        .collect();
    assert!(!synchronized.is_empty());
    for decision in synchronized {
        assert_eq!(decision.trigger, BundleTrigger::Loss);
        assert_eq!(decision.phase, BundlePhase::SlowStart);
        assert!(decision.after.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn bundles_of_two_clients_behind_one_address_are_independent() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let mine = bundled.open_all(1, 3);
    let theirs = bundled.open_all(2, 3);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&[mine, theirs].concat(), 300_000);
    let told = bundled.told();
    for bundle in [0, 1] {
        let decisions = told
            .iter()
            .filter(|(_, decision)| decision.bundle == bundle);
        assert!(
            decisions
                .clone()
                .any(|(_, d)| d.trigger == BundleTrigger::Loss)
        );
        for (own, decision) in decisions {
            assert!(decision.before.len() <= 3, "{decision:?}");
            assert!(*own < decision.before.len());
        }
    }
}

#[test]
fn a_guessed_identifier_forms_a_bundle_of_its_own_and_changes_no_window() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let mine = bundled.open_all(1, 2);
    let before = bundled.windows(&mine);
    // Neither its size nor its number tells a stranger anything, and the windows stay as they are.
    for guess in 2..10 {
        let (_, server) = bundled.open(guess, 1);
        let stranger = bundled.pair.server(server);
        assert_eq!(stranger.bundle(), Some(u64::from(guess) - 1));
    }
    assert_eq!(bundled.windows(&mine), before);
}

#[test]
fn a_connection_without_an_identifier_is_in_no_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let (_, server) = bundled.pair.establish();
    assert_eq!(bundled.pair.server(server).bundle(), None);
    assert!(bundled.told().is_empty());
}

#[test]
fn connections_from_one_address_form_a_bundle_if_addresses_are_matched() {
    let config = BundleConfig {
        match_addresses: true,
        ..BundleConfig::default()
    };
    let mut bundled = bundled(config, Algorithm::NewReno);
    let (_, first) = bundled.pair.establish();
    let (_, second) = bundled.pair.establish();
    assert_eq!(bundled.pair.server(first).bundle(), Some(0));
    assert_eq!(bundled.pair.server(second).bundle(), Some(0));
}

#[test]
fn a_bundle_ends_with_its_last_member() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 1);
    for (client, _) in handles {
        let now = bundled.pair.now;
        bundled.pair.client(client).close(now, 0, b"");
    }
    let gone = bundled
        .pair
        .drive_until(PATIENCE, |pair| pair.server.connections.is_empty());
    assert!(gone);
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 0);
}

/// How long two members take while a third does what `third` makes it do.
fn beside(scope: BundleScope, third: impl Fn(&mut Bundled, ConnectionHandle)) -> Duration {
    let config = BundleConfig {
        scope,
        ..BundleConfig::default()
    };
    let mut bundled = bundled(config, Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    let (client, _) = handles[2];
    third(&mut bundled, client);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles[..2], 1_000_000)
}

#[test]
fn an_idle_or_dead_member_slows_the_others_no_more_than_a_closed_one() {
    let closed = beside(BundleScope::Active, |bundled, client| {
        let now = bundled.pair.now;
        bundled.pair.client(client).close(now, 0, b"");
    });
    let idle = beside(BundleScope::Active, |_, _| {});
    let dead = beside(BundleScope::Active, |bundled, client| {
        // It is gone without a word, and the server keeps sending to it.
        let (_, server) = (
            client,
            *bundled.pair.server.connections.keys().last().unwrap(),
        );
        let id = bundled.pair.server(server).open(Dir::Uni).unwrap();
        let sent = bundled.pair.server(server).write(id, &pattern(100_000));
        assert!(sent.is_ok());
        bundled.pair.client.connections.remove(&client);
    });
    for (what, took) in [("idle", idle), ("dead", dead)] {
        assert!(
            took < closed * 3 / 2,
            "{what}: {took:?}, closed: {closed:?}"
        );
    }
}

#[test]
fn a_bundle_of_bbr_connections_equalizes_rates_and_not_windows() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::Bbr);
    let handles = bundled.open_all(1, 3);
    bundled.transfer(&handles[..1], 500_000);
    bundled.transfer(&handles, 2_000_000);
    for (_, decision) in bundled.told() {
        let rates = matches!(
            decision.action,
            BundleAction::Split | BundleAction::EqualizedRates
        );
        assert!(rates, "{decision:?}");
    }
}
