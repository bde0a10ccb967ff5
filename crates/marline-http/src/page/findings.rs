//! What is found in an object while it arrives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::client::{ClientError, Store};

/// Tells what is found in an object as its beginning grows: once each, whatever is asked for again.
#[derive(Clone)]
pub(super) struct Findings(Arc<Mutex<State>>);

struct State {
    /// Shares, rising, and what is found there.
    early: Vec<(f64, usize)>,
    /// How many of them were told.
    told: usize,
    reached: mpsc::UnboundedSender<(f64, usize)>,
}

impl Findings {
    pub(super) fn new(
        early: Vec<(f64, usize)>,
        reached: mpsc::UnboundedSender<(f64, usize)>,
    ) -> Self {
        Self(Arc::new(Mutex::new(State {
            early,
            told: 0,
            reached,
        })))
    }

    /// The first `bytes` of `size` are there.
    pub(super) fn grown(&self, bytes: u64, size: u64) {
        self.tell(|share| bytes as f64 >= size as f64 * share);
    }

    /// All of it is there.
    pub(super) fn complete(&self) {
        self.tell(|_| true);
    }

    fn tell(&self, is_found: impl Fn(f64) -> bool) {
        let mut state = lock(&self.0);
        while let Some(&(share, object)) = state.early.get(state.told)
            && is_found(share)
        {
            state.told += 1;
            // Whoever loads the page owns this task: somebody listens.
            let _ = state.reached.send((share, object));
        }
    }
}

/// Puts together the beginning of an object that comes in ranges.
pub(super) struct Beginning {
    findings: Findings,
    size: u64,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// Bytes from the start on.
    beginning: u64,
    /// Start and end of what has come after a gap.
    apart: BTreeMap<u64, u64>,
}

impl Beginning {
    /// Of an object of `size` bytes.
    pub(super) fn new(findings: Findings, size: u64) -> Self {
        Self {
            findings,
            size,
            parts: Mutex::default(),
        }
    }
}

impl Store for Beginning {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), ClientError> {
        let beginning = lock(&self.parts).add(offset, bytes.len() as u64);
        if let Some(beginning) = beginning {
            self.findings.grown(beginning, self.size);
        }
        Ok(())
    }
}

impl Parts {
    /// Adds bytes that continue what is there, or start anew; returns the beginning if it has grown.
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
    use super::*;

    #[test]
    fn the_beginning_decides_what_is_found() {
        let (reached, mut found) = mpsc::unbounded_channel();
        let findings = Findings::new(vec![(0.0, 7), (0.5, 8), (0.5, 9), (0.9, 10)], reached);
        let object = Beginning::new(findings.clone(), 100);
        let mut then = |offset, len, expected: &[usize]| {
            object.write(offset, &vec![0; len]).unwrap();
            let objects: Vec<_> = std::iter::from_fn(|| found.try_recv().ok()).collect();
            let objects: Vec<_> = objects.into_iter().map(|(_, object)| object).collect();
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
