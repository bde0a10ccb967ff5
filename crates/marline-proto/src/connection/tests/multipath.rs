//! Several paths in one connection (draft-ietf-quic-multipath-21).

mod bundle;
mod churn;
mod cuts;
mod datagrams;
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
use crate::congestion::Algorithm;
use crate::scheduling::path::{PathScheduler, PathStatus, ReinjectionConfig, SCHEDULERS};
use crate::settings::Make;
use crate::{AbandonPathError, OpenPathError};
use marline_wire::{ErrorCode, PathId};

const ONE: PathId = PathId(1);

/// A link that loses all packets.
const DEAD: Conditions = Conditions {
    down: true,
    ..Conditions::GOOD
};

/// Configuration of an end that supports several paths.
fn several() -> TransportConfig {
    TransportConfig {
        multipath: Some(MultipathConfig::default()),
        // As in the `multipath` profile.
        controller: Arc::new(Algorithm::Cubic),
        ..TransportConfig::default()
    }
}

/// The path scheduler with this name.
fn scheduler(name: &str) -> Make<dyn PathScheduler> {
    SCHEDULERS.make(name).expect("the table has it")
}

/// The same configuration with another path scheduler, without reinjection.
fn scheduled(scheduler: Make<dyn PathScheduler>) -> TransportConfig {
    TransportConfig {
        multipath: Some(MultipathConfig {
            scheduler,
            reinjection: None,
            ..MultipathConfig::default()
        }),
        ..several()
    }
}

/// The same configuration with a path scheduler, and with reinjection if it is set.
fn reinjecting(
    scheduler: Make<dyn PathScheduler>,
    reinjection: Option<ReinjectionConfig>,
) -> TransportConfig {
    let mut transport = scheduled(scheduler);
    if let Some(multipath) = &mut transport.multipath {
        multipath.reinjection = reinjection;
    }
    transport
}

/// The client's address on its `n`th link, from 1.
fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, n], 40_000 + u16::from(n)))
}

/// A connection whose ends support several paths.
struct Several {
    pair: Pair,
    ends: Ends,
}

impl Several {
    /// A connection whose handshake is confirmed, so that paths can be opened.
    fn new() -> Self {
        Self::with(both(several()))
    }

    fn with(mut pair: Pair) -> Self {
        let ends = pair.establish();
        pair.drive(Duration::from_millis(100));
        Self { pair, ends }
    }

    /// A connection with a second, validated path over a link like the first one.
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

    /// A connection with a second path that is slower and loses one packet of a hundred.
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

    fn client(&mut self) -> &mut Connection {
        self.pair.client(self.ends.client)
    }

    fn server(&mut self) -> &mut Connection {
        self.pair.server(self.ends.server)
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

    /// Whether both ends have reported a path as validated.
    fn is_validated(&self, path: PathId) -> bool {
        let is_about = |event: &Event| matches!(event, Event::PathValidated(id) if *id == path);
        let reports = |node: &Node| node.events.iter().any(|(_, event)| is_about(event));
        reports(&self.pair.client) && reports(&self.pair.server)
    }

    /// The error with which an end closed a path, if it has.
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

/// A bottleneck with a round-trip time of 20 ms.
fn narrow() -> Conditions {
    Conditions {
        rate: Some(1_000_000),
        queue: 60_000,
        ..Conditions::default()
    }
}
