//! Bundles of paths between the same addresses.

use std::sync::{Arc, Mutex};

use super::*;
use crate::congestion::slow_start::NoExit;
use crate::congestion::{Algorithm, ConnectionKind, FixedWindow};
use crate::connection::tests::bundle::link;
use crate::coordination::bundle::{BundleConfig, Membership, MembershipId};
use crate::coordination::history::{PathHistory, PathSample};
use crate::observe::events::{BundleAction, BundlePhase, BundleTrigger, BundleUpdated};
use crate::observe::stats::PathStats;
use crate::observe::{Event as Observed, Observer};

/// A decision of a bundle's engine, as one of its paths reports it.
#[derive(Clone, Debug)]
struct Update {
    path: Option<PathId>,
    own: usize,
    trigger: BundleTrigger,
    action: BundleAction,
    phase: BundlePhase,
    before: Vec<u64>,
    after: Vec<u64>,
}

impl From<&BundleUpdated<'_>> for Update {
    fn from(event: &BundleUpdated<'_>) -> Self {
        Self {
            path: event.path,
            own: event.own,
            trigger: event.trigger,
            action: event.action,
            phase: event.phase,
            before: event.before.to_vec(),
            after: event.after.to_vec(),
        }
    }
}

type Log = Arc<Mutex<Vec<Update>>>;

struct Recorder(Log);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &Observed<'_>) {
        if let Observed::BundleUpdated(event) = event {
            self.0.lock().unwrap().push(event.into());
        }
    }
}

/// The configuration of the experiments with bundles.
fn plain(multipath: Option<MultipathConfig>, bundle: Option<BundleConfig>) -> TransportConfig {
    TransportConfig {
        multipath,
        bundle: bundle.map(Arc::new),
        controller: Arc::new(Algorithm::NewReno),
        initial_window: Arc::new(FixedWindow { packets: 32 }),
        slow_start_exit: Arc::new(|| Box::new(NoExit)),
        ..TransportConfig::default()
    }
}

/// Configuration of an end that opens `count` paths, coordinated by `bundle`.
fn paths(count: u32, bundle: Option<BundleConfig>) -> MultipathConfig {
    MultipathConfig {
        max_paths: count,
        same_tuple_paths: count,
        bundle_paths: bundle.map(Arc::new),
        ..MultipathConfig::default()
    }
}

struct Bundled {
    several: Several,
    log: Log,
}

impl Bundled {
    /// A connection with `count` paths between the same addresses, which the server coordinates.
    fn new(count: u32, bundle: Option<BundleConfig>, seed: u64) -> Self {
        Self::over(link(0.0), paths(count, bundle), seed)
    }

    fn over(conditions: Conditions, multipath: MultipathConfig, seed: u64) -> Self {
        Self::with(conditions, multipath, Algorithm::NewReno, seed)
    }

    fn with(
        conditions: Conditions,
        multipath: MultipathConfig,
        controller: Algorithm,
        seed: u64,
    ) -> Self {
        let log = Log::default();
        let sink = Arc::clone(&log);
        let mut pair = Pair::with(PairConfig {
            client: plain(Some(multipath.clone()), None),
            server: TransportConfig {
                controller: Arc::new(controller),
                ..plain(Some(multipath), None)
            },
            adjust_server: Box::new(move |server| {
                server.observer = Some(Arc::new(move |_| {
                    Some(Box::new(Recorder(Arc::clone(&sink))) as Box<dyn Observer>)
                }));
            }),
            seed,
            ..PairConfig::default()
        });
        pair.network.set(conditions);
        Self {
            several: Several::with(pair),
            log,
        }
    }

    fn updates(&self) -> Vec<Update> {
        self.log.lock().unwrap().clone()
    }

    fn windows(&mut self) -> Vec<u64> {
        let stats = self.several.server().stats();
        stats
            .paths
            .iter()
            .map(|path| path.congestion_window)
            .collect()
    }

