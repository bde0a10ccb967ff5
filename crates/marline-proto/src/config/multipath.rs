//! Settings of connections with several paths.

use std::fmt;
use std::sync::Arc;

use crate::limits::PATHS;
use crate::scheduling::path::{PathAlgorithm, PathScheduler};

/// How a connection uses several paths at once (draft-ietf-quic-multipath-21).
///
/// Both ends must want it. The client opens paths ([`Connection::open_path`](crate::Connection::open_path)).
#[derive(Clone)]
pub struct MultipathConfig {
    /// Paths that the connection may have at once, from 1 to 16. The smaller of both ends' numbers
    /// counts.
    pub max_paths: u32,
    /// Makes what decides which path carries stream data of this end.
    pub scheduler: Arc<dyn Fn() -> Box<dyn PathScheduler> + Send + Sync>,
}

impl Default for MultipathConfig {
    /// Four paths: Wi-Fi, mobile, and one to change to for each. The one with the lowest round-trip time
    /// goes first.
    fn default() -> Self {
        Self {
            max_paths: 4,
            scheduler: Arc::new(|| PathAlgorithm::default().build()),
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
            .finish_non_exhaustive()
    }
}
