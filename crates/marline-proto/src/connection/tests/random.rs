//! Random operations compared with a model: no panic, progress, data as written, memory within limits.
//!
//! `MARLINE_PROPTEST_CASES` sets the number of cases.

use super::*;
use crate::coordination::bundle::{BundleConfig, Membership, MembershipId};
use crate::coordination::careful_resume::CarefulResumeConfig;
use crate::limits::{MAX_ACKS_UNANSWERED, MAX_RECEIVED_RANGES, MAX_UNDECRYPTABLE_PACKETS};
use crate::streams::FinishError;
use crate::testing::ops::{self, Case, Op};
use marline_wire::ErrorCode;
use std::collections::BTreeMap;

/// Default number of cases, which fit a CI run.
const CASES: u32 = 1000;

/// Maximum number of operations of a case.
const OPS: usize = 80;

/// Time limit, in virtual time, for all data to arrive once the network is without faults again.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Limit on events while the time advances by one operation.
const MAX_STEPS: u32 = 10_000;

/// The data of one direction of a stream, as the model expects it.
#[derive(Debug, Default)]
struct Half {
    written: u64,
    finished: bool,
    reset: bool,
    /// The receiver sent STOP_SENDING.
    stopped: bool,
    read: u64,
    ended: bool,
}

impl Half {
    /// Whether no more data can arrive.
    fn is_settled(&self) -> bool {
        self.ended || self.stopped || !self.finished && !self.reset && self.read == self.written
    }
}

/// The byte at `offset` that `sender` writes on stream `id`.
fn byte(id: StreamId, sender: Side, offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ offset >> 8 ^ u64::from(id).wrapping_mul(7)) as u8 ^ sender as u8
}

struct Model {
    pair: Pair,
    client: ConnectionHandle,
    server: Option<ConnectionHandle>,
    halves: BTreeMap<(StreamId, Side), Half>,
    /// Streams that each end opened or accepted.
    known: [Vec<StreamId>; 2],
    addresses: u16,
    closed: bool,
    moved: bool,
    outages: Duration,
}

impl Model {
    fn new(case: &Case) -> Self {
        let transport = TransportConfig {
            receive_window: Some(case.window),
            stream_receive_window: Some(case.window / 2),
            max_receive_window: case.window * 4,
            max_stream_receive_window: case.window * 2,
            max_concurrent_bidi_streams: case.streams,
            max_concurrent_uni_streams: case.streams,
            send_buffer: case.send_buffer,
            pacing: case.pacing,
            ..TransportConfig::default()
        };
        let bundle = Some(Arc::new(BundleConfig::default()));
        let mut pair = Pair::with(PairConfig {
            client: transport.clone(),
            server: TransportConfig {
                bundle,
                careful_resume: CarefulResumeConfig {
                    tokens: true,
                    ..CarefulResumeConfig::default()
                },
                ..transport
            },
            seed: case.seed,
            ..PairConfig::default()
        });
        // Every second connection is the only member of a bundle.
        pair.client_config.bundle = (case.seed % 2 == 1).then_some(Membership {
            id: MembershipId([1; 16]),
            connections: 1,
        });
        Self {
            client: pair.connect(),
            pair,
            server: None,
            halves: BTreeMap::new(),
            known: [Vec::new(), Vec::new()],
            addresses: 0,
            closed: false,
            moved: false,
            outages: Duration::ZERO,
        }
    }

    fn connection(&mut self, side: Side) -> Option<&mut Connection> {
        match side {
            Side::Client => self.pair.client.connections.get_mut(&self.client),
            Side::Server => {
                self.server = self.server.or(self.pair.server.accepted.front().copied());
                self.pair.server.connections.get_mut(&self.server?)
            }
        }
    }

    /// The `n`th stream that `side` opened or accepted.
    fn pick(&mut self, side: Side, n: usize) -> Option<StreamId> {
        self.accept(side);
        let known = &self.known[side as usize];
        known.get(n.checked_rem(known.len())?).copied()
    }

    fn accept(&mut self, side: Side) {
        for dir in Dir::ALL {
            while let Some(id) = self.connection(side).and_then(|c| c.accept(dir)) {
                self.known[side as usize].push(id);
                assert_eq!(id.initiator(), side.peer());
                if dir == Dir::Bi {
                    self.halves.entry((id, side)).or_default();
                }
            }
        }
    }

