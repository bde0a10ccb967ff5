//! How far a fetch is.

use std::sync::atomic::AtomicU64;

/// How far a fetch is, for those who watch.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of content that arrived.
    pub received: AtomicU64,
    /// Bytes of content promised by the responses so far.
    pub expected: AtomicU64,
    /// Objects that are complete or failed.
    pub finished: AtomicU64,
}
