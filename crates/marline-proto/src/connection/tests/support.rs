//! Helpers of the tests: data, pairs, transfers and closes.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

/// Time limit, in virtual time, of tests.
pub(super) const TIMEOUT: Duration = Duration::from_secs(300);

impl Connection {
    /// Retires all connection IDs that the peer uses and issues new ones, as other implementations may do (RFC 9000,
    /// section 5.1.2); returns whether that is possible now.
    pub(super) fn rotate_connection_ids(&mut self) -> bool {
        let main = self.paths.main_slot();
        let rotates = self.is_confirmed() && self.paths[main].local_cids.retire_all();
        self.paths.want_ids();
        self.issue_connection_ids();
        rotates
    }
}

/// Data whose bytes depend on their offset.
pub(super) fn pattern(len: usize) -> Bytes {
    (0..len)
        .map(|n| (n * 31 + n / 251) as u8)
        .collect::<Vec<u8>>()
        .into()
}

/// Checks a property with `cases` random values: the same in every run, unless `MARLINE_PROPTEST_CASES` sets a
/// number of other cases.
pub(super) fn for_random<S: Strategy>(cases: u32, values: &S, holds: impl Fn(S::Value)) {
    let requested = std::env::var("MARLINE_PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    let config = Config {
        cases: requested.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_time: 15_000,
        ..Config::default()
    };
    let mut runner = match requested {
        None => {
            let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            TestRunner::new_with_rng(config, rng)
        }
        Some(_) => TestRunner::new(config),
    };
    runner
        .run(values, |value| {
            holds(value);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

/// A pair whose ends and network are seeded with `seed`.
pub(super) fn seeded(seed: u64) -> Pair {
    Pair::with(PairConfig {
        seed,
        ..PairConfig::default()
    })
}

/// A pair with the same configuration at both ends.
pub(super) fn both(transport: TransportConfig) -> Pair {
    Pair::with(PairConfig {
        client: transport.clone(),
        server: transport,
        ..PairConfig::default()
    })
}

/// The transfer of data on one stream, in steps.
pub(super) struct Transfer {
    from: Side,
    ends: Ends,
    pub(super) id: StreamId,
    data: Bytes,
    rest: Bytes,
    finished: bool,
    received: usize,
}

impl Transfer {
    /// Opens a stream from the server to the client, for `data`.
    pub(super) fn down(pair: &mut Pair, ends: Ends, data: &Bytes) -> Self {
        let id = pair.server(ends.server).open(Dir::Uni);
        Self::new(Side::Server, ends, id, data)
    }

    /// Makes the client request `data` on a bidirectional stream.
    pub(super) fn response(pair: &mut Pair, ends: Ends, data: &Bytes) -> Self {
        let connection = pair.client(ends.client);
        let id = connection.open(Dir::Bi).expect("the peer allows streams");
        connection.write(id, b"?").expect("the stream is open");
        connection.finish(id).expect("the stream is open");
        let accepted = pair.drive_until(TIMEOUT, |pair| {
            pair.server(ends.server).accept(Dir::Bi).is_some()
        });
        assert!(accepted, "the request is lost");
        Self::new(Side::Server, ends, Some(id), data)
    }

    /// Opens a stream from the client to the server, for `data`.
    pub(super) fn up(pair: &mut Pair, ends: Ends, data: &Bytes) -> Self {
        let id = pair.client(ends.client).open(Dir::Uni);
        Self::new(Side::Client, ends, id, data)
    }

    fn new(from: Side, ends: Ends, id: Option<StreamId>, data: &Bytes) -> Self {
        Self {
            from,
            ends,
            id: id.expect("the peer allows streams"),
            data: data.clone(),
            rest: data.clone(),
            finished: false,
            received: 0,
        }
    }

    /// Bytes received so far.
    pub(super) fn received(&self) -> usize {
        self.received
    }

    /// Writes and reads as much as possible; returns whether all data has arrived.
    pub(super) fn advance(&mut self, pair: &mut Pair) -> bool {
        let now = pair.now;
        let sender = match self.from {
            Side::Client => pair.client(self.ends.client),
            Side::Server => pair.server(self.ends.server),
        };
        while !self.rest.is_empty() {
            match sender.write_chunk(self.id, &mut self.rest) {
                Ok(_) => {}
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
        if self.rest.is_empty() && !self.finished {
            self.finished = true;
            sender.finish(self.id).expect("the stream is open");
        }
        let receiver = match self.from {
            Side::Client => pair.server(self.ends.server),
            Side::Server => pair.client(self.ends.client),
        };
        loop {
            match receiver.read(|| now, self.id, usize::MAX) {
                Ok(Some(bytes)) => {
                    let until = self.received + bytes.len();
                    assert!(
                        self.data.get(self.received..until) == Some(&*bytes),
                        "the bytes differ from {} on",
                        self.received
                    );
                    self.received = until;
                }
                Ok(None) => {
                    assert_eq!(self.received, self.data.len(), "the stream is truncated");
                    return true;
                }
                Err(ReadError::Blocked) => return false,
                Err(_) if self.received == 0 => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Advances the time until all data has arrived; returns the time it took.
    pub(super) fn complete(mut self, pair: &mut Pair) -> Duration {
        let began = pair.now;
        let done = pair.drive_until(TIMEOUT, |pair| self.advance(pair));
        assert!(
            done,
            "stalled after {} of {} bytes",
            self.received,
            self.data.len()
        );
        pair.now - began
    }
}

/// Transfers `data` from the server to the client; returns the virtual time it took.
pub(super) fn download(pair: &mut Pair, ends: Ends, data: &Bytes) -> Duration {
    Transfer::down(pair, ends, data).complete(pair)
}

/// Transfers `data` from the client to the server; returns the virtual time it took.
pub(super) fn upload(pair: &mut Pair, ends: Ends, data: &Bytes) -> Duration {
    Transfer::up(pair, ends, data).complete(pair)
}

/// The error with which a connection of the client ended, if it has.
pub(super) fn client_end(pair: &Pair, handle: ConnectionHandle) -> Option<ConnectionError> {
    ending(&pair.client, handle)
}

/// The error with which a connection of the server ended, if it has.
pub(super) fn server_end(pair: &Pair, handle: ConnectionHandle) -> Option<ConnectionError> {
    ending(&pair.server, handle)
}

fn ending(node: &Node, handle: ConnectionHandle) -> Option<ConnectionError> {
    node.events.iter().find_map(|(of, event)| match event {
        Event::Closed(error) if *of == handle => Some(error.clone()),
        _ => None,
    })
}

/// Closes the connection at the client and waits until both endpoints have removed it.
pub(super) fn close(pair: &mut Pair, client: ConnectionHandle) {
    let now = pair.now;
    pair.client(client).close(now, 0, b"");
    let removed = pair.drive_until(TIMEOUT, |pair| {
        pair.client.endpoint.open_connections() + pair.server.endpoint.open_connections() == 0
    });
    assert!(removed, "a closed connection was not removed");
    pair.client.events.clear();
    pair.server.events.clear();
}

/// A configuration with timeouts long enough for a handshake over an impaired network.
pub(super) fn patient() -> TransportConfig {
    TransportConfig {
        handshake_timeout: Duration::from_secs(60),
        max_idle_timeout: Some(Duration::from_secs(60)),
        ..TransportConfig::default()
    }
}
