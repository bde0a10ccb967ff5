//! The assignment of an object's ranges to connections.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use marline::Instant;
use slab::Slab;
use tokio::sync::Notify;

use super::Ranges;
use super::pace::Pace;

/// The smallest range that is handed over: the headers of its request and response are less than a hundredth of
/// it.
const MIN_HANDED_BYTES: u64 = 64 * 1024;

/// A range is not shortened if it will end within this many response times: the data that its server sends until it
/// receives STOP_SENDING, a round trip's worth, is wasted.
const MIN_RESPONSE_TIMES_LEFT: f64 = 4.0;

/// A connection is stalled if no bytes arrive for this time, and for this many response times.
const STALL_TIME: Duration = Duration::from_secs(1);
const STALL_RESPONSE_TIMES: u32 = 4;

/// The interval at which a connection without work checks the others.
const RECHECK_INTERVAL: Range<Duration> = Duration::from_millis(10)..Duration::from_millis(250);

/// The ranges of one object: those that are assigned to connections, and those that are not.
pub(super) struct Assignments {
    ranges: Ranges,
    /// Ranges that are not assigned.
    unassigned: VecDeque<Range<u64>>,
    assigned: Slab<Assignment>,
    pooled_connections: Vec<PooledState>,
    /// Whether the server coordinates the connections, so that they are about equally fast.
    pub(super) coordinated: bool,
    /// The validator of the representation, once a response has arrived.
    pub(super) validator: Option<HeaderValue>,
}

/// The state of a connection.
#[derive(Default)]
struct PooledState {
    failed: bool,
    /// It was found stalled, and its ranges were handed over.
    stalled: bool,
    pace: Pace,
    /// When bytes last arrived, or when an idle connection was given a range.
    last_progress: Instant,
}

/// A range that is assigned to a connection.
struct Assignment {
    pooled: usize,
    /// The bytes that have not arrived.
    rest: Range<u64>,
    /// Whether its end was moved after it was requested: the response is stopped there.
    is_shortened: bool,
    /// Whether it was handed over or shortened, and no bytes have arrived since.
    is_reassigned: bool,
    /// Notified when another connection takes over all of the rest.
    revoked: Arc<Notify>,
}

/// The next step of a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Fetch the range of this assignment.
    Fetch(usize),
    /// Call [`next`](Assignments::next) again, at the latest after this time.
    Wait(Duration),
    /// End: there is nothing left to do.
    End,
}

/// The part of a chunk that belongs to the assignment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    /// Its offset in the object.
    pub(super) offset: u64,
    /// Its length, from the start of the chunk.
    pub(super) bytes: u64,
    /// Whether the shortened range is complete, so that its response has to be stopped.
    pub(super) stop: bool,
    /// Whether it is time to send the next request on the connection.
    pub(super) ask: bool,
}

impl Assignments {
    pub(super) fn new(pooled_connections: usize, ranges: Ranges) -> Self {
        Self {
            ranges,
            unassigned: VecDeque::new(),
            assigned: Slab::new(),
            pooled_connections: (0..pooled_connections)
                .map(|_| PooledState::default())
                .collect(),
            coordinated: false,
            validator: None,
        }
    }

    /// Assigns `range` to `pooled`, and returns the assignment.
    pub(super) fn assign(&mut self, pooled: usize, range: Range<u64>, now: Instant) -> usize {
        self.add(pooled, range, false, now)
    }

    fn add(&mut self, pooled: usize, rest: Range<u64>, is_reassigned: bool, now: Instant) -> usize {
        if self.remaining_on(pooled) == 0 {
            self.pooled_connections[pooled].last_progress = now;
        }
        self.assigned.insert(Assignment {
            pooled,
            rest,
            is_shortened: false,
            is_reassigned,
            revoked: Arc::default(),
        })
    }

    /// The bytes of an assignment that have not arrived.
    pub(super) fn remaining(&self, assignment: usize) -> Range<u64> {
        self.assigned[assignment].rest.clone()
    }

