//! history: a connection begins with the window that earlier ones to the same place reached ("Access
//! Latency Reduction in the QUIC Protocol Based on Communication History", Electronics 2019, 8(10), 1204,
//! Algorithm 1), and what careful resume needs to know of them (RFC 9959).
//!
//! | question | file |
//! | --- | --- |
//! | which switches are there? | `config` |
//! | which connections learn from each other? | `scope` |
//! | what is the average of windows? | `average` |
//! | what is kept of a path, and how is it written down? | `record` |
//! | where is it kept? | `store`: the seam; `memory`: a bounded table; `shares`: who gives way in it |
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
pub use scope::{PathKey, PathScope, Prefix};
pub use store::{PathStore, StoreLimits, StoreStatistics};
pub use window::HistoryWindow;

pub use super::careful_resume::Capacity;
