//! Fetches one object over several connections, in ranges.
//!
//! Every connection begins with a range of its own. When little of it is left, the connection takes over the latter part of
//! another connection's range, if that is far from complete, so that no connection is idle for a round trip in between.
//! The other connection stops its response at the new end. The ranges of a connection that fails or stalls are fetched by the
//! others.
//!
//! All ranges must be of one representation (RFC 9110 section 13.1.5): its size and validator are those of the
//! first response. Later requests carry the validator (`If-Range`); responses to requests that were sent at the
//! same time are compared with it.

mod assignments;
mod pace;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use marline::Instant;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};

use self::assignments::{Assignments, NextStep};
use super::plan::PlannedRequest;
use super::pooled::{Answer, PooledConnection};
use super::range::{ContentRange, range as range_header};
use super::save::Validator;
use super::{Client, ClientError, Download};
use crate::tasks::TaskSet;

/// The method of splitting an object into ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ranges {
    /// [`Handed`](Self::Handed), unless the connections are a bundle that the server coordinates: those are about
    /// equally fast, so that only the ranges of stalled connections are handed over.
    #[default]
    Auto,
    /// One contiguous range for each connection, all of the same size (mQUIC, section V-C). The object is
    /// complete when the slowest connection has finished.
    Equal,
    /// Equal at first. A connection that has almost finished takes over the latter part of the range that will
    /// end last, so that both end together, if that end is some round trips away and the part is at least 64 KiB.
    /// It takes over the whole rest of a connection on which no bytes have arrived for a second or longer.
    Handed,
}

/// The destination of ranges.
pub(crate) trait Store: Send + Sync {
    /// Writes bytes of the object, which arrive in order within their range.
    fn write(&self, offset: u64, bytes: Bytes) -> BoxFuture<'_, Result<(), ClientError>>;
}

/// An object to fetch in ranges.
pub(crate) struct Object {
    pub(crate) client: Arc<Client>,
    pub(crate) pooled_connections: Vec<Arc<PooledConnection>>,
    pub(crate) uri: Uri,
    /// Header fields of every request.
    pub(crate) headers: HeaderMap,
    /// Its size in bytes.
    pub(crate) size: u64,
    pub(crate) ranges: Ranges,
    pub(crate) store: Box<dyn Store>,
}

/// A range whose response has begun.
pub(crate) struct StartedRange {
    pub(crate) pooled: usize,
    /// When it was requested, and when the response began.
    pub(crate) asked: Instant,
    pub(crate) at: Instant,
    pub(crate) download: Download,
    pub(crate) end: u64,
    pub(crate) validator: Option<HeaderValue>,
}

/// The outcome of a fetch in ranges.
pub(crate) enum Outcome {
    /// All bytes were stored.
    Complete,
    /// The first response is not a range.
    Other(Box<Answer>),
    /// Ranges may not be of one representation: fetch the object whole.
    Whole,
}

/// The first response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    /// When the connection was open for the request.
    pub(crate) connected: Instant,
    pub(crate) at: Instant,
    pub(crate) connection: u64,
    pub(crate) status: StatusCode,
}

/// Why a worker stopped early.
enum Stop {
    /// Its connection failed; the rest of its range is not assigned.
    LaneFailed(ClientError),
    /// An error that would affect other connections as well.
    Fatal(ClientError),
    Ended(Outcome),
}

/// A fetch in progress.
pub(crate) struct Split {
    object: Object,
    /// For each connection, held by a worker from before its request until little of the response is left.
    permits: Vec<Arc<AsyncMutex<()>>>,
    assignments: Mutex<Assignments>,
    /// Notified when the assignments have changed.
    changed: Notify,
    first: OnceLock<First>,
    /// Bytes that were stored.
    stored: AtomicU64,
}

type Permit = Option<OwnedMutexGuard<()>>;

impl Split {
    pub(crate) fn new(object: Object) -> Arc<Self> {
        let permits = object
            .pooled_connections
            .iter()
            .map(|_| Arc::default())
            .collect();
        Arc::new(Self {
            assignments: Mutex::new(Assignments::new(
                object.pooled_connections.len(),
                object.ranges,
            )),
            changed: Notify::new(),
            permits,
            object,
            first: OnceLock::new(),
            stored: AtomicU64::new(0),
        })
    }

    /// The number of bytes that were stored.
    pub(crate) fn stored(&self) -> u64 {
        self.stored.load(Relaxed)
    }

