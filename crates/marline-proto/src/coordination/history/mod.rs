//! History: observations of paths by connections are kept for later ones. These begin with the
//! average window of earlier ones ("Access Latency Reduction in the QUIC Protocol Based on Communication
//! History", Electronics 2019, 8(10), 1204, Algorithm 1), or return to a saved capacity (RFC 9959).
//!
//! | subject | file |
//! | --- | --- |
//! | settings | `config` |
//! | scope within which connections learn | `scope` |
//! | averages of windows | `average` |
//! | record of a path, and its encoding | `record` |
//! | stores | `store`: the trait; `memory`: a bounded table; `shares`: its eviction |
//! | report of a connection | `sample` |
//! | learning from reports | `learner` |
//! | interface to connections | `path_history`: the trait; `window`: average windows; `careful`: saved capacities |
//! | choice between the two | `policy` |
//!
//! RFC 9040 calls this temporal sharing. A connection reports a [`PathSample`] to the [`PathHistory`] of its
//! configuration when it ends. When a connection begins, a [`HistoryWindow`] chooses its initial window from
//! what is known, or a [`CarefulHistory`] offers a saved capacity to careful resume.

mod average;
mod careful;
mod config;
mod learner;
mod memory;
mod path_history;
mod policy;
mod record;
mod sample;
mod scope;
mod shares;
mod store;
mod window;

pub use average::{Average, MAX_WINDOW_SAMPLES, Windows};
pub use careful::CarefulHistory;
pub use config::{HistoryConfig, ZeroRtt};
pub use memory::{MemoryStore, UpdatedRecord};
pub use path_history::PathHistory;
pub use policy::{HistoryParts, HistoryPolicy};
pub use record::{InvalidRecord, PathRecord};
pub use sample::{PathSample, SampleEvent};
pub use scope::{PathKey, PathScope};
pub use store::{PathStore, StoreLimits, StoreStatistics};
pub use window::HistoryWindow;

pub use super::careful_resume::{Capacity, SavedModel};
