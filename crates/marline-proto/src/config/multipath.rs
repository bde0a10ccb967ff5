//! Settings of connections with several paths.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::coordination::bundle::BundleConfig;
use crate::limits::PATHS;
use crate::scheduling::path::{PathAlgorithm, PathScheduler, ReinjectionConfig};

/// How a connection uses several paths at once (draft-ietf-quic-multipath-21).
///
/// Both ends must want it. The client opens paths ([`Connection::open_path`](crate::Connection::open_path)).
#[derive(Clone)]
pub struct MultipathConfig {
    /// Paths that the connection may have at once, from 1 to 16. The smaller of both ends' numbers
    /// counts.
    pub max_paths: u32,
    /// The longest pause between two probes of a path that does not answer while there are others.
    /// Probes come sooner at first, and ever more rarely after half a minute.
    pub probe_interval: Duration,
    /// A path that has not answered for this long is abandoned, with
    /// [`ErrorCode::PATH_UNSTABLE_OR_POOR`](crate::ErrorCode::PATH_UNSTABLE_OR_POOR), if another one
    /// answers; `None` is never.
    pub give_up_after: Option<Duration>,
    /// A PING leaves on each path after this long without a packet there, on backup paths too, so that
    /// NATs keep them and their round-trip times stay known; `None` is never. It keeps the connection
    /// from being idle.
    pub keep_alive: Option<Duration>,
    /// Makes what decides which path carries stream data of this end.
    pub scheduler: Arc<dyn Fn() -> Box<dyn PathScheduler> + Send + Sync>,
    /// Whether a faster path carries copies of what a slow one still has on its way, when there is nothing
    /// else to send. `None` is without.
    pub reinjection: Option<ReinjectionConfig>,
    /// Client: paths between the addresses of the handshake that it has by itself, from 1. Those beyond
    /// the first are opened as soon as the peer takes them, once: one that is abandoned is not replaced.
    pub same_tuple_paths: u32,
    /// How paths that share one 4-tuple are coordinated in what this end sends; `None` leaves each on its
    /// own. Such a connection does not resume an earlier one's capacity.
    pub bundle_paths: Option<Arc<BundleConfig>>,
}

impl Default for MultipathConfig {
    /// Four paths: Wi-Fi, mobile, and one to change to for each. A slower one carries what faster ones would
    /// deliver later, and copies of what ends a transfer. One that is silent is probed each second and abandoned after half a minute. None is
    /// kept alive while it is idle: that costs battery, and only the application knows whether a path
    /// stands behind a NAT (most forget after 30 s).
    fn default() -> Self {
        Self {
            max_paths: 4,
            probe_interval: Duration::from_secs(1),
            give_up_after: Some(Duration::from_secs(30)),
            keep_alive: None,
            scheduler: Arc::new(|| PathAlgorithm::default().build()),
            reinjection: Some(ReinjectionConfig::default()),
            same_tuple_paths: 1,
            bundle_paths: None,
        }
    }
}

impl MultipathConfig {
    /// The last path that the peer may use at first: `initial_max_path_id`.
    pub(crate) fn last_path(&self) -> u32 {
        self.max_paths.clamp(1, PATHS) - 1
    }
}

impl fmt::Debug for MultipathConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultipathConfig")
            .field("max_paths", &self.max_paths)
            .field("probe_interval", &self.probe_interval)
            .field("give_up_after", &self.give_up_after)
            .field("keep_alive", &self.keep_alive)
            .field("reinjection", &self.reinjection)
            .field("same_tuple_paths", &self.same_tuple_paths)
            .field("bundle_paths", &self.bundle_paths)
            .finish_non_exhaustive()
    }
}
