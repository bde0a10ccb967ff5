//! Connections that are members of a bundle, and others.

use std::sync::{Arc, Mutex};

use super::*;
use crate::congestion::slow_start::NoExit;
use crate::congestion::{Algorithm, ControllerFactory, FixedWindow};
use crate::coordination::bundle::{
    BundleConfig, BundleScope, Membership, MembershipId, split_initial_window,
};
use crate::observe::events::{BundleAction, BundlePhase, BundleTrigger};
use crate::observe::{Event as Observed, Observer};

mod hostile;
mod migration;
mod shared;

/// A decision of a bundle's engine, copied from its event.
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

/// The event of one member about a decision.
#[derive(Clone, Debug)]
struct Update {
    /// Index of the member in the decision.
    own: usize,
    decision: Decision,
}

/// The events of the members of all bundles.
type Recorded = Arc<Mutex<Vec<Update>>>;

struct Recorder(Recorded);

impl Observer for Recorder {
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
            self.0.lock().unwrap().push(Update {
                own: event.own,
                decision,
            });
        }
    }
}

/// 20 Mbit/s and 40 ms, with a queue of two bandwidth-delay products.
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
    recorded: Recorded,
}

fn bundled(config: BundleConfig, controller: impl ControllerFactory + 'static) -> Bundled {
    bundled_as(config, controller, PairConfig::default())
}

/// A pair whose server coordinates bundles; other settings are those of `pair`.
fn bundled_as(
    config: BundleConfig,
    controller: impl ControllerFactory + 'static,
    pair: PairConfig,
) -> Bundled {
    let recorded = Recorded::default();
    let sink = Arc::clone(&recorded);
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
                Some(Box::new(Recorder(Arc::clone(&sink))) as Box<dyn Observer>)
            }));
        }),
        ..pair
    });
    pair.network.set(link(0.0));
    Bundled { pair, recorded }
}

impl Bundled {
    fn open(&mut self, id: u8, connections: u64) -> Ends {
        self.pair.client_config.bundle = Some(Membership {
            id: MembershipId([id; 16]),
            connections,
        });
        self.pair.establish()
    }

    fn open_all(&mut self, id: u8, connections: u64) -> Vec<Ends> {
        (0..connections)
            .map(|_| self.open(id, connections))
            .collect()
    }

    fn windows(&mut self, members: &[Ends]) -> Vec<u64> {
        members
            .iter()
            .map(|ends| self.pair.server(ends.server).member_view().window)
            .collect()
    }

    fn updates(&self) -> Vec<Update> {
        self.recorded.lock().unwrap().clone()
    }

    /// Transfers `len` bytes over each connection concurrently; returns the time it took.
    fn transfer(&mut self, members: &[Ends], len: usize) -> Duration {
        let data = pattern(len);
        let mut transfers: Vec<_> = members
            .iter()
            .map(|&ends| Transfer::down(&mut self.pair, ends, &data))
            .collect();
        let start = self.pair.now;
        let done = self.pair.drive_until(TIMEOUT, |pair| {
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
    let members = bundled.open_all(1, 3);
    let updates = bundled.updates();
    let parts: Vec<u64> = updates
        .iter()
        .map(|update| update.decision.after[0] / 1200)
        .collect();
    assert_eq!(parts, split_initial_window(32, 3).collect::<Vec<_>>());
    let numbers: Vec<_> = members
        .iter()
        .map(|ends| bundled.pair.server(ends.server).bundle())
        .collect();
    assert_eq!(numbers, [Some(0); 3]);
    let client = members[0].client;
    assert!(bundled.pair.client(client).peer_coordinates_bundles());
}

#[test]
fn a_loss_equalizes_the_windows_of_all_members_and_slow_start_continues() {
    let mut bundled = bundled(BundleConfig::published(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles, 400_000);
    let updates = bundled.updates();
    let synchronized: Vec<_> = updates
        .iter()
        .map(|update| &update.decision)
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
    let updates = bundled.updates();
    for bundle in [0, 1] {
        let of_bundle = updates
            .iter()
            .filter(|update| update.decision.bundle == bundle);
        assert!(
            of_bundle
                .clone()
                .any(|update| update.decision.trigger == BundleTrigger::Loss)
        );
        for Update { own, decision } in of_bundle {
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
    for guess in 2..10 {
        let server = bundled.open(guess, 1).server;
        let bundle = bundled.pair.server(server).bundle();
        assert_eq!(bundle, Some(u64::from(guess) - 1));
    }
    assert_eq!(bundled.windows(&mine), before);
}

#[test]
fn a_connection_without_an_identifier_is_in_no_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let server = bundled.pair.establish().server;
    assert_eq!(bundled.pair.server(server).bundle(), None);
    assert!(bundled.updates().is_empty());
}

#[test]
fn connections_from_one_address_form_a_bundle_if_addresses_are_matched() {
    let config = BundleConfig {
        match_addresses: true,
        ..BundleConfig::default()
    };
    let mut bundled = bundled(config, Algorithm::NewReno);
    let first = bundled.pair.establish().server;
    let second = bundled.pair.establish().server;
    assert_eq!(bundled.pair.server(first).bundle(), Some(0));
    assert_eq!(bundled.pair.server(second).bundle(), Some(0));
}

#[test]
fn a_bundle_ends_with_its_last_member() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let members = bundled.open_all(1, 3);
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 1);
    for ends in members {
        let now = bundled.pair.now;
        bundled.pair.client(ends.client).close(now, 0, b"");
    }
    let removed = bundled
        .pair
        .drive_until(TIMEOUT, |pair| pair.server.connections.is_empty());
    assert!(removed);
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 0);
}

/// The duration of the transfers of two members after `change` was applied to the third.
fn transfer_beside(scope: BundleScope, change: impl Fn(&mut Bundled, Ends)) -> Duration {
    let config = BundleConfig {
        scope,
        ..BundleConfig::default()
    };
    let mut bundled = bundled(config, Algorithm::NewReno);
    let members = bundled.open_all(1, 3);
    change(&mut bundled, members[2]);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&members[..2], 1_000_000)
}

#[test]
fn an_idle_or_dead_member_slows_the_others_no_more_than_a_closed_one() {
    let closed = transfer_beside(BundleScope::Active, |bundled, ends| {
        let now = bundled.pair.now;
        bundled.pair.client(ends.client).close(now, 0, b"");
    });
    let idle = transfer_beside(BundleScope::Active, |_, _| {});
    let dead = transfer_beside(BundleScope::Active, |bundled, ends| {
        // The client's end is removed without a close, and the server keeps sending to it.
        let server = bundled.pair.server(ends.server);
        let id = server.open(Dir::Uni).unwrap();
        let sent = server.write(id, &pattern(100_000));
        assert!(sent.is_ok());
        bundled.pair.client.connections.remove(&ends.client);
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
    let mut bundled = bundled(BundleConfig::published(), Algorithm::Bbr);
    let members = bundled.open_all(1, 3);
    bundled.transfer(&members[..1], 500_000);
    bundled.transfer(&members, 2_000_000);
    for Update { decision, .. } in bundled.updates() {
        let rates = matches!(
            decision.action,
            BundleAction::Split | BundleAction::EqualizedRates
        );
        assert!(rates, "{decision:?}");
    }
}