    /// The first response, if there was one.
    pub(crate) fn first(&self) -> Option<First> {
        self.first.get().copied()
    }

    /// Sends the `requests` at once; `started` is the first range, if it was requested before.
    ///
    /// When this returns, nothing more is passed to the store.
    ///
    /// # Errors
    /// All connections failed, or the store.
    pub(crate) async fn run(
        self: &Arc<Self>,
        requests: Vec<PlannedRequest>,
        started: Option<StartedRange>,
    ) -> Result<Outcome, ClientError> {
        let mut workers = TaskSet::new(self.object.client.runtime());
        let now = self.object.client.runtime().now();
        if let Some(started) = started {
            let mut assignments = self.assignments();
            assignments.validator = started.validator.clone();
            let assignment = assignments.assign(started.pooled, 0..started.end, now);
            assignments.answered(started.pooled, started.asked, started.at);
            drop(assignments);
            // The permit is free, as no other worker has started yet.
            let permit = Arc::clone(&self.permits[started.pooled])
                .try_lock_owned()
                .ok();
            let split = Arc::clone(self);
            workers.spawn(async move {
                let stored = split.store(started.download, assignment, started.end, permit);
                split.run_assignment(assignment, stored).await
            });
        }
        // All ranges are assigned before a worker looks for more.
        let assigned: Vec<_> = requests
            .into_iter()
            .map(|request| {
                let range = request.range.unwrap_or(0..self.object.size);
                let assignment = self.assignments().assign(request.connection, range, now);
                (request.connection, assignment)
            })
            .collect();
        for (pooled, assignment) in assigned {
            self.spawn(&mut workers, pooled, Some(assignment));
        }
        if self.object.ranges != Ranges::Equal {
            // While one response arrives, a second worker sends the next request.
            let at_once = self.object.client.config().version.requests_at_once();
            for pooled in (0..self.permits.len()).filter(|_| at_once > 1) {
                self.spawn(&mut workers, pooled, None);
            }
        }
        let outcome = self.supervise(&mut workers).await;
        workers.end().await;
        outcome
    }