    fn download(&mut self, len: usize) -> Duration {
        let ends = self.several.ends;
        download(&mut self.several.pair, ends, &pattern(len))
    }
}

#[test]
fn the_client_opens_the_configured_number_of_paths_and_replaces_none() {
    let mut bundled = Bundled::new(3, Some(BundleConfig::default()), 1);
    assert_eq!(bundled.several.paths(Side::Client), [0, 1, 2]);
    assert_eq!(bundled.several.paths(Side::Server), [0, 1, 2]);
    let all = [PathId(0), PathId(1), PathId(2)];
    assert_eq!(bundled.several.server().paths.bundled(), [all.to_vec()]);
    assert_eq!(bundled.several.client().paths.bundled(), [all.to_vec()]);
    let now = bundled.several.pair.now;
    let abandoned = bundled
        .several
        .server()
        .abandon_path(now, ONE, ErrorCode::NO_ERROR);
    assert_eq!(abandoned, Ok(()));
    bundled.several.pair.drive(Duration::from_secs(5));
    assert_eq!(bundled.several.paths(Side::Client), [0, 2]);
    let rest = vec![PathId(0), PathId(2)];
    assert_eq!(bundled.several.server().paths.bundled(), [rest]);
    bundled.download(500_000);
}

#[test]
fn the_client_opens_no_more_paths_than_the_server_allows() {
    let mut several = Several::with(Pair::with(PairConfig {
        client: plain(Some(paths(8, None)), None),
        server: plain(Some(paths(2, None)), None),
        ..PairConfig::default()
    }));
    assert_eq!(several.paths(Side::Client), [0, 1]);
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(500_000));
}

#[test]
fn paths_of_a_bundle_share_one_initial_window() {
    let mut bundled = Bundled::new(3, Some(BundleConfig::default()), 1);
    let windows = bundled.windows();
    let sum: u64 = windows.iter().sum();
    // The window grew by the bytes acknowledged in the handshake.
    assert!(
        (32 * 1200 - 2..32 * 1200 + 6000).contains(&sum),
        "{windows:?}"
    );
    assert!(
        windows
            .iter()
            .all(|window| window.abs_diff(windows[0]) < 3000)
    );
    let updates = bundled.updates();
    let last = updates.last().expect("decisions");
    assert_eq!(last.trigger, BundleTrigger::Joined);
    assert_eq!(last.action, BundleAction::Split);
    assert_eq!(
        (last.path, last.own, last.after.len()),
        (Some(PathId(2)), 2, 3)
    );
}

#[test]
fn a_grown_window_is_split_among_the_paths_that_join() {
    let multipath = MultipathConfig {
        same_tuple_paths: 1,
        ..paths(3, Some(BundleConfig::default()))
    };
    let mut bundled = Bundled::over(link(0.0), multipath, 1);
    bundled.download(300_000);
    let alone = bundled.windows()[0];
    assert!(alone > 100_000, "{alone}");
    let tuple = FourTuple {
        local: bundled.several.pair.client.address,
        remote: bundled.several.pair.server.address,
    };
    for _ in 1..3 {
        let now = bundled.several.pair.now;
        assert!(bundled.several.client().open_path(now, tuple).is_ok());
        bundled.several.pair.drive(Duration::from_millis(100));
    }
    let windows = bundled.windows();
    assert!(
        windows
            .iter()
            .all(|window| window.abs_diff(alone / 3) < 3000),
        "{alone} became {windows:?}"
    );
}

#[test]
fn a_loss_on_one_path_equalizes_all_windows_and_slow_start_continues() {
    let mut bundled = Bundled::new(3, Some(BundleConfig::published()), 1);
    bundled.several.pair.network.set(link(0.01));
    bundled.download(1_200_000);
    let synchronized: Vec<_> = bundled
        .updates()
        .into_iter()
        .filter(|update| update.action == BundleAction::Synchronized)
        .collect();
    assert!(!synchronized.is_empty());
    for update in &synchronized {
        assert_eq!(update.trigger, BundleTrigger::Loss);
        assert_eq!(update.phase, BundlePhase::SlowStart);
        assert_eq!(
            (update.before.len(), update.own as u32),
            (3, update.path.unwrap().0)
        );
        assert!(update.after.windows(2).all(|pair| pair[0] == pair[1]));
    }
    for path in 0..3 {
        let sent = bundled.several.sent(Side::Server, PathId(path));
        assert!(sent > 300_000, "{sent} bytes on path {path}");
    }
}