    /// Notified when another connection takes over the rest of an assignment.
    pub(super) fn revoked(&self, assignment: usize) -> &Arc<Notify> {
        &self.assigned[assignment].revoked
    }

    /// A response has begun on `pooled`.
    pub(super) fn answered(&mut self, pooled: usize, asked: Instant, now: Instant) {
        let state = &mut self.pooled_connections[pooled];
        state.pace.answered(asked, now);
        state.last_progress = now;
        state.stalled = false;
    }

    /// `len` bytes of an assignment have arrived.
    pub(super) fn arrived(&mut self, assignment: usize, len: u64, now: Instant) -> Accepted {
        let assignment = &mut self.assigned[assignment];
        let state = &mut self.pooled_connections[assignment.pooled];
        state.pace.arrived(len, now);
        state.last_progress = now;
        state.stalled = false;
        assignment.is_reassigned = false;
        let offset = assignment.rest.start;
        let bytes = len.min(assignment.rest.end - offset);
        assignment.rest.start += bytes;
        let rest = assignment.rest.end - assignment.rest.start;
        Accepted {
            offset,
            bytes,
            stop: assignment.is_shortened && rest == 0,
            ask: rest <= state.pace.ahead(),
        }
    }

    /// An assignment is complete, or the rest of it was handed over.
    pub(super) fn complete(&mut self, assignment: usize) {
        self.assigned.remove(assignment);
    }

    /// The connection of an assignment has failed.
    pub(super) fn fail(&mut self, assignment: usize) {
        let assignment = self.assigned.remove(assignment);
        self.pooled_connections[assignment.pooled].failed = true;
        self.unassign(assignment.rest);
    }

    /// The connections that have not failed.
    pub(super) fn working(&self) -> impl Iterator<Item = usize> {
        let pooled_connections = self.pooled_connections.iter().enumerate();
        pooled_connections.filter_map(|(pooled, state)| (!state.failed).then_some(pooled))
    }

