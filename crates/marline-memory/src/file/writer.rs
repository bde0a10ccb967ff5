//! The thread that writes the file.

use std::sync::Arc;
use std::time::Duration;

use super::disk::Disk;
use super::{MAX_CHANGES, Shared};

/// Time over which changes are collected into one transaction.
const BATCH: Duration = Duration::from_millis(500);

/// Delay after an error before the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(5);

pub(super) struct Writer {
    shared: Arc<Shared>,
    disk: Disk,
    /// Maximum number of records.
    limit: usize,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, disk: Disk, limit: usize) -> Self {
        Self {
            shared,
            disk,
            limit,
        }
    }

    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let work = &shared.work;
        let _guard = work.thread_guard();
        loop {
            work.wait(|changes| changes.keys.is_empty() && !changes.is_all);
            work.wait_for_more(BATCH);
            let round = work.begin_round();
            let is_done = self.write();
            if is_done {
                work.finish(round);
            }
            if round.is_last {
                return;
            }
            if !is_done {
                work.back_off(RETRY_DELAY);
            }
        }
    }

    /// Writes the changes. If that fails, they stay queued.
    fn write(&mut self) -> bool {
        let Shared { cache, work } = &*self.shared;
        let mut is_all = false;
        let changed = work.with(|changes| {
            is_all = std::mem::take(&mut changes.is_all);
            changes.keys.take(MAX_CHANGES)
        });
        if changed.is_empty() && !is_all {
            return true;
        }
        let keys: Vec<_> = changed.into_iter().map(|job| job.key).collect();
        if self.disk.commit(cache, &keys, is_all, self.limit).is_ok() {
            cache.counters.writes.add(keys.len());
            return true;
        }
        cache.counters.errors.add(1);
        work.with(|changes| {
            changes.is_all |= is_all;
            for key in keys.into_iter().rev() {
                changes.is_all |= changes.keys.put_back(key, (), |(), ()| ());
            }
        });
        false
    }
}
