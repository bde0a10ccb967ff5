//! What waits to be done for records: one job a key, so many, the oldest first.

use std::collections::{HashMap, VecDeque};

use marline_proto::coordination::history::PathKey;

#[derive(Debug)]
pub(crate) struct Backlog<J> {
    most: usize,
    order: VecDeque<PathKey>,
    jobs: HashMap<PathKey, J>,
}

impl<J> Backlog<J> {
    /// Room for `most` jobs.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            order: VecDeque::new(),
            jobs: HashMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// What waits for `key`.
    pub(crate) fn get(&self, key: &PathKey) -> Option<&J> {
        self.jobs.get(key)
    }

    /// Puts a job at the end, or has `join` make one of it and the one that waits for this key already, in
    /// its place. Whether the oldest had to go.
    pub(crate) fn push(&mut self, key: &PathKey, job: J, join: impl FnOnce(&mut J, J)) -> bool {
        if let Some(waiting) = self.jobs.get_mut(key) {
            join(waiting, job);
            return false;
        }
        self.order.push_back(key.clone());
        self.jobs.insert(key.clone(), job);
        self.order.len() > self.most && self.pop().is_some()
    }

    /// Puts back what was taken first, unless there is no room or a newer job for its key, which `join`
    /// puts it into. Whether it is lost.
    pub(crate) fn put_back(&mut self, key: PathKey, job: J, join: impl FnOnce(&mut J, J)) -> bool {
        if let Some(waiting) = self.jobs.get_mut(&key) {
            join(waiting, job);
            return false;
        }
        if self.order.len() >= self.most {
            return true;
        }
        self.order.push_front(key.clone());
        self.jobs.insert(key, job);
        false
    }

    /// The oldest jobs, `most` of them at most.
    pub(crate) fn take(&mut self, most: usize) -> Vec<(PathKey, J)> {
        std::iter::from_fn(|| self.pop()).take(most).collect()
    }

    fn pop(&mut self) -> Option<(PathKey, J)> {
        let key = self.order.pop_front()?;
        let job = self.jobs.remove(&key)?;
        Some((key, job))
    }
}

#[cfg(test)]
mod tests;