    fn unassign(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.unassigned.push_front(range);
        }
    }

    /// The next step of a worker of `pooled` that has little or nothing left to do.
    pub(super) fn next(&mut self, pooled: usize, now: Instant) -> NextStep {
        if self.pooled_connections[pooled].failed {
            return NextStep::End;
        }
        let stalled = self.pooled_connections[pooled].stalled;
        if (!stalled
            || self
                .working()
                .all(|pooled| self.pooled_connections[pooled].stalled))
            && let Some(range) = self.take_unassigned()
        {
            return NextStep::Fetch(self.add(pooled, range, false, now));
        }
        let others = self
            .assigned
            .iter()
            .any(|(_, assignment)| assignment.pooled != pooled);
        if self.ranges == Ranges::Equal || (!others && self.unassigned.is_empty()) {
            return NextStep::End;
        }
        let bound = self.stall_limit();
        let waits = self.remaining_on(pooled) > 0
            && now.saturating_since(self.pooled_connections[pooled].last_progress) >= bound;
        let may_hand_over = match self.ranges {
            Ranges::Auto => !self.coordinated,
            Ranges::Equal => false,
            Ranges::Handed => true,
        };
        let taken = match stalled || waits {
            true => None,
            false => self.take_from_stalled(pooled, bound, now).or_else(|| {
                may_hand_over
                    .then(|| self.take_from_slow(pooled, now))
                    .flatten()
            }),
        };
        match taken {
            Some(range) => NextStep::Fetch(self.add(pooled, range, true, now)),
            None => {
                let wait = self.pooled_connections[pooled].pace.wait();
                NextStep::Wait(wait.clamp(RECHECK_INTERVAL.start, RECHECK_INTERVAL.end))
            }
        }
    }

    /// Takes a share of the ranges that are not assigned.
    fn take_unassigned(&mut self) -> Option<Range<u64>> {
        let left: u64 = self
            .unassigned
            .iter()
            .map(|range| range.end - range.start)
            .sum();
        let pooled_connections = self.working().count().max(1) as u64;
        let range = self.unassigned.pop_front()?;
        let len = left.div_ceil(pooled_connections).max(MIN_HANDED_BYTES);
        let end = range.end.min(range.start.saturating_add(len));
        self.unassign(end..range.end);
        Some(range.start..end)
    }

    /// The time without bytes after which a connection is stalled.
    fn stall_limit(&self) -> Duration {
        let waits = self
            .pooled_connections
            .iter()
            .map(|state| state.pace.wait());
        STALL_TIME.max(STALL_RESPONSE_TIMES * waits.max().unwrap_or_default())
    }

    /// Takes the rest of a range from a stalled connection.
    fn take_from_stalled(
        &mut self,
        pooled: usize,
        bound: Duration,
        now: Instant,
    ) -> Option<Range<u64>> {
        for (_, assignment) in &mut self.assigned {
            let state = &mut self.pooled_connections[assignment.pooled];
            if assignment.pooled == pooled || now.saturating_since(state.last_progress) < bound {
                continue;
            }
            state.stalled = true;
            let rest = assignment.rest.clone();
            assignment.rest.end = rest.start;
            assignment.is_shortened = true;
            assignment.revoked.notify_one();
            if !rest.is_empty() {
                return Some(rest);
            }
        }
        None
    }

    /// Takes the latter part of the range that will end last, if that saves time, so that both connections end together.
    fn take_from_slow(&mut self, pooled: usize, now: Instant) -> Option<Range<u64>> {
        let here = &self.pooled_connections[pooled];
        let own = here
            .pace
            .rate(here.last_progress)
            .filter(|rate| *rate > 0.0)?;
        let wait = here.pace.wait().as_secs_f64();
        // The response to a new request follows those to earlier ones.
        let begin = wait.max(self.remaining_on(pooled) as f64 / own);
        let (end, rate, assignment) = self
            .assigned
            .iter()
            .filter(|(_, assignment)| assignment.pooled != pooled && !assignment.is_reassigned)
            .filter_map(|(key, assignment)| {
                let rate = self.expected_rate(assignment.pooled, own, wait, now)?;
                Some((
                    self.remaining_on(assignment.pooled) as f64 / rate,
                    rate,
                    key,
                ))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let there = self.assigned[assignment].pooled;
        let near = MIN_RESPONSE_TIMES_LEFT
            * self.pooled_connections[there]
                .pace
                .wait()
                .as_secs_f64()
                .max(wait);
        if end < near {
            return None;
        }
        let assignment = &mut self.assigned[assignment];
        let both = (end * rate + begin * own) / (rate + own);
        // Casts to integers saturate.
        let part = (own * (both - begin)) as u64;
        let part = part.min((assignment.rest.end - assignment.rest.start) / 8 * 7);
        if part < MIN_HANDED_BYTES {
            return None;
        }
        let middle = assignment.rest.end - part;
        let range = middle..assignment.rest.end;
        assignment.rest.end = middle;
        assignment.is_shortened = true;
        assignment.is_reassigned = true;
        Some(range)
    }

    /// The expected bytes per second on `pooled`. If no bytes have arrived there for two response times, `own`, the
    /// rate of the asking connection, is assumed.
    fn expected_rate(&self, pooled: usize, own: f64, wait: f64, now: Instant) -> Option<f64> {
        let state = &self.pooled_connections[pooled];
        match state.pace.rate(now).filter(|rate| *rate > 0.0) {
            Some(rate) => Some(rate),
            None => (now.saturating_since(state.last_progress).as_secs_f64() > 2.0 * wait)
                .then_some(own),
        }
    }

    /// Bytes that have not arrived of all assignments of `pooled`.
    fn remaining_on(&self, pooled: usize) -> u64 {
        let assigned = self
            .assigned
            .iter()
            .filter(|(_, assignment)| assignment.pooled == pooled);
        assigned
            .map(|(_, assignment)| assignment.rest.end - assignment.rest.start)
            .sum()
    }
}

#[cfg(test)]
mod tests;