/// Average time in seconds of four runs with different seeds.
fn average(mut run: impl FnMut(u64) -> f64) -> f64 {
    const RUNS: u64 = 4;
    (0..RUNS).map(|seed| run(seed + 1)).sum::<f64>() / RUNS as f64
}

#[test]
fn bundled_paths_are_about_as_fast_as_bundled_connections() {
    const LEN: usize = 900_000;
    let over_paths = |count, bundle: Option<BundleConfig>| {
        average(|seed| {
            let mut bundled = Bundled::new(count, bundle.clone(), seed);
            bundled.several.pair.network.set(link(0.01));
            bundled.download(LEN).as_secs_f64()
        })
    };
    let one = over_paths(1, None);
    let three = over_paths(3, Some(BundleConfig::default()));
    let connections = average(|seed| bundle_of_connections(LEN, seed));
    assert!(
        three < one / 1.5,
        "{three} s over three paths, {one} s over one"
    );
    assert!(
        three < connections * 1.2,
        "{three} s over paths, {connections} s over connections"
    );
}

/// Time in seconds that three connections of a bundle take, each for a third of `len`.
fn bundle_of_connections(len: usize, seed: u64) -> f64 {
    let mut pair = Pair::with(PairConfig {
        server: plain(None, Some(BundleConfig::default())),
        client: plain(None, None),
        seed,
        ..PairConfig::default()
    });
    pair.network.set(link(0.0));
    pair.client_config.bundle = Some(Membership {
        id: MembershipId([1; 16]),
        connections: 3,
    });
    let handles: Vec<_> = (0..3).map(|_| pair.establish()).collect();
    pair.drive(Duration::from_millis(100));
    pair.network.set(link(0.01));
    let data = pattern(len / 3);
    let mut transfers: Vec<_> = handles
        .iter()
        .map(|&ends| Transfer::down(&mut pair, ends, &data))
        .collect();
    let start = pair.now;
    let done = pair.drive_until(TIMEOUT, |pair| {
        transfers.retain_mut(|transfer| !transfer.advance(pair));
        transfers.is_empty()
    });
    assert!(done, "the transfers took too long");
    (pair.now - start).as_secs_f64()
}

#[test]
fn a_bundle_of_one_path_changes_nothing() {
    let run = |bundle: Option<BundleConfig>| {
        let mut bundled = Bundled::new(1, bundle, 1);
        bundled.several.pair.network.set(link(0.003));
        let took = bundled.download(500_000);
        assert!(bundled.updates().is_empty());
        let stats = bundled.several.server().stats();
        (took, format!("{stats:?}"))
    };
    assert_eq!(run(Some(BundleConfig::default())), run(None));
}

#[test]
fn paths_of_one_tuple_discover_the_mtu_once() {
    let mut bundled = Bundled::over(link(0.0), paths(3, None), 1);
    bundled.several.pair.drive(Duration::from_secs(2));
    for side in [Side::Client, Side::Server] {
        let sizes = bundled.several.end(side).datagram_sizes();
        assert_eq!(sizes, [1472; 3], "at the {side:?}");
    }
    let probes = |stats: &PathStats| stats.udp_sent.bytes / 1400;
    let stats = bundled.several.server().stats();
    let of_others: u64 = stats.paths[1..].iter().map(probes).sum();
    assert_eq!(of_others, 0, "{:?}", stats.paths);
}