    fn run(&mut self, op: &Op) {
        let now = self.pair.now;
        match *op {
            Op::Open(side, dir) => {
                if let Some(id) = self.connection(side).and_then(|c| c.open(dir)) {
                    self.known[side as usize].push(id);
                    self.halves.insert((id, side), Half::default());
                }
            }
            Op::Write(side, n, len) => self.write(side, n, len),
            Op::Finish(side, n) => {
                let Some(id) = self.pick(side, n) else { return };
                let Some(connection) = self.connection(side) else {
                    return;
                };
                let finished = connection.finish(id);
                let Some(half) = self.halves.get_mut(&(id, side)) else {
                    return assert_eq!(finished, Err(FinishError::Closed));
                };
                match finished {
                    Ok(()) => half.finished = true,
                    Err(FinishError::Stopped(_)) => assert!(half.stopped),
                    Err(FinishError::Closed) => {
                        assert!(half.finished || half.reset || half.stopped);
                    }
                }
            }
            Op::Reset(side, n) => {
                let Some(id) = self.pick(side, n) else { return };
                if self
                    .connection(side)
                    .is_some_and(|c| c.reset(id, 7).is_ok())
                {
                    let half = self.halves.get_mut(&(id, side)).expect("it sends");
                    half.reset = true;
                }
            }
            Op::Stop(side, n) => {
                let Some(id) = self.pick(side, n) else { return };
                if self.connection(side).is_some_and(|c| c.stop(id, 9).is_ok()) {
                    let half = self.halves.entry((id, side.peer())).or_default();
                    half.stopped = true;
                }
            }
            Op::Read(side, n, max) => {
                if let Some(id) = self.pick(side, n) {
                    self.read(side, id, max);
                }
            }
            Op::Datagram(side, len) => {
                if let Some(connection) = self.connection(side) {
                    let _ = connection.send_datagram(vec![7; len].into());
                    while connection.recv_datagram().is_some() {}
                }
            }
            Op::Ping(side) => {
                if let Some(connection) = self.connection(side) {
                    connection.ping();
                }
            }
            Op::UpdateKeys(side) => {
                if let Some(connection) = self.connection(side) {
                    connection.initiate_key_update(now);
                }
            }
            Op::Close(side) => {
                if let Some(connection) = self.connection(side) {
                    connection.close(now, 3, b"enough");
                    self.closed = true;
                }
            }
            Op::Network(direction, conditions) => {
                *self.pair.network.conditions(direction) = conditions;
            }
            Op::Outage(direction, time) => {
                self.outages += time;
                self.pair.network.conditions(direction).down = true;
                self.pass(time);
                self.pair.network.conditions(direction).down = false;
            }
            Op::RebindNat => {
                self.moved = true;
                self.addresses += 1;
                self.pair.rebind_nat(SocketAddr::from((
                    [203, 0, 113, 1],
                    20_000 + self.addresses,
                )));
            }
            Op::Migrate => {
                self.moved = true;
                self.addresses += 1;
                let to = SocketAddr::from(([192, 0, 2, 9], 30_000 + self.addresses));
                self.pair.migrate(self.client, to);
            }
            Op::Pass(time) => self.pass(time),
        }
    }

    fn write(&mut self, side: Side, n: usize, len: usize) {
        let Some(id) = self.pick(side, n) else { return };
        let offset = self.halves.get(&(id, side)).map_or(0, |half| half.written);
        let data: Vec<u8> = (offset..offset + len as u64)
            .map(|offset| byte(id, side, offset))
            .collect();
        let Some(connection) = self.connection(side) else {
            return;
        };
        let written = connection.write(id, &data);
        let Some(half) = self.halves.get_mut(&(id, side)) else {
            return assert_eq!(written, Err(WriteError::Closed));
        };
        match written {
            Ok(taken) => half.written += taken as u64,
            Err(WriteError::Blocked) => {}
            Err(WriteError::Stopped(code)) => assert!(half.stopped && code == 9),
            Err(WriteError::Closed) => assert!(half.finished || half.reset || half.stopped),
        }
    }

