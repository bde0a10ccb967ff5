//! Objects that are discovered in another while it arrives.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::mpsc;

use crate::client::{ClientError, Progress, Store};

/// An object that is discovered in another while that arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// The share of the other object that has to arrive first.
    pub(super) share: f64,
    /// Its index in the page.
    pub(super) object: usize,
}

/// Reports the objects that are discovered as an object arrives, each of them once, even if ranges are
/// requested again.
#[derive(Clone)]
pub(super) struct Findings(Arc<Mutex<State>>);

struct State {
    /// By share.
    early: Vec<Found>,
    /// The number of them that were reported.
    reported: usize,
    reached: mpsc::UnboundedSender<Found>,
}

impl Findings {
    pub(super) fn new(early: Vec<Found>, reached: mpsc::UnboundedSender<Found>) -> Self {
        Self(Arc::new(Mutex::new(State {
            early,
            reported: 0,
            reached,
        })))
    }

    /// The first `bytes` of `size` have arrived.
    pub(super) fn grown(&self, bytes: u64, size: u64) {
        self.report(|share| bytes as f64 >= size as f64 * share);
    }

    /// All of it has arrived.
    pub(super) fn complete(&self) {
        self.report(|_| true);
    }

    fn report(&self, is_found: impl Fn(f64) -> bool) {
        let mut state = lock(&self.0);
        while let Some(&found) = state.early.get(state.reported)
            && is_found(found.share)
        {
            state.reported += 1;
            // The receiver owns this task, and outlives it.
            let _ = state.reached.send(found);
        }
    }
}

/// Tracks the contiguous beginning of an object that arrives in ranges.
pub(super) struct Beginning {
    findings: Findings,
    size: u64,
    progress: Arc<Progress>,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// Contiguous bytes from the start.
    beginning: u64,
    /// Start and end of ranges beyond a gap.
    apart: BTreeMap<u64, u64>,
}

impl Beginning {
    /// A tracker for an object of `size` bytes, which are added to `progress` as they arrive.
    pub(super) fn new(findings: Findings, size: u64, progress: Arc<Progress>) -> Self {
        Self {
            findings,
            size,
            progress,
            parts: Mutex::default(),
        }
    }
}

impl Store for Beginning {
    fn write(&self, offset: u64, bytes: Bytes) -> BoxFuture<'_, Result<(), ClientError>> {
        let len = bytes.len() as u64;
        self.progress.received.fetch_add(len, Relaxed);
        let beginning = lock(&self.parts).add(offset, len);
        if let Some(beginning) = beginning {
            self.findings.grown(beginning, self.size);
        }
        Box::pin(ready(Ok(())))
    }
}

impl Parts {
    /// Adds a range; returns the length of the contiguous beginning if it has grown.
    fn add(&mut self, offset: u64, len: u64) -> Option<u64> {
        let end = offset + len;
        if offset != self.beginning {
            match self.apart.values_mut().find(|end| **end == offset) {
                Some(grows) => *grows = end,
                None => drop(self.apart.insert(offset, end)),
            }
            return None;
        }
        self.beginning = end;
        while let Some(end) = self.apart.remove(&self.beginning) {
            self.beginning = end;
        }
        Some(self.beginning)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn objects_are_reported_when_their_share_is_contiguous() {
        let (reached, mut found) = mpsc::unbounded_channel();
        let early = [(0.0, 7), (0.5, 8), (0.5, 9), (0.9, 10)];
        let early = early.map(|(share, object)| Found { share, object });
        let findings = Findings::new(early.into(), reached);
        let object = Beginning::new(findings.clone(), 100, Arc::default());
        let mut then = |offset, len, expected: &[usize]| {
            let written = object.write(offset, Bytes::from(vec![0; len]));
            written.now_or_never().unwrap().unwrap();
            let objects: Vec<_> = std::iter::from_fn(|| found.try_recv().ok()).collect();
            let objects: Vec<_> = objects.into_iter().map(|found| found.object).collect();
            assert_eq!(objects, expected, "{offset}");
        };
        then(60, 10, &[]);
        then(30, 20, &[]);
        then(0, 10, &[7]);
        then(70, 30, &[]);
        then(10, 20, &[8, 9]);
        then(50, 10, &[10]);
        findings.complete();
        assert!(found.try_recv().is_err());
    }
}
