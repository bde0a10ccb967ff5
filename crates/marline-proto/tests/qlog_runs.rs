//! Logs of whole connections are valid, and every declared event is emitted in some run.

mod log;
mod schema;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marline_proto::coordination::bundle::{BundleConfig, Membership, MembershipId};
use marline_proto::coordination::history::{CarefulHistory, HistoryConfig, MemoryStore};
use marline_proto::observe::qlog::{Header, VantagePoint};
use marline_proto::observe::{Event, Observer, QlogWriter};
use marline_proto::testing::{Conditions, Direction, Ends, Pair, PairConfig};
use marline_proto::{
    AckFrequencyConfig, ConnectionHandle, ConnectionInfo, Dir, ErrorCode, FourTuple, Instant,
    MakeObserver, MultipathConfig, TransportConfig, WriteError,
};
use serde_json::Value;

use self::log::Log;

const TIMEOUT: Duration = Duration::from_secs(120);

/// A log that writes each event immediately.
struct Unbuffered(QlogWriter<Log>);

impl Observer for Unbuffered {
    fn on_event(&mut self, now: Instant, event: &Event<'_>) {
        self.0.on_event(now, event);
        self.0.flush();
    }
}

/// The logs of all connections of both ends.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<Vec<Log>>>);

impl Logs {
    /// Logs all connections of a pair from now on.
    fn observe(pair: &mut Pair) -> Self {
        let logs = Self::default();
        pair.client_config.observer = Some(logs.make());
        let observer = logs.make();
        pair.reconfigure_server(move |server, _| server.observer = Some(observer));
        logs
    }

    fn make(&self) -> MakeObserver {
        let logs = Arc::clone(&self.0);
        Arc::new(move |info: &ConnectionInfo| {
            let log = Log::default();
            logs.lock().expect("no run panicked").push(log.clone());
            let header = Header {
                title: "a run",
                vantage_point: VantagePoint {
                    name: "marline",
                    side: info.side,
                },
                original_destination_connection_id: info.original_destination,
                reference: Instant::from_nanos(0),
                wall_clock: None,
            };
            Some(Box::new(Unbuffered(QlogWriter::new(log, &header))) as Box<dyn Observer>)
        })
    }

    /// The names of the events, which must be valid.
    fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for log in &*self.0.lock().expect("no run panicked") {
            let log = log.content();
            let faults = schema::faults(&log);
            assert!(faults.is_empty(), "{}", faults.join("\n"));
            for record in log.split(|&byte| byte == 0x1e).skip(2) {
                let record: Value = serde_json::from_slice(record).expect("a record is JSON");
                names.extend(record["name"].as_str().map(str::to_owned));
            }
        }
        names
    }
}

/// Transfers `len` bytes from the server to the client.
fn download(pair: &mut Pair, ends: Ends, len: usize) {
    let id = (pair.server(ends.server).open(Dir::Uni)).expect("streams are left");
    let (mut left, mut received) = (vec![7; len], 0);
    let is_complete = pair.drive_until(TIMEOUT, |pair| {
        while !left.is_empty() {
            match pair.server(ends.server).write(id, &left) {
                Ok(written) => drop(left.drain(..written)),
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("the server cannot write: {error:?}"),
            }
            if left.is_empty() {
                (pair.server(ends.server).finish(id)).expect("the stream is open");
            }
        }
        let now = pair.now;
        while let Ok(Some(chunk)) = pair.client(ends.client).read(|| now, id, usize::MAX) {
            received += chunk.len();
        }
        received == len
    });
    assert!(is_complete, "{received} of {len} bytes arrived");
}

fn close(pair: &mut Pair, client: ConnectionHandle) {
    let now = pair.now;
    pair.client(client).close(now, 0, b"done");
    pair.drive_until(TIMEOUT, |pair| {
        pair.client.endpoint.open_connections() + pair.server.endpoint.open_connections() == 0
    });
    pair.client.events.clear();
    pair.server.events.clear();
}

/// 20 Mbit/s and 40 ms with losses, reordering and CE marks towards the client.
fn lossy() -> Conditions {
    Conditions {
        rate: Some(2_500_000),
        queue: 100_000,
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(8),
        loss: 0.02,
        corrupt: 0.01,
        mark: 0.01,
        ..Conditions::default()
    }
}

