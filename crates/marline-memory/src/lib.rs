//! Stores for what connections learn of paths that outlive the process: a file of its own, or a server
//! that many processes share.
//!
//! | question | here |
//! | --- | --- |
//! | how does what was learnt survive a restart? | [`FileStore`] |
//! | how do several servers learn together? | [`SharedStore`] |
//! | what did a store do? | `statistics`, and [`PathStore::statistics`](marline_proto::coordination::history::PathStore::statistics) |
//! | what is a record called in a store? | `key` |
//! | what is kept under that name, and how does it age? | `value` |
//! | what answers at once, and by which clock? | `front` |
//! | what waits to be written? | `backlog` |
//! | how do its thread and its callers meet? | `work` |
//!
//! Both are a [`PathStore`](marline_proto::coordination::history::PathStore), and both answer from memory:
//! no call waits for a disk or a network. What changed is written behind, by one thread; what is lost in
//! a crash is half a second of learning. The memory is a
//! [`MemoryStore`](marline_proto::coordination::history::MemoryStore) with its limits and its fairness,
//! whatever the file or the server holds.
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
//! // `now` and `unix_time` are what the connections' runtime says.
//! let file = dir.path().join("paths.redb");
//! let store = FileStore::open(file, StoreLimits::default(), now, unix_time)?;
//! let store: Arc<dyn PathStore> = Arc::new(store);
//! # Ok(())
//! # }
//! ```

mod backlog;
mod file;
mod front;
mod key;
mod shared;
mod statistics;
mod value;
mod work;

pub use file::{FileStore, OpenError};
pub use shared::{ConnectError, SharedStore};
