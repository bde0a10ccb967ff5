//! Statistics and events of each path.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;
use crate::observe::{PathStage, PathStats};

fn of(several: &mut Several, side: Side, path: PathId) -> PathStats {
    let paths = several.end(side).stats().paths;
    let found = paths.into_iter().find(|stats| stats.id == path);
    found.expect("the path is there")
}

#[test]
fn statistics_have_the_stage_and_status_of_each_path() {
    let mut several = Several::new();
    assert_eq!(several.open(1), Ok(ONE));
    let one = of(&mut several, Side::Client, ONE);
    assert_eq!(one.stage, PathStage::Validating);
    several.pair.drive(Duration::from_millis(100));
    for side in [Side::Client, Side::Server] {
        let one = of(&mut several, side, ONE);
        assert_eq!(
            (one.stage, one.status),
            (PathStage::Open, PathStatus::Available)
        );
    }
    several.client().set_path_status(ONE, PathStatus::Backup);
    several.pair.drive(Duration::from_millis(20));
    for side in [Side::Client, Side::Server] {
        assert_eq!(of(&mut several, side, ONE).status, PathStatus::Backup);
    }
    let now = several.pair.now;
    let error = ErrorCode::APPLICATION_ABANDON_PATH;
    assert_eq!(several.client().abandon_path(now, ONE, error), Ok(()));
    several.pair.drive(Duration::from_millis(20));
    for side in [Side::Client, Side::Server] {
        let one = of(&mut several, side, ONE);
        assert_eq!(one.stage, PathStage::Abandoned);
        assert_eq!(
            of(&mut several, side, PathId::INITIAL).stage,
            PathStage::Open
        );
    }
}

#[test]
fn statistics_have_the_bytes_sent_copied_and_queued_of_each_path() {
    for scheduler in SCHEDULERS.defaults() {
        let mut several = Several::two_of(scheduled(scheduler.value), narrow());
        let ends = several.ends;
        let data = pattern(1_000_000);
        let mut transfer = Transfer::down(&mut several.pair, ends, &data);
        let mut most_queued = 0;
        let done = several.pair.drive_until(TIMEOUT, |pair| {
            let stats = pair.server(ends.server).stats();
            let queued = stats.paths.iter().map(|path| path.bytes_queued);
            most_queued = most_queued.max(queued.sum());
            transfer.advance(pair)
        });
        assert!(done);
        assert!(most_queued > 0, "{}", scheduler.name);
        let stats = several.server().stats();
        let total = |field: fn(&PathStats) -> u64| stats.paths.iter().map(field).sum::<u64>();
        let copied = total(|path| path.stream_bytes_copied);
        let streams = stats.streams;
        assert_eq!(
            total(|path| path.stream_bytes_sent),
            streams.bytes_sent + streams.bytes_retransmitted + copied
        );
        assert!(copied > 0 || scheduler.name != "redundant");
        assert_eq!(total(|path| path.bytes_queued), 0);
    }
}

/// The paths that events name, and the largest queue.
#[derive(Default)]
struct Named {
    sent: BTreeSet<PathId>,
    received: BTreeSet<PathId>,
    metrics: BTreeSet<PathId>,
    queued: u64,
}

struct Recorder(Arc<Mutex<Named>>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &observe::Event<'_>) {
        let mut named = self.0.lock().unwrap();
        match event {
            observe::Event::PacketSent(packet) => named.sent.insert(packet.path),
            observe::Event::PacketReceived(packet) => named.received.insert(packet.path),
            observe::Event::MetricsUpdated(metrics) => {
                named.queued = named.queued.max(metrics.bytes_queued);
                named.metrics.insert(metrics.path)
            }
            _ => false,
        };
    }
}

#[test]
fn events_of_packets_and_metrics_name_their_path() {
    let named = Arc::<Mutex<Named>>::default();
    let sink = Arc::clone(&named);
    let transport = scheduled(scheduler("hbes"));
    let pair = Pair::with(PairConfig {
        client: transport.clone(),
        server: transport,
        adjust_server: Box::new(move |server| {
            server.observer = Some(Arc::new(move |_: &ConnectionInfo| {
                Some(Box::new(Recorder(Arc::clone(&sink))) as Box<dyn Observer>)
            }));
        }),
        ..PairConfig::default()
    });
    let mut several = Several::with(pair);
    several.pair.network.set(narrow());
    several.pair.network.set_link(address(1), narrow());
    assert_eq!(several.open(1), Ok(ONE));
    several.pair.drive(Duration::from_millis(100));
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(1_000_000));
    let named = named.lock().unwrap();
    for paths in [&named.sent, &named.received, &named.metrics] {
        assert!(paths.iter().eq(&[PathId::INITIAL, ONE]), "{paths:?}");
    }
    assert!(named.queued > 0);
}
