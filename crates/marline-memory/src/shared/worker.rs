//! The thread that talks to the server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::PathKey;
use redis::RedisResult;

use super::server::{Server, Written};
use super::{Change, MOST_CHANGES, MOST_QUESTIONS, Shared};
use crate::front::Decoded;
use crate::key;

/// Questions, and changes, that go to the server at a time.
const BATCH: usize = 128;

/// After a failure, until the next attempt; twice that after each one that follows.
const FIRST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(30);

pub(super) struct Worker {
    shared: Arc<Shared>,
    server: Server,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, server: Server) -> Self {
        Self { shared, server }
    }

    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let Shared { front, work } = &*shared;
        let _presence = work.enter();
        let mut rest = FIRST_REST;
        loop {
            work.wait(|queues| queues.questions.is_empty() && queues.changes.is_empty());
            let turn = work.turn();
            let result = self.work_off();
            if result.is_ok() {
                work.finish(turn);
                rest = FIRST_REST;
            }
            if turn.is_last {
                return;
            }
            if result.is_err() {
                front.counters.errors.add(1);
                work.rest(rest);
                rest = (2 * rest).min(LONGEST_REST);
            }
        }
    }

    /// Does what waits now, at least.
    fn work_off(&mut self) -> RedisResult<()> {
        for _ in 0..=MOST_CHANGES.max(MOST_QUESTIONS) / BATCH {
            let (questions, changes) = self.shared.work.with(|queues| {
                let questions = queues.questions.take(BATCH);
                (questions, queues.changes.take(BATCH))
            });
            if questions.is_empty() && changes.is_empty() {
                break;
            }
            if let Err(error) = self.exchange(&questions, &changes) {
                self.put_back(changes);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Reads what is asked for and what is to be rewritten, then writes.
    fn exchange(
        &mut self,
        questions: &[(PathKey, ())],
        changes: &[(PathKey, Change)],
    ) -> RedisResult<()> {
        let changes: Vec<_> = named(changes).collect();
        let changing: HashSet<_> = changes.iter().map(|(name, ..)| name.as_str()).collect();
        let mut questions: Vec<_> = named(questions).collect();
        questions.retain(|(name, ..)| !changing.contains(name.as_str()));
        let rewritten = changes
            .iter()
            .filter_map(|(name, key, change)| match change {
                Change::Write { taken } => Some((name, *key, *taken)),
                Change::Forget => None,
            });

        let names = questions.iter().map(|(name, ..)| name.as_str());
        let names: Vec<_> = names
            .chain(rewritten.clone().map(|(name, ..)| name.as_str()))
            .collect();
        let mut answers = self.server.read(&names)?.into_iter();
        for ((_, key, ()), answer) in questions.iter().zip(answers.by_ref()) {
            self.heard(key, answer);
        }
        for ((_, key, taken), answer) in rewritten.zip(answers) {
            self.absorb(key, answer, taken);
        }
        self.server.write(&self.written(&changes))?;
        self.shared.front.counters.writes.add(changes.len());
        Ok(())
    }

    /// An answer; the record may have changed since it was asked for.
    fn heard(&self, key: &PathKey, answer: Option<Vec<u8>>) {
        let change = self
            .shared
            .work
            .with(|queues| queues.changes.get(key).copied());
        match change {
            Some(Change::Forget) => {}
            Some(Change::Write { taken }) => self.absorb(key, answer, taken),
            None => self.absorb(key, answer, None),
        }
    }

    fn absorb(&self, key: &PathKey, answer: Option<Vec<u8>>, taken: Option<Instant>) {
        let front = &self.shared.front;
        match answer.map(|bytes| front.decode(&bytes)) {
            Some(Decoded::Record(record)) => front.absorb(key, record, taken),
            Some(Decoded::Broken) => front.counters.errors.add(1),
            Some(Decoded::Old) | None => {}
        }
    }

    /// What the server is to have. A record that memory has lost meanwhile stays as the server has it.
    fn written(&self, changes: &[(String, &PathKey, Change)]) -> Vec<(String, Written)> {
        let front = &self.shared.front;
        let written = changes.iter().filter_map(|(name, key, change)| {
            let value = match change {
                Change::Write { .. } => Some(front.value(key)?),
                Change::Forget => None,
            };
            Some((name.clone(), value))
        });
        written.collect()
    }

    fn put_back(&self, changes: Vec<(PathKey, Change)>) {
        let Shared { front, work } = &*self.shared;
        let lost = work.with(|queues| {
            let lost = changes.into_iter().rev().filter_map(|(key, change)| {
                let join = |later: &mut Change, mut earlier: Change| {
                    earlier.join(*later);
                    *later = earlier;
                };
                queues.changes.put_back(key, change, join).then_some(())
            });
            lost.count()
        });
        front.counters.dropped_writes.add(lost);
    }
}

/// Jobs with the names that their keys have in stores; a key without a name stays in memory.
fn named<J: Copy>(jobs: &[(PathKey, J)]) -> impl Iterator<Item = (String, &PathKey, J)> {
    jobs.iter()
        .filter_map(|(key, job)| Some((key::encode(key)?, key, *job)))
}
