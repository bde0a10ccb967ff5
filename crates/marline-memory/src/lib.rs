//! Persistent stores of the history of paths: a file of one process, or a server that several processes
//! share.
//!
//! | module | content |
//! | --- | --- |
//! | `file` | [`FileStore`]: records survive a restart |
//! | `shared` | [`SharedStore`]: several servers share records |
//! | `statistics` | counters, for [`PathStore::statistics`](marline_proto::coordination::history::PathStore::statistics) |
//! | `key` | encoding of keys |
//! | `value` | encoding of records with the time of writing, by which they age |
//! | `cache` | records in memory, and the mapping between clocks |
//! | `backlog` | queued changes |
//! | `work` | synchronization between callers and the store's thread |
//!
//! Both stores implement [`PathStore`](marline_proto::coordination::history::PathStore) and answer from
//! memory: no call waits for a disk or a network. A thread writes changes in the background; a crash
//! loses at most half a second of changes. The memory is a
//! [`MemoryStore`](marline_proto::coordination::history::MemoryStore), whose limits apply whatever the
//! file or the server holds.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use marline_memory::FileStore;
//! use marline_proto::Instant;
//! use marline_proto::coordination::history::{PathStore, StoreLimits};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (now, unix_time) = (Instant::EPOCH, Duration::from_secs(1_800_000_000));
//! // `now` and `unix_time` come from the runtime of the connections.
//! let file = dir.path().join("paths.redb");
//! let store = FileStore::open(file, StoreLimits::default(), now, unix_time)?;
//! let store: Arc<dyn PathStore> = Arc::new(store);
//! # Ok(())
//! # }
//! ```

mod backlog;
mod cache;
mod file;
mod key;
mod shared;
mod statistics;
#[cfg(feature = "testing")]
pub mod testing;
mod value;
mod work;

pub use file::{FileStore, OpenError};
pub use shared::{ConnectError, ServerState, SharedStore};
