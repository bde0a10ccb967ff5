//! The progress of a fetch or a page load.

use std::sync::atomic::AtomicU64;

/// The progress of a fetch or a page load, updated while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of content that arrived.
    pub received: AtomicU64,
    /// Bytes of content that the responses so far announced.
    pub expected: AtomicU64,
    /// Objects that are complete or failed.
    pub finished: AtomicU64,
}
