//! Several paths in one connection (draft-ietf-quic-multipath-21).

mod bundle;
mod churn;
mod cuts;
mod failure_detection;
mod hostile;
mod lifecycle;
mod limits;
mod memory;
mod outage;
mod reinject;
mod stats;
mod transfer;

use super::*;
use crate::config::MultipathConfig;
use crate::scheduling::path::{PathAlgorithm, PathStatus, ReinjectionConfig};
use crate::{AbandonPathError, OpenPathError};
use marline_wire::{ErrorCode, PathId};

const ONE: PathId = PathId(1);

/// A link on which nothing passes.
const DEAD: Conditions = Conditions {
    down: true,
    ..Conditions::GOOD
};

/// Settings of an end that takes several paths.
fn several() -> TransportConfig {
    TransportConfig {
        multipath: Some(MultipathConfig::default()),
        ..TransportConfig::default()
    }
}

/// The same, with this scheduler of paths.
fn scheduled(algorithm: PathAlgorithm) -> TransportConfig {
    TransportConfig {
        multipath: Some(MultipathConfig {
            scheduler: std::sync::Arc::new(move || algorithm.build()),
            reinjection: None,
            ..MultipathConfig::default()
        }),
        ..TransportConfig::default()
    }
}

/// The same, with copies if so.
fn copying(algorithm: PathAlgorithm, reinjection: Option<ReinjectionConfig>) -> TransportConfig {
    let mut transport = scheduled(algorithm);
    if let Some(multipath) = &mut transport.multipath {
        multipath.reinjection = reinjection;
    }
    transport
}

/// The client's address on its `n`th link, from 1.
fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, n], 40_000 + u16::from(n)))
}

/// A connection whose ends take several paths.
struct Several {
    pair: Pair,
    client: ConnectionHandle,
    server: ConnectionHandle,
}

impl Several {
    /// A connection that could have more paths by now.
    fn new() -> Self {
        Self::with(both(several()))
    }

    fn with(mut pair: Pair) -> Self {
        let (client, server) = pair.establish();
        pair.drive(Duration::from_millis(100));
        Self {
            pair,
            client,
            server,
        }
    }

    /// A connection with a second path, validated, over a link like the first one.
    fn two(conditions: Conditions) -> Self {
        Self::two_of(several(), conditions)
    }

    fn two_of(transport: TransportConfig, conditions: Conditions) -> Self {
        let mut several = Self::with(both(transport));
        several.pair.network.set(conditions);
        several.pair.network.set_link(address(1), conditions);
        assert_eq!(several.open(1), Ok(ONE));
        several.pair.drive(conditions.delay * 8);
        assert!(several.is_validated(ONE));
        several
    }

    /// A connection with a second path that is slower and loses something.
    fn narrow_and_slow(pair: Pair) -> Self {
        let mut several = Self::with(pair);
        several.pair.network.set(narrow());
        let slow = Conditions {
            delay: Duration::from_millis(40),
            loss: 0.01,
            rate: Some(500_000),
            ..narrow()
        };
        several.pair.network.set_link(address(1), slow);
        assert_eq!(several.open(1), Ok(ONE));
        several.pair.drive(Duration::from_millis(300));
        several
    }

    fn ends(&self) -> (ConnectionHandle, ConnectionHandle) {
        (self.client, self.server)
    }

    fn client(&mut self) -> &mut Connection {
        self.pair.client(self.client)
    }

    fn server(&mut self) -> &mut Connection {
        self.pair.server(self.server)
    }

    fn end(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Client => self.client(),
            Side::Server => self.server(),
        }
    }

    /// Opens a path from the client's `n`th link.
    fn open(&mut self, n: u8) -> Result<PathId, OpenPathError> {
        let tuple = FourTuple {
            local: address(n),
            remote: self.pair.server.address,
        };
        let now = self.pair.now;
        self.client().open_path(now, tuple)
    }

    /// Whether both ends have heard that a path carries data.
    fn is_validated(&self, path: PathId) -> bool {
        let is_news = |event: &Event| matches!(event, Event::PathValidated(id) if *id == path);
        let knows = |node: &Node| node.events.iter().any(|(_, event)| is_news(event));
        knows(&self.pair.client) && knows(&self.pair.server)
    }

    /// Why an end closed a path, if it has.
    fn closed(&self, side: Side, path: PathId) -> Option<ErrorCode> {
        let node = match side {
            Side::Client => &self.pair.client,
            Side::Server => &self.pair.server,
        };
        node.events.iter().find_map(|(_, event)| match event {
            Event::PathClosed { id, error } if *id == path => Some(*error),
            _ => None,
        })
    }

    /// Bytes that an end has sent on a path.
    fn sent(&mut self, side: Side, path: PathId) -> u64 {
        let stats = self.end(side).stats();
        let found = stats.paths.iter().find(|stats| stats.id == path);
        found.map_or(0, |stats| stats.udp_sent.bytes)
    }

    /// The paths that an end has.
    fn paths(&mut self, side: Side) -> Vec<u32> {
        let stats = self.end(side).stats();
        stats.paths.iter().map(|path| path.id.0).collect()
    }
}

/// A link of 20 ms there and back that is the bottleneck.
fn narrow() -> Conditions {
    Conditions {
        rate: Some(1_000_000),
        queue: 60_000,
        ..Conditions::default()
    }
}
