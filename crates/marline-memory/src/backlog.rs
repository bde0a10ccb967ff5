//! A bounded FIFO queue of jobs, with at most one job per key.

use std::collections::{HashMap, VecDeque};

use marline_proto::coordination::history::PathKey;

#[derive(Debug)]
pub(crate) struct Backlog<J> {
    limit: usize,
    order: VecDeque<PathKey>,
    jobs: HashMap<PathKey, J>,
}

/// A job removed from a [`Backlog`].
#[derive(Debug, PartialEq)]
pub(crate) struct Job<J> {
    pub(crate) key: PathKey,
    pub(crate) job: J,
}

impl<J> Backlog<J> {
    /// An empty queue for at most `limit` jobs.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            order: VecDeque::new(),
            jobs: HashMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The job for `key`.
    pub(crate) fn get(&self, key: &PathKey) -> Option<&J> {
        self.jobs.get(key)
    }

    /// Appends a job. If there is a job for the key already, `join` merges the new one into it, and
    /// its position is kept. Returns whether the oldest job was discarded to stay within the limit.
    pub(crate) fn push(&mut self, key: &PathKey, job: J, join: impl FnOnce(&mut J, J)) -> bool {
        if let Some(waiting) = self.jobs.get_mut(key) {
            join(waiting, job);
            return false;
        }
        self.order.push_back(key.clone());
        self.jobs.insert(key.clone(), job);
        self.order.len() > self.limit && self.pop().is_some()
    }

    /// Puts a job that was taken back at the front. If there is a newer job for the key, `join` merges
    /// the old one into it. Returns whether the job was discarded because the queue is full.
    pub(crate) fn put_back(&mut self, key: PathKey, job: J, join: impl FnOnce(&mut J, J)) -> bool {
        if let Some(waiting) = self.jobs.get_mut(&key) {
            join(waiting, job);
            return false;
        }
        if self.order.len() >= self.limit {
            return true;
        }
        self.order.push_front(key.clone());
        self.jobs.insert(key, job);
        false
    }

    /// Removes the oldest jobs, at most `count`.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Job<J>> {
        std::iter::from_fn(|| self.pop()).take(count).collect()
    }

    fn pop(&mut self) -> Option<Job<J>> {
        let key = self.order.pop_front()?;
        let job = self.jobs.remove(&key)?;
        Some(Job { key, job })
    }
}

#[cfg(test)]
mod tests;
