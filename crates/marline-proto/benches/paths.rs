//! The cost of several paths: a scheduler's decision, and a transfer over one path, or over several with the
//! same total rate. The measured time is that of both ends together, without sockets.

mod bulk;

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use marline_proto::scheduling::path::{PathStatus, PathView, SCHEDULERS, StreamView, Work};
use marline_proto::scheduling::stream::Sharing;
use marline_proto::testing::{Conditions, Pair, PairConfig};
use marline_proto::{Dir, FourTuple, MultipathConfig, PathId, Side, StreamId, TransportConfig};

use crate::bulk::{Connected, download};

const BULK: usize = 16 << 20;
/// Rate of all paths together, in bytes per second.
const RATE: u64 = 1_250_000_000;
/// Pairs of runs from which the ratio is taken.
const RUNS: usize = 7;

/// Paths that differ in every respect; only the last has window left.
fn views(count: u32) -> Vec<PathView> {
    (0..count)
        .map(|id| PathView {
            id: PathId(id),
            status: PathStatus::Available,
            smoothed_rtt: Some(Duration::from_millis(20 + 15 * u64::from(id))),
            rttvar: Duration::from_millis(3),
            window: 60_000,
            in_flight: if id + 1 < count { 60_000 } else { 20_000 },
            queued: 0,
            mtu: 1452,
            rate: None,
        })
        .collect()
}

fn plan(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan");
    group.throughput(Throughput::Elements(1));
    let streams = [StreamView {
        id: StreamId::new(Side::Client, Dir::Bi, 0),
        remaining: 1_000_000,
        weight: 16,
        previous: Some(PathId(0)),
    }];
    let work = Work {
        streams: &streams,
        unsent: 1_000_000,
        sharing: Sharing::Weighted,
    };
    for policy in SCHEDULERS.defaults() {
        for count in [1, 2, 4] {
            let paths = views(count);
            let mut scheduler = (policy.value)();
            group.bench_function(BenchmarkId::new(policy.name, count), |b| {
                b.iter(|| scheduler.plan(black_box(&paths), black_box(&work)));
            });
        }
    }
    group.finish();
}

/// A pair whose connection has this many paths, each with its share of the rate; 0 does not
/// negotiate multipath.
fn established(paths: u8) -> Connected {
    let transport = || TransportConfig {
        pacing: false,
        multipath: (paths > 0).then(MultipathConfig::default),
        ..TransportConfig::default()
    };
    let mut pair = Pair::with(PairConfig {
        client: transport(),
        server: transport(),
        ..PairConfig::default()
    });
    let share = Conditions {
        delay: Duration::from_micros(100),
        rate: Some(RATE / u64::from(paths.max(1))),
        ..Conditions::default()
    };
    pair.network.set(share);
    let ends = pair.establish();
    pair.drive(Duration::from_millis(10));
    for link in 1..paths {
        let local = SocketAddr::from(([198, 51, 100, link], 40_000));
        pair.network.set_link(local, share);
        let (now, remote) = (pair.now, pair.server.address);
        let opened = pair
            .client(ends.client)
            .open_path(now, FourTuple { local, remote });
        assert_eq!(opened, Ok(PathId(link.into())));
        pair.drive(Duration::from_millis(10));
    }
    Connected { pair, ends }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a ratio of real times is what is printed"
)]
fn now() -> Instant {
    Instant::now()
}

fn several(c: &mut Criterion) {
    let mut group = c.benchmark_group("paths");
    group.sample_size(10);
    let data = Bytes::from(vec![5; BULK]);
    group.throughput(Throughput::Bytes(BULK as u64));
    for (name, paths) in [("off", 0), ("1", 1), ("2", 2), ("4", 4)] {
        group.bench_function(BenchmarkId::new("bulk", name), |b| {
            b.iter_batched(
                || established(paths),
                |mut connected| download(&mut connected, &data),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();

    let time = |paths| {
        let mut connected = established(paths);
        let start = now();
        download(&mut connected, &data);
        start.elapsed().as_secs_f64()
    };
    for (paths, others) in [(1, 0), (2, 1), (4, 1)] {
        // In turns, so that other load of the machine affects both alike.
        let mut ratios: Vec<f64> = (0..RUNS).map(|_| time(paths) / time(others)).collect();
        ratios.sort_by(f64::total_cmp);
        let name = |paths| match paths {
            0 => "none negotiated".to_owned(),
            1 => "one path".to_owned(),
            paths => format!("{paths} paths"),
        };
        let ratio = ratios[RUNS / 2];
        println!(
            "{} : {} = {ratio:.3} (time for 16 MiB)",
            name(paths),
            name(others)
        );
    }
}

criterion_group!(benches, plan, several);
criterion_main!(benches);