/// A transfer with losses, key updates and a reset stream; then the client migrates, and closes.
fn transfer_and_migrate() -> BTreeSet<String> {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            ack_frequency: Some(AckFrequencyConfig {
                threshold: 9,
                max_delay: Duration::from_millis(20),
                reordering_threshold: 3,
                ..AckFrequencyConfig::default()
            }),
            key_update_interval: Some(200),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let logs = Logs::observe(&mut pair);
    let ends = pair.establish();
    *pair.network.conditions(Direction::ToClient) = lossy();
    download(&mut pair, ends, 2_000_000);
    let client = pair.client(ends.client);
    let id = client.open(Dir::Uni).expect("streams are left");
    client
        .write(id, b"to be reset")
        .expect("the window is open");
    client.reset(id, 7).expect("it is open");
    pair.drive(Duration::from_secs(1));
    pair.migrate(
        ends.client,
        "198.51.100.7:50000".parse().expect("an address"),
    );
    download(&mut pair, ends, 200_000);
    close(&mut pair, ends.client);
    logs.names()
}

/// A connection with two paths, one of which is abandoned.
fn multipath() -> BTreeSet<String> {
    let transport = TransportConfig {
        multipath: Some(MultipathConfig::default()),
        ..TransportConfig::default()
    };
    let mut pair = Pair::with(PairConfig {
        client: transport.clone(),
        server: transport,
        ..PairConfig::default()
    });
    let logs = Logs::observe(&mut pair);
    let ends = pair.establish();
    pair.drive(Duration::from_millis(100));
    let (now, remote) = (pair.now, pair.server.address);
    let local = "198.51.100.1:40001".parse().expect("an address");
    let opened = (pair.client(ends.client))
        .open_path(now, FourTuple { local, remote })
        .expect("the server takes several paths");
    download(&mut pair, ends, 500_000);
    let now = pair.now;
    (pair
        .client(ends.client)
        .abandon_path(now, opened, ErrorCode::PATH_UNSTABLE_OR_POOR))
    .expect("another path is left");
    download(&mut pair, ends, 100_000);
    logs.names()
}

/// Two connections of one bundle.
fn bundle() -> BTreeSet<String> {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            bundle: Some(Arc::new(BundleConfig::default())),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let logs = Logs::observe(&mut pair);
    pair.client_config.bundle = Some(Membership {
        id: MembershipId([1; 16]),
        connections: 2,
    });
    let ends = [pair.establish(), pair.establish()];
    for ends in ends {
        download(&mut pair, ends, 300_000);
    }
    logs.names()
}

/// Careful Resume with a saved capacity, and 0-RTT data.
fn careful_resume_with_early_data() -> BTreeSet<String> {
    let history = CarefulHistory::new(HistoryConfig::default(), Arc::new(MemoryStore::default()));
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            history: Some(Arc::new(history)),
            ..TransportConfig::default()
        },
        zero_rtt: true,
        ..PairConfig::default()
    });
    let logs = Logs::observe(&mut pair);
    pair.network.set(Conditions {
        rate: Some(2_500_000),
        queue: 100_000,
        delay: Duration::from_millis(20),
        ..Conditions::default()
    });
    for _ in 0..2 {
        let ends = pair.establish();
        download(&mut pair, ends, 3_000_000);
        close(&mut pair, ends.client);
    }
    logs.names()
}

/// A client with a version that the server does not support.
fn version_negotiation() -> BTreeSet<String> {
    let mut pair = Pair::new();
    let logs = Logs::observe(&mut pair);
    pair.client_config.version = 0x5a6a_7a8a;
    pair.connect();
    pair.drive(Duration::from_millis(100));
    logs.names()
}

#[test]
fn every_declared_event_is_emitted_by_some_run_and_valid() {
    let runs = [
        transfer_and_migrate(),
        multipath(),
        bundle(),
        careful_resume_with_early_data(),
        version_negotiation(),
    ];
    let emitted: BTreeSet<String> = runs.into_iter().flatten().collect();
    let declared: BTreeSet<String> = Event::NAMES.iter().map(|&name| name.to_owned()).collect();
    let never: Vec<_> = declared.difference(&emitted).collect();
    assert!(never.is_empty(), "declared and never emitted: {never:?}");
}