#[test]
fn a_bundle_of_bbr_paths_equalizes_rates_and_not_windows() {
    let multipath = paths(3, Some(BundleConfig::default()));
    let mut bundled = Bundled::with(link(0.0), multipath, Algorithm::Bbr, 1);
    bundled.download(3_000_000);
    for update in bundled.updates() {
        let rates = matches!(
            update.action,
            BundleAction::Split | BundleAction::EqualizedRates
        );
        assert!(rates, "{update:?}");
    }
}

#[test]
fn a_fair_bundle_reduces_the_sum_of_its_windows() {
    let fair = BundleConfig {
        fair: true,
        ..BundleConfig::default()
    };
    let mut bundled = Bundled::new(3, Some(fair), 1);
    bundled.several.pair.network.set(link(0.002));
    bundled.download(3_000_000);
    let changes: Vec<_> = bundled
        .updates()
        .iter()
        .filter(|update| update.action == BundleAction::BackedOff)
        .map(|update| -> [u64; 2] { [update.before.iter().sum(), update.after.iter().sum()] })
        .collect();
    // A path that is active alone has reduced its window before the decision.
    assert!(changes.iter().all(|[before, after]| after <= before));
    assert!(changes.iter().any(|[before, after]| after < before));
}

#[test]
fn a_migration_moves_all_paths_of_the_tuple() {
    let mut bundled = Bundled::new(3, Some(BundleConfig::default()), 1);
    bundled.download(500_000);
    let client = bundled.several.ends.client;
    let elsewhere = "198.51.100.77:4444".parse().expect("an address");
    bundled.several.pair.migrate(client, elsewhere);
    bundled.several.pair.drive(Duration::from_millis(500));
    bundled.download(500_000);
    for side in [Side::Client, Side::Server] {
        let mut groups = bundled.several.end(side).paths.bundled();
        groups.iter_mut().for_each(|group| group.sort());
        assert_eq!(
            groups,
            [[PathId(0), PathId(1), PathId(2)]],
            "at the {side:?}"
        );
        let stats = bundled.several.end(side).stats();
        assert!(stats.paths.iter().all(|path| match side {
            Side::Client => path.local == Some(elsewhere),
            Side::Server => path.remote == elsewhere,
        }));
    }
}

#[test]
fn a_nat_rebinding_keeps_paths_in_their_bundle() {
    let mut bundled = Bundled::new(3, Some(BundleConfig::default()), 1);
    bundled.download(500_000);
    let earlier = bundled.updates().len();
    let outside = "192.0.2.1:7777".parse().expect("an address");
    bundled.several.pair.rebind_nat(outside);
    bundled.several.client().ping();
    bundled.download(200_000);
    let updates = bundled.updates().split_off(earlier);
    let joined = |update: &Update| update.trigger == BundleTrigger::Joined;
    assert!(!updates.iter().any(joined), "{updates:?}");
    assert_eq!(bundled.several.server().paths.bundled().len(), 1);
}

/// A history that records the samples of connections.
#[derive(Debug, Default)]
struct Samples(Mutex<Vec<PathSample>>);

impl PathHistory for Samples {
    fn observe(&self, _kind: &ConnectionKind<'_>, seen: &PathSample) {
        self.0.lock().unwrap().push(*seen);
    }
}

#[test]
fn the_sample_for_the_history_has_the_sum_of_all_windows() {
    let samples = Arc::new(Samples::default());
    let multipath = paths(3, Some(BundleConfig::default()));
    let mut several = Several::with(Pair::with(PairConfig {
        client: plain(Some(multipath.clone()), None),
        server: TransportConfig {
            history: Some(samples.clone()),
            ..plain(Some(multipath), None)
        },
        ..PairConfig::default()
    }));
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(300_000));
    let stats = several.server().stats();
    let sum: u64 = stats.paths.iter().map(|path| path.congestion_window).sum();
    close(&mut several.pair, ends.client);
    let samples = samples.0.lock().unwrap();
    let last = samples.last().expect("a sample at the end");
    assert_eq!(last.window, sum);
    assert!(last.delivered > 300_000, "{last:?}");
}
