//! The progress of the requests of a connection over TCP.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use marline::Instant;

use crate::runtime::{RuntimeHandle, Stopwatch};

/// The progress of the requests of a connection. PING, SETTINGS and other frames outside requests are not progress.
#[derive(Debug)]
pub(super) struct Progress {
    runtime: RuntimeHandle,
    min_bytes: u64,
    start: Instant,
    since_start: Stopwatch,
    /// Time of the latest progress, in nanoseconds.
    last: AtomicU64,
    /// Bytes of content since then.
    moved: AtomicU64,
    /// Bytes that arrived since then.
    received: AtomicU64,
    /// Requests that are being answered.
    active: AtomicUsize,
}

impl Progress {
    /// A connection without progress so far. Fewer bytes than `min_bytes` are not progress.
    pub(super) fn new(runtime: &RuntimeHandle, min_bytes: u64) -> Self {
        let start = runtime.now();
        Self {
            runtime: runtime.clone(),
            min_bytes,
            start,
            since_start: runtime.stopwatch(),
            last: AtomicU64::new(start.as_nanos()),
            moved: AtomicU64::new(0),
            received: AtomicU64::new(0),
            active: AtomicUsize::new(0),
        }
    }

    /// Notes progress.
    pub(super) fn advance(&self) {
        self.last.store(self.now().as_nanos(), Relaxed);
        self.moved.store(0, Relaxed);
        self.received.store(0, Relaxed);
    }

    /// A request arrived.
    pub(super) fn on_request(&self) {
        self.active.fetch_add(1, Relaxed);
        self.advance();
    }

    /// A response has ended.
    pub(super) fn on_response_end(&self) {
        self.active.fetch_sub(1, Relaxed);
        self.advance();
    }

    /// Content of a request arrived, or content of a response was taken by the connection. Single bytes are not
    /// progress.
    pub(super) fn on_content(&self, bytes: u64) {
        if self.moved.fetch_add(bytes, Relaxed) + bytes >= self.min_bytes {
            self.advance();
        }
    }

    /// Notes received bytes; returns their number since the latest progress.
    pub(super) fn on_received(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        self.received.fetch_add(bytes, Relaxed) + bytes
    }

    /// Bytes that have to move.
    pub(super) fn min_bytes(&self) -> u64 {
        self.min_bytes
    }

    /// Time of the latest progress.
    pub(super) fn last(&self) -> Instant {
        Instant::from_nanos(self.last.load(Relaxed))
    }

    /// The present moment, by the clock of the timers that wait for progress.
    fn now(&self) -> Instant {
        self.start + self.runtime.elapsed(self.since_start)
    }

    /// The time since the latest progress.
    pub(super) fn idle(&self) -> Duration {
        self.now().saturating_since(self.last())
    }

    /// Whether no request is being answered.
    pub(super) fn is_unused(&self) -> bool {
        self.active.load(Relaxed) == 0
    }
}