    /// Reads once; returns whether there may be more.
    fn read(&mut self, side: Side, id: StreamId, max: usize) -> bool {
        let now = self.pair.now;
        let Some(connection) = self.connection(side) else {
            return false;
        };
        let read = connection.read(|| now, id, max);
        let sender = side.peer();
        if id.dir() == Dir::Uni && id.initiator() == side {
            assert_eq!(read, Err(ReadError::Closed));
            return false;
        }
        let half = self.halves.entry((id, sender)).or_default();
        match read {
            Ok(Some(bytes)) => {
                assert!(bytes.len() <= max);
                for &got in &bytes {
                    assert_eq!(got, byte(id, sender, half.read), "at {}", half.read);
                    half.read += 1;
                }
                assert!(half.read <= half.written && !half.stopped && !half.ended);
                true
            }
            Ok(None) => {
                assert!(half.finished && half.read == half.written && !half.ended);
                half.ended = true;
                false
            }
            Err(ReadError::Reset(code)) => {
                assert!(half.reset && code == 7 && !half.ended);
                half.ended = true;
                false
            }
            Err(ReadError::Blocked) => false,
            Err(ReadError::Closed) => {
                assert!(half.ended || half.stopped);
                false
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.pair.now + time;
        let mut steps = 0;
        while self.pair.step(until) {
            steps += 1;
            assert!(steps < MAX_STEPS, "no progress at {:?}", self.pair.now);
        }
    }

    /// Reads all available data at both ends.
    fn read_all(&mut self) {
        for side in [Side::Client, Side::Server] {
            self.accept(side);
            for id in self.known[side as usize].clone() {
                while self.read(side, id, usize::MAX) {}
            }
        }
    }

    fn check_memory(&mut self, case: &Case) {
        for side in [Side::Client, Side::Server] {
            let Some(connection) = self.connection(side) else {
                continue;
            };
            let held = connection.held();
            assert!(held.unread as u64 <= case.window * 4, "{held:?}");
            assert!(held.unacked <= case.send_buffer, "{held:?}");
            let packets = MAX_ACKS_UNANSWERED as usize + 20_000;
            assert!(held.sent_packets <= packets, "{held:?}");
            assert!(held.received_ranges <= 3 * MAX_RECEIVED_RANGES, "{held:?}");
            assert!(held.deferred <= MAX_UNDECRYPTABLE_PACKETS, "{held:?}");
        }
    }

    /// The errors with which the connection ended at either end.
    fn ends(&mut self) -> Vec<ConnectionError> {
        let events = self.pair.client.events.iter();
        let server = self.server;
        let of_server = self.pair.server.events.iter();
        let of_server = of_server.filter(|(handle, _)| Some(*handle) == server);
        events
            .chain(of_server)
            .filter_map(|(_, event)| match event {
                Event::Closed(error) => Some(error.clone()),
                _ => None,
            })
            .collect()
    }

    /// Asserts that an operation explains the end of the connection.
    fn check_explained(&self, error: &ConnectionError) {
        let no_path = |code| code == ErrorCode::NO_VIABLE_PATH && self.moved;
        let explained = match error {
            ConnectionError::LocallyClosed | ConnectionError::PeerApplication { .. } => self.closed,
            ConnectionError::Transport(error) => no_path(error.code),
            ConnectionError::PeerTransport { code, .. } => {
                no_path(*code) || self.closed && *code == ErrorCode::APPLICATION_ERROR
            }
            ConnectionError::IdleTimeout => {
                self.closed || self.moved || self.outages > Duration::from_secs(20)
            }
            // A client must not migrate before the handshake is confirmed.
            ConnectionError::HandshakeTimeout => {
                self.closed || self.moved || self.outages > Duration::from_secs(2)
            }
            ConnectionError::Reset => self.closed || self.moved,
            ConnectionError::VersionMismatch
            | ConnectionError::Evicted
            | ConnectionError::EndpointFailed(_)
            | ConnectionError::NetworkLost(_)
            | ConnectionError::Unreachable(_) => false,
        };
        assert!(explained, "no operation explains: {error}");
    }
}

fn run(case: &Case) {
    let mut model = Model::new(case);
    for op in &case.ops {
        model.run(op);
        model.check_memory(case);
    }
    model.pair.network.set(Conditions::default());
    let until = model.pair.now + TIMEOUT;
    loop {
        model.read_all();
        let ends = model.ends();
        if !ends.is_empty() {
            ends.iter().for_each(|error| model.check_explained(error));
            return;
        }
        let receiver_knows = |model: &Model, id: &StreamId, sender: Side| {
            model.known[sender.peer() as usize].contains(id)
        };
        let settled = model.halves.iter().all(|((id, sender), half)| {
            let unused = half.written == 0 && !half.finished && !half.reset;
            half.is_settled() && (unused || half.stopped || receiver_knows(&model, id, *sender))
        });
        if settled {
            return;
        }
        assert!(model.pair.now < until, "stuck: {:#?}", model.halves);
        model.pass(Duration::from_millis(50));
    }
}

/// Runs a case that failed earlier; its other settings are irrelevant.
fn run_regression(ops: Vec<Op>) {
    run(&Case {
        seed: 0,
        window: 100_000,
        streams: 10,
        send_buffer: 100_000,
        pacing: true,
        ops,
    });
}

#[test]
fn packets_sent_before_a_migration_are_acknowledged_after_it() {
    run_regression(vec![
        Op::Pass(Duration::from_millis(50)),
        Op::Datagram(Side::Server, 0),
        Op::Migrate,
        Op::Open(Side::Client, Dir::Bi),
        Op::Pass(Duration::from_millis(10)),
    ]);
}

#[test]
fn a_handshake_survives_a_short_outage_with_data_waiting() {
    run_regression(vec![
        Op::Outage(Direction::ToClient, Duration::from_millis(553)),
        Op::Open(Side::Server, Dir::Bi),
        Op::Write(Side::Server, 0, 2339),
        Op::Pass(Duration::from_millis(288)),
        Op::Outage(Direction::ToClient, Duration::from_millis(168)),
        Op::Write(Side::Server, 0, 2395),
        Op::Datagram(Side::Server, 781),
        Op::Write(Side::Server, 0, 1),
    ]);
}

#[test]
fn random_operations_agree_with_the_model() {
    for_random(CASES, &ops::case(OPS), |case| run(&case));
}
