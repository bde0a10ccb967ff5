//! History: what connections observe of their paths is kept for later connections. These begin with the
//! average window of earlier ones ("Access Latency Reduction in the QUIC Protocol Based on Communication
//! History", Electronics 2019, 8(10), 1204, Algorithm 1), or return to a saved capacity (RFC 9959).
//!
//! | question | file |
//! | --- | --- |
//! | which settings are there? | `config` |
//! | which connections learn from each other? | `scope` |
//! | how are windows averaged? | `average` |
//! | what is kept of a path, and how is it encoded? | `record` |
//! | where is it kept? | `store`: the trait; `memory`: a bounded table; `shares`: which record it evicts |
//! | what does a connection report? | `sample` |
//! | what is learnt from it? | `learner` |
//! | what do connections call? | `path_history`: the trait; `window`: average windows; `careful`: saved capacities |
//! | which of the two is used? | `policy` |
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
