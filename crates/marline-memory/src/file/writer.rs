//! The thread that writes.

use std::sync::Arc;
use std::time::Duration;

use super::disk::Disk;
use super::{MOST_CHANGES, Shared};

/// Changes of so long are one transaction.
const BATCH: Duration = Duration::from_millis(500);

/// After a failure, until the next attempt.
const REST: Duration = Duration::from_secs(5);

pub(super) struct Writer {
    shared: Arc<Shared>,
    disk: Disk,
    /// Records that the limits allow.
    most: usize,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, disk: Disk, most: usize) -> Self {
        Self { shared, disk, most }
    }

    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let work = &shared.work;
        let _presence = work.enter();
        loop {
            work.wait(|changes| changes.keys.is_empty() && !changes.is_all);
            work.gather(BATCH);
            let turn = work.turn();
            let is_done = self.write();
            if is_done {
                work.finish(turn);
            }
            if turn.is_last {
                return;
            }
            if !is_done {
                work.rest(REST);
            }
        }
    }

    /// Writes what changed. If that fails, it has changed still.
    fn write(&mut self) -> bool {
        let Shared { front, work } = &*self.shared;
        let (keys, is_all) = work.with(|changes| {
            let keys = changes.keys.take(MOST_CHANGES);
            (keys, std::mem::take(&mut changes.is_all))
        });
        if keys.is_empty() && !is_all {
            return true;
        }
        let keys: Vec<_> = keys.into_iter().map(|(key, ())| key).collect();
        if self.disk.commit(front, &keys, is_all, self.most).is_ok() {
            front.counters.writes.add(keys.len());
            return true;
        }
        front.counters.errors.add(1);
        work.with(|changes| {
            changes.is_all |= is_all;
            for key in keys.into_iter().rev() {
                changes.is_all |= changes.keys.put_back(key, (), |(), ()| ());
            }
        });
        false
    }
}
