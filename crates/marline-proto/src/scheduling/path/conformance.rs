//! Rules that every path scheduler must keep.
//!
//! The test of a further scheduler is one line:
//!
//! ```
//! use marline_proto::scheduling::path::{Lrf, conformance};
//!
//! conformance::conformance(|| Box::new(Lrf));
//! ```

use std::time::Duration;

use marline_wire::{PathId, StreamId};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::{PathScheduler, PathStatus, PathView, Plan, RateView, StreamView, Work};
use crate::scheduling::stream::Sharing;

const STEPS: usize = 20_000;
const PACKET: u64 = 1200;
const WINDOW: u64 = 20 * PACKET;

/// Runs every check on the schedulers that `make` makes.
///
/// # Panics
///
/// If a scheduler breaks a rule; the message says which.
pub fn conformance(make: impl Fn() -> Box<dyn PathScheduler>) {
    waits_without_paths_or_work(make().as_mut());
    plans_what_can_be(&make);
    leaves_backups_alone(make().as_mut());
    completes(&make);
    returns_to_a_path(&make);
    stays_small(make().as_mut());
}

fn path(id: u32, rtt: u64) -> PathView {
    PathView {
        id: PathId(id),
        status: PathStatus::Available,
        smoothed_rtt: Some(Duration::from_millis(rtt)),
        rttvar: Duration::from_millis(rtt / 8),
        window: WINDOW,
        in_flight: 0,
        queued: 0,
        mtu: PACKET,
        rate: None,
    }
}

fn stream(id: u64, remaining: u64) -> StreamView {
    StreamView {
        id: StreamId::from(id),
        remaining,
        weight: 16,
        previous: None,
    }
}

/// The plan of `scheduler`, which gets the streams that it asks for.
fn plan(scheduler: &mut dyn PathScheduler, paths: &[PathView], streams: &[StreamView]) -> Plan {
    let seen = if scheduler.compares_streams() {
        streams.len()
    } else {
        streams.len().min(1)
    };
    let unsent = streams.iter().map(|stream| stream.remaining);
    let work = Work {
        streams: &streams[..seen],
        unsent: unsent.fold(0, u64::saturating_add),
        sharing: Sharing::Weighted,
    };
    scheduler.plan(paths, &work)
}

fn waits_without_paths_or_work(scheduler: &mut dyn PathScheduler) {
    assert!(!scheduler.name().is_empty(), "a scheduler has a name");
    let streams = [stream(0, 10_000)];
    assert_eq!(plan(scheduler, &[], &streams), Plan::Wait, "no path");
    let paths = [path(0, 20), path(1, 50)];
    assert_eq!(plan(scheduler, &paths, &[]), Plan::Wait, "no stream");
}

/// Random views: plans can be executed, and paths with room are used.
fn plans_what_can_be(make: &dyn Fn() -> Box<dyn PathScheduler>) {
    let mut rng = Pcg32::seed_from_u64(1);
    let mut pair = [make(), make()];
    for _ in 0..STEPS {
        let paths = random_paths(&mut rng);
        let streams = random_streams(&mut rng);
        let plans = pair
            .each_mut()
            .map(|scheduler| plan(scheduler.as_mut(), &paths, &streams));
        assert_eq!(plans[0], plans[1], "equal views make equal plans");
        check(plans[0], &paths, &streams);
    }
}

fn check(plan: Plan, paths: &[PathView], streams: &[StreamView]) {
    let usable: Vec<_> = super::view::usable(paths).collect();
    let chosen = plan.path().map(|id| {
        let path = usable.iter().find(|path| path.id == id);
        **path.unwrap_or_else(|| panic!("{plan:?} is of a path that cannot be used: {paths:?}"))
    });
    let known = |id| streams.iter().any(|stream| stream.id == id);
    assert!(
        plan.stream().is_none_or(known),
        "{plan:?} is of an unknown stream: {streams:?}"
    );
    let full = chosen.map(|path| path.is_full());
    let is_possible = match plan {
        Plan::Wait => streams.is_empty() || usable.iter().any(|path| path.is_full()),
        Plan::Send { .. } => full == Some(false),
        Plan::Queue { .. } => full == Some(true),
    };
    assert!(
        is_possible || usable.is_empty(),
        "{plan:?} does not suit {paths:?}"
    );
    if usable.iter().all(|path| path.is_full()) {
        assert_eq!(plan, Plan::Wait, "every path is full");
    }
}

/// A number whose size is random: from 0 to 2^62.
fn magnitude(rng: &mut Pcg32) -> u64 {
    rng.random::<u64>() >> rng.random_range(2..64_u32)
}

fn random_paths(rng: &mut Pcg32) -> Vec<PathView> {
    let mut paths = Vec::new();
    for id in 0..rng.random_range(0..5_u32) {
        if rng.random_range(0..4_u32) == 0 {
            continue;
        }
        let sensible = rng.random::<bool>();
        let mut view = path(id, rng.random_range(1..300));
        if rng.random_range(0..6_u32) == 0 {
            view.smoothed_rtt = None;
        }
        if rng.random_range(0..3_u32) == 0 {
            view.status = PathStatus::Backup;
        }
        view.in_flight = rng.random_range(0..=WINDOW + PACKET);
        if !sensible {
            view.smoothed_rtt = Some(Duration::from_nanos(magnitude(rng)));
            view.rttvar = Duration::from_nanos(magnitude(rng));
            view.window = magnitude(rng);
            view.in_flight = magnitude(rng);
            view.queued = magnitude(rng);
            view.mtu = magnitude(rng);
        }
        if view.smoothed_rtt.is_some() && rng.random::<bool>() {
            view.rate = Some(random_rate(rng));
        }
        paths.push(view);
    }
    paths
}

