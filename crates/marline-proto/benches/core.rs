//! The core alone: two endpoints in virtual time, no sockets. The measured time is that of both ends together.

mod bulk;

use std::time::Duration;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use marline_proto::testing::{Conditions, Pair, PairConfig};
use marline_proto::{ConnectionHandle, Dir, ReadError, StreamId, TransportConfig};

use crate::bulk::{Connected, download};

const BULK: usize = 16 << 20;
const REQUESTS: usize = 200;

/// A connection over a fast network.
fn established() -> Connected {
    let quiet = || TransportConfig {
        pacing: false,
        ..TransportConfig::default()
    };
    let mut pair = Pair::with(PairConfig {
        client: quiet(),
        server: quiet(),
        ..PairConfig::default()
    });
    pair.network.set(Conditions {
        delay: Duration::from_micros(100),
        ..Conditions::default()
    });
    let ends = pair.establish();
    Connected { pair, ends }
}

/// Requests of 40 bytes answered with 1 KiB, one after another.
fn requests(connected: &mut Connected, count: usize) {
    let Connected { pair, ends } = connected;
    let answer = Bytes::from_static(&[7; 1024]);
    for _ in 0..count {
        let client = pair.client(ends.client);
        let id = client.open(Dir::Bi).expect("the server allows streams");
        client.write(id, &[1; 40]).expect("the window is open");
        client.finish(id).expect("the stream is open");
        let done = pair.drive_until(Duration::from_secs(5), |pair| {
            let now = pair.now;
            let connection = pair.server(ends.server);
            if connection.accept(Dir::Bi).is_some() {
                while let Ok(Some(_)) = connection.read(|| now, id, usize::MAX) {}
                let _ = connection.write_chunk(id, &mut answer.clone());
                let _ = connection.finish(id);
            }
            matches!(drain(pair, ends.client, id), Ok(None))
        });
        assert!(done);
    }
}

fn drain(
    pair: &mut Pair,
    client: ConnectionHandle,
    id: StreamId,
) -> Result<Option<Bytes>, ReadError> {
    let now = pair.now;
    loop {
        match pair.client(client).read(|| now, id, usize::MAX) {
            Ok(Some(_)) => {}
            end => return end,
        }
    }
}

fn core(c: &mut Criterion) {
    let mut group = c.benchmark_group("core");
    group.sample_size(20);
    let data = Bytes::from(vec![5; BULK]);
    group.throughput(Throughput::Bytes(BULK as u64));
    group.bench_function("bulk", |b| {
        b.iter_batched(
            established,
            |mut connected| download(&mut connected, &data),
            BatchSize::PerIteration,
        );
    });
    group.throughput(Throughput::Elements(REQUESTS as u64));
    group.bench_function("requests", |b| {
        b.iter_batched(
            established,
            |mut connected| requests(&mut connected, REQUESTS),
            BatchSize::PerIteration,
        );
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("handshake", |b| {
        b.iter_batched(
            Pair::new,
            |mut pair| {
                pair.establish();
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, core);
criterion_main!(benches);
