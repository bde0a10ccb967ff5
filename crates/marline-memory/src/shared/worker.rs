//! The thread that communicates with the server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::PathKey;
use redis::RedisResult;

use super::report::Reporter;
use super::server::{Server, Write};
use super::{Change, MAX_CHANGES, MAX_READS, Shared};
use crate::backlog::Job;
use crate::cache::Decoded;
use crate::key;

/// Maximum number of reads, and of changes, per exchange with the server.
const BATCH: usize = 128;

/// Backoff after an error; doubles with each further error.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

pub(super) struct Worker {
    shared: Arc<Shared>,
    server: Server,
    reporter: Option<Reporter>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, server: Server, reporter: Option<Reporter>) -> Self {
        Self {
            shared,
            server,
            reporter,
        }
    }

    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let Shared { cache, work } = &*shared;
        let _guard = work.thread_guard();
        if let Some(reporter) = &mut self.reporter {
            reporter.on_result(self.server.check().as_ref().copied());
        }
        let mut backoff = MIN_BACKOFF;
        loop {
            work.wait(|queues| queues.reads.is_empty() && queues.changes.is_empty());
            let round = work.begin_round();
            let result = self.process();
            if let Some(reporter) = &mut self.reporter {
                reporter.on_result(result.as_ref().copied());
            }
            if result.is_ok() {
                work.finish(round);
                backoff = MIN_BACKOFF;
            }
            if round.is_last {
                return;
            }
            if result.is_err() {
                cache.counters.errors.add(1);
                work.back_off(backoff);
                backoff = (2 * backoff).min(MAX_BACKOFF);
            }
        }
    }

    /// Processes at least all jobs that are queued now.
    fn process(&mut self) -> RedisResult<()> {
        for _ in 0..=MAX_CHANGES.max(MAX_READS) / BATCH {
            let batch = self.shared.work.with(|queues| Batch {
                reads: queues.reads.take(BATCH),
                changes: queues.changes.take(BATCH),
            });
            if batch.reads.is_empty() && batch.changes.is_empty() {
                break;
            }
            if let Err(error) = self.exchange(&batch) {
                self.put_back(batch.changes);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Reads the requested records and those to be merged, then writes the changes.
    fn exchange(&mut self, batch: &Batch) -> RedisResult<()> {
        let changes: Vec<_> = named(&batch.changes).collect();
        let changing: HashSet<_> = changes.iter().map(|change| change.name.as_str()).collect();
        let mut reads: Vec<_> = named(&batch.reads).collect();
        reads.retain(|read| !changing.contains(read.name.as_str()));
        let merged = changes.iter().filter_map(|change| match change.job {
            Change::Write { taken } => Some((change, taken)),
            Change::Forget => None,
        });

        let names = reads.iter().map(|read| read.name.as_str());
        let names: Vec<_> = names
            .chain(merged.clone().map(|(change, _)| change.name.as_str()))
            .collect();
        let mut values = self.server.read(&names)?.into_iter();
        for (read, value) in reads.iter().zip(values.by_ref()) {
            self.on_read(read.key, value);
        }
        for ((change, taken), value) in merged.zip(values) {
            self.merge(change.key, value, taken);
        }
        self.server.write(&self.writes(&changes))?;
        self.shared.cache.counters.writes.add(changes.len());
        Ok(())
    }

    /// Handles the response to a read; the record may have changed since the request.
    fn on_read(&self, key: &PathKey, value: Option<Vec<u8>>) {
        let change = self
            .shared
            .work
            .with(|queues| queues.changes.get(key).copied());
        match change {
            Some(Change::Forget) => {}
            Some(Change::Write { taken }) => self.merge(key, value, taken),
            None => self.merge(key, value, None),
        }
    }

    fn merge(&self, key: &PathKey, value: Option<Vec<u8>>, taken: Option<Instant>) {
        let cache = &self.shared.cache;
        match value.map(|bytes| cache.decode(&bytes)) {
            Some(Decoded::Record(record)) => cache.merge(key, record, taken),
            Some(Decoded::Malformed) => cache.counters.errors.add(1),
            Some(Decoded::Expired) | None => {}
        }
    }

    /// The writes for `changes`. Records that were evicted from memory meanwhile are left unchanged on
    /// the server.
    fn writes(&self, changes: &[Named<'_, Change>]) -> Vec<Write> {
        let cache = &self.shared.cache;
        let writes = changes.iter().filter_map(|change| {
            let value = match change.job {
                Change::Write { .. } => Some(cache.value(change.key)?),
                Change::Forget => None,
            };
            Some(Write {
                name: change.name.clone(),
                value,
            })
        });
        writes.collect()
    }

    fn put_back(&self, changes: Vec<Job<Change>>) {
        let Shared { cache, work } = &*self.shared;
        let lost = work.with(|queues| {
            let lost = changes
                .into_iter()
                .rev()
                .filter_map(|Job { key, job: change }| {
                    let join = |later: &mut Change, mut earlier: Change| {
                        earlier.join(*later);
                        *later = earlier;
                    };
                    queues.changes.put_back(key, change, join).then_some(())
                });
            lost.count()
        });
        cache.counters.dropped_writes.add(lost);
    }
}

/// Jobs of one exchange with the server.
struct Batch {
    reads: Vec<Job<()>>,
    changes: Vec<Job<Change>>,
}

/// A job with the encoded key of its record.
struct Named<'a, J> {
    name: String,
    key: &'a PathKey,
    job: J,
}

/// Jobs with their encoded keys. Records whose key has no encoding exist only in memory.
fn named<J: Copy>(jobs: &[Job<J>]) -> impl Iterator<Item = Named<'_, J>> {
    jobs.iter().filter_map(|Job { key, job }| {
        Some(Named {
            name: key::encode(key)?,
            key,
            job: *job,
        })
    })
}