    fn assignments(&self) -> MutexGuard<'_, Assignments> {
        self.assignments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Self>, workers: &mut Workers, pooled: usize, assignment: Option<usize>) {
        let split = Arc::clone(self);
        workers.spawn(async move { split.work(pooled, assignment).await });
    }

    async fn supervise(self: &Arc<Self>, workers: &mut Workers) -> Result<Outcome, ClientError> {
        while let Some(ended) = workers.join_next().await {
            let broken = |error: crate::tasks::Unfinished| mismatch(&error.to_string());
            match ended.map_err(broken)? {
                Ok(()) => {}
                Err(Stop::Ended(outcome)) => return Ok(outcome),
                Err(Stop::Fatal(error)) => return Err(error),
                Err(Stop::LaneFailed(error)) => {
                    let working: Vec<_> = self.assignments().working().collect();
                    if working.is_empty() {
                        return Err(error);
                    }
                    for pooled in working {
                        self.spawn(workers, pooled, None);
                    }
                }
            }
        }
        match self.stored() == self.object.size {
            true => Ok(Outcome::Complete),
            false => Err(mismatch("the pieces do not add up")),
        }
    }

    /// Fetches the range of `assignment`, then further ranges on `pooled`.
    async fn work(&self, pooled: usize, mut assignment: Option<usize>) -> Result<(), Stop> {
        let runtime = self.object.client.runtime();
        loop {
            let permit = Arc::clone(&self.permits[pooled]).lock_owned().await;
            let changed = self.changed.notified();
            let next = match assignment.take() {
                Some(assignment) => NextStep::Fetch(assignment),
                None => self.assignments().next(pooled, runtime.now()),
            };
            match next {
                NextStep::Fetch(assignment) => {
                    self.run_assignment(assignment, self.fetch(pooled, assignment, permit))
                        .await?;
                }
                NextStep::Wait(most) => {
                    // A worker with an assignment on the connection may send its request first.
                    drop(permit);
                    // After the time limit, the assignments are checked as well.
                    let _ = runtime.timeout(most, changed).await;
                }
                NextStep::End => return Ok(()),
            }
        }
    }

    /// Waits for `work` on an assignment, or until its rest is handed over, and records the result.
    async fn run_assignment(
        &self,
        assignment: usize,
        work: impl Future<Output = Result<(), Stop>>,
    ) -> Result<(), Stop> {
        let revoked = Arc::clone(self.assignments().revoked(assignment));
        let result = tokio::select! {
            biased;
            () = revoked.notified() => Ok(()),
            result = work => result,
        };
        match &result {
            Err(Stop::LaneFailed(_)) => self.assignments().fail(assignment),
            _ => self.assignments().complete(assignment),
        }
        self.changed.notify_waiters();
        result
    }

    async fn fetch(
        &self,
        pooled: usize,
        assignment: usize,
        permit: OwnedMutexGuard<()>,
    ) -> Result<(), Stop> {
        let Object { client, uri, .. } = &self.object;
        let here = &self.object.pooled_connections[pooled];
        here.open(client).await.map_err(Stop::LaneFailed)?;
        // The range may have been shortened.
        let range = self.assignments().remaining(assignment);
        if range.is_empty() {
            return Ok(());
        }
        let mut headers = self.object.headers.clone();
        headers.insert(RANGE, range_header(range.start, Some(range.end - 1)));
        if let Some(validator) = &self.assignments().validator {
            headers.insert(IF_RANGE, validator.clone());
        }
        let asked = client.runtime().now();
        let answer = here.get(client, uri, &headers).await;
        let Answer {
            connection,
            connected,
            content_length,
            response,
        } = answer.map_err(Stop::LaneFailed)?;
        let now = client.runtime().now();
        self.assignments().answered(pooled, asked, now);
        self.assignments().coordinated =
            client.config().bundle && connection.peer_coordinates_bundles();
        let _ = self.first.set(First {
            connected,
            at: now,
            connection: connection.id,
            status: response.status(),
        });
        let download = self.check(
            &range,
            Answer {
                connection,
                connected,
                content_length,
                response,
            },
        )?;
        self.store(download, assignment, range.end, Some(permit))
            .await
    }

    /// Checks that a response is the requested range of the same representation, and returns its content.
    fn check(&self, range: &Range<u64>, answer: Answer) -> Result<Download, Stop> {
        let response = &answer.response;
        let status = response.status();
        let expected = ContentRange {
            first: range.start,
            last: range.end - 1,
            size: Some(self.object.size),
        };
        let mut assignments = self.assignments();
        match (status, &assignments.validator) {
            (StatusCode::PARTIAL_CONTENT, known) => {
                let validator = Validator::of(response.headers()).0;
                let fits = match known {
                    Some(known) => validator.as_ref() == Some(known),
                    None => validator.is_some(),
                };
                if !fits || ContentRange::of(response.headers()) != Some(expected) {
                    return Err(Stop::Ended(Outcome::Whole));
                }
                assignments.validator = validator;
                Ok(answer.response.into_body())
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, _) | (StatusCode::OK, Some(_)) => {
                Err(Stop::Ended(Outcome::Whole))
            }
            (_, None) => Err(Stop::Ended(Outcome::Other(Box::new(answer)))),
            (status, Some(_)) => {
                let error = mismatch(&format!("{status} for {expected:?}"));
                Err(Stop::LaneFailed(error))
            }
        }
    }

    /// Stores the bytes of an assignment that was requested up to `end`. Releases the permit when little is left.
    async fn store(
        &self,
        mut download: Download,
        assignment: usize,
        end: u64,
        mut permit: Permit,
    ) -> Result<(), Stop> {
        let mut next = None;
        loop {
            let mut chunk = match download.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) if next == Some(end) => return Ok(()),
                Ok(None) => return Err(Stop::LaneFailed(mismatch("a short piece"))),
                Err(error) => return Err(Stop::LaneFailed(error)),
            };
            let len = chunk.len() as u64;
            let now = self.object.client.runtime().now();
            let taken = self.assignments().arrived(assignment, len, now);
            if len > end - taken.offset {
                return Err(Stop::Fatal(mismatch("a piece is too long")));
            }
            chunk.truncate(taken.bytes as usize);
            let written = self.object.store.write(taken.offset, chunk).await;
            written.map_err(Stop::Fatal)?;
            self.stored.fetch_add(taken.bytes, Relaxed);
            next = Some(taken.offset + taken.bytes);
            if taken.stop {
                return Ok(());
            }
            if taken.ask {
                drop(permit.take());
            }
        }
    }
}

type Workers = TaskSet<Result<(), Stop>>;

fn mismatch(what: &str) -> ClientError {
    ClientError::WrongRange(what.to_owned())
}

#[cfg(test)]
mod tests;
