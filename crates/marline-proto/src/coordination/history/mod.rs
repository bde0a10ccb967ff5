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
//! | what is a sample, and what is made of it? | `learner` |
//! | which of the two ways of using it? | `policy` |
//! | what is the first window? | `window`: the average; `careful`: the default, and a capacity to return to |
//!
//! RFC 9040 calls what happens here temporal sharing. [`HistoryWindow`] and [`CarefulWindow`] are
//! [`InitialWindow`](crate::congestion::InitialWindow)s: a connection asks when it begins, and tells what it
//! saw when it ends.

mod average;
mod careful;
mod config;
mod learner;
mod memory;
mod policy;
mod record;
mod scope;
mod shares;
mod store;
mod window;

pub use average::{Average, MAX_WINDOW_SAMPLES, Windows};
pub use careful::CarefulWindow;
pub use config::{HistoryConfig, ZeroRtt};
pub use memory::MemoryStore;
pub use policy::HistoryPolicy;
pub use record::{InvalidRecord, PathRecord};
pub use scope::{PathKey, Prefix, Scope};
pub use store::{PathStore, StoreLimits};
pub use window::HistoryWindow;

pub use crate::congestion::{Capacity, PathSample, SampleEvent, StoreStatistics};