fn random_rate(rng: &mut Pcg32) -> RateView {
    let is_paced = rng.random::<bool>();
    RateView {
        bandwidth: magnitude(rng),
        min_rtt: Duration::from_nanos(magnitude(rng)),
        paced_for: Duration::from_nanos(if is_paced { magnitude(rng) } else { 0 }),
    }
}

fn random_streams(rng: &mut Pcg32) -> Vec<StreamView> {
    let count = rng.random_range(0..5_u64);
    let streams = (0..count).map(|n| StreamView {
        weight: rng.random_range(0..=256),
        previous: rng.random::<bool>().then(|| PathId(rng.random_range(0..5))),
        ..stream(n * 7 + rng.random_range(0..7_u64), magnitude(rng) + 1)
    });
    streams.collect()
}

fn leaves_backups_alone(scheduler: &mut dyn PathScheduler) {
    let backup = PathView {
        status: PathStatus::Backup,
        ..path(0, 1)
    };
    let mut paths = [backup, path(1, 50)];
    let streams = [stream(0, 1_000_000)];
    for _ in 0..100 {
        let plan = plan(scheduler, &paths, &streams);
        assert_ne!(plan.path(), Some(PathId(0)), "a backup waits");
        if plan.path().is_some() {
            paths[1].take(PACKET);
        }
    }
    let plan = plan(scheduler, &paths[..1], &streams);
    assert_eq!(plan.path(), Some(PathId(0)), "now there is nothing else");
}

/// A transfer on paths that deliver their packets once every window is full or the scheduler waits.
struct Transfer {
    scheduler: Box<dyn PathScheduler>,
    paths: Vec<PathView>,
    streams: Vec<StreamView>,
}

impl Transfer {
    /// Plans until the scheduler waits, then delivers a window of each path; returns how many packets each path
    /// got, copies included.
    fn round(&mut self) -> Vec<u64> {
        let mut packets = vec![0; self.paths.len()];
        while let Some(choice) = self.step() {
            let open: Vec<_> = self.paths.iter().map(|path| !path.is_full()).collect();
            for (n, path) in self.paths.iter_mut().enumerate() {
                let is_choice = Some(path.id) == choice.path();
                let is_copy = matches!(choice, Plan::Send { copies: true, .. }) && open[n];
                if is_choice || is_copy {
                    path.take(PACKET);
                    packets[n] += 1;
                }
            }
            assert!(
                packets.iter().sum::<u64>() < 100_000,
                "queues grow without bound: {:?}",
                self.paths
            );
        }
        for path in &mut self.paths {
            path.in_flight = path.queued.min(path.window);
            path.queued -= path.in_flight;
        }
        packets
    }

    fn step(&mut self) -> Option<Plan> {
        let plan = plan(self.scheduler.as_mut(), &self.paths, &self.streams);
        let id = plan.stream()?;
        let place = self.streams.iter().position(|stream| stream.id == id)?;
        let stream = &mut self.streams[place];
        stream.previous = plan.path();
        stream.remaining = stream.remaining.saturating_sub(PACKET);
        if stream.remaining == 0 {
            self.streams.remove(place);
        }
        Some(plan)
    }
}

fn completes(make: &dyn Fn() -> Box<dyn PathScheduler>) {
    for slower in [20, 50, 200, 1000] {
        let mut transfer = Transfer {
            scheduler: make(),
            paths: vec![path(0, 20), path(1, slower)],
            streams: (0..5).map(|n| stream(n, n * n * 70_000 + 1)).collect(),
        };
        let mut idle = 0;
        while !transfer.streams.is_empty() {
            let sent = transfer.round().iter().sum::<u64>();
            idle = if sent == 0 { idle + 1 } else { 0 };
            assert!(idle < 1000, "the transfer stalls");
        }
    }
}

/// A path that returns after a long time is used as before.
fn returns_to_a_path(make: &dyn Fn() -> Box<dyn PathScheduler>) {
    for silent in [0, 1] {
        let both = vec![path(0, 20), path(1, 50)];
        let mut transfer = Transfer {
            scheduler: make(),
            paths: both.clone(),
            streams: vec![stream(0, 1 << 40)],
        };
        let mut before = 0;
        for _ in 0..20 {
            before += transfer.round()[silent];
        }
        assert!(before > 0, "with much to send both paths are used");
        transfer.paths = vec![both[1 - silent]];
        for _ in 0..100 {
            assert!(transfer.round()[0] > 0, "the other path goes on");
        }
        transfer.paths = both;
        let mut after = 0;
        for _ in 0..20 {
            after += transfer.round()[silent];
        }
        assert!(
            2 * after >= before,
            "path {silent} carried {before} packets, and {after} when it came back"
        );
    }
}

/// No state is kept of streams and paths that no longer exist.
fn stays_small(scheduler: &mut dyn PathScheduler) {
    let mut most = 0;
    for n in 0..10_000 {
        let mut paths = [path(2 * n, 20), path(2 * n + 1, 50)];
        paths[0].in_flight = WINDOW;
        let streams = [0, 1].map(|k| stream(u64::from(2 * n + k), 50_000));
        plan(scheduler, &paths, &streams);
        most = most.max(format!("{scheduler:?}").len());
    }
    assert!(most < 8192, "its state takes {most} characters");
}
