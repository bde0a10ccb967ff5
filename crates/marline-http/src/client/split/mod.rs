//! One object over several connections: each fetches ranges of it.
//!
//! Every lane begins with a range of its own. Once little of it is left, the lane takes over a part of what
//! another is far from having fetched, if there is such a one: no connection idles for a round trip in
//! between. The other reads on up to there, and stops its response. What a lane that fails or falls
//! silent still owes goes to those that live.
//!
//! Ranges fit together if they are of one representation (RFC 9110 section 13.1.5): its size and
//! validator are those of the response that came first. The requests after that name the validator
//! (`If-Range`); the answers to those sent at the same time are held against it.

mod board;
mod pace;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use marline::Instant;
use tokio::sync::{Mutex as Turn, Notify, OwnedMutexGuard};

use self::board::{Board, Next};
use super::lane::{Answer, Lane};
use super::plan::PlannedRequest;
use super::range::{ContentRange, range as range_header};
use super::save::Validator;
use super::{Client, ClientError, Connection, Download};
use crate::tasks::TaskSet;

/// How an object's bytes are shared out among connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ranges {
    /// Handed on, unless the connections are a bundle that the server coordinates: those are about equally
    /// fast, so that only what silent ones owe is fetched by others.
    #[default]
    Auto,
    /// One contiguous range for each connection, all of one size (mQUIC, section V-C). The object is
    /// complete when the slowest connection is.
    Equal,
    /// The same at first; but a connection that is about to be done is handed the latter part of the range
    /// that will end last, so that both end together, if that is still some round trips away and the part
    /// is no smaller than 64 KiB. From a connection that has been silent for a second or longer, it gets all.
    Handed,
}

/// Where ranges go.
pub(crate) trait Store: Send + Sync {
    /// These bytes of the object have arrived, in order within their range.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), ClientError>;
}

/// An object to fetch in ranges.
pub(crate) struct Object {
    pub(crate) client: Arc<Client>,
    pub(crate) lanes: Vec<Arc<Lane>>,
    pub(crate) uri: Uri,
    /// Of every request.
    pub(crate) headers: HeaderMap,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) ranges: Ranges,
    pub(crate) store: Box<dyn Store>,
}

/// A range that a server answers with already.
pub(crate) struct Begun {
    pub(crate) lane: usize,
    /// When it was asked for, and when the response began.
    pub(crate) asked: Instant,
    pub(crate) at: Instant,
    pub(crate) download: Download,
    pub(crate) end: u64,
    pub(crate) validator: Option<HeaderValue>,
}

/// How it ended.
pub(crate) enum Outcome {
    /// All bytes were stored.
    Complete,
    /// The first server to answer sends no range but this.
    Instead(Box<Answer>),
    /// Pieces would not fit together: the object or what is known of it has changed, or nothing tells.
    Whole,
}

/// The response that came first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    pub(crate) at: Instant,
    pub(crate) connection: u64,
    pub(crate) status: StatusCode,
}

/// Why a worker stopped before its work was done.
enum Stop {
    /// Its lane failed; the board knows what it owes.
    Lost(ClientError),
    /// No lane would do better.
    Failed(ClientError),
    Other(Outcome),
}

/// An object under way.
pub(crate) struct Split {
    object: Object,
    /// Who may ask on each lane.
    turns: Vec<Arc<Turn<()>>>,
    board: Mutex<Board>,
    /// For workers that wait: the board has changed.
    changed: Notify,
    first: OnceLock<First>,
    /// Bytes.
    stored: AtomicU64,
}

type MyTurn = Option<OwnedMutexGuard<()>>;

impl Split {
    pub(crate) fn new(object: Object) -> Arc<Self> {
        let turns = object.lanes.iter().map(|_| Arc::default()).collect();
        Arc::new(Self {
            board: Mutex::new(Board::new(object.lanes.len(), object.ranges)),
            changed: Notify::new(),
            turns,
            object,
            first: OnceLock::new(),
            stored: AtomicU64::new(0),
        })
    }

    /// Bytes that were stored.
    pub(crate) fn stored(&self) -> u64 {
        self.stored.load(Relaxed)
    }

    /// The response that came first, if one came.
    pub(crate) fn first(&self) -> Option<First> {
        self.first.get().copied()
    }

    /// Sends the `requests`, at once; `begun` is the object's beginning, if it was asked for before.
    ///
    /// When this returns, nothing is written to the store any more.
    ///
    /// # Errors
    /// All lanes failed, or the store.
    pub(crate) async fn run(
        self: &Arc<Self>,
        requests: Vec<PlannedRequest>,
        begun: Option<Begun>,
    ) -> Result<Outcome, ClientError> {
        let mut workers = TaskSet::new(self.object.client.runtime());
        let now = self.object.client.runtime().now();
        if let Some(begun) = begun {
            let mut board = self.board();
            board.validator = begun.validator.clone();
            let claim = board.claim(begun.lane, 0..begun.end, now);
            board.answered(begun.lane, begun.asked, begun.at);
            drop(board);
            // Who begins later on this lane waits for its turn, but this one must not.
            let turn = Arc::clone(&self.turns[begun.lane]).try_lock_owned().ok();
            let split = Arc::clone(self);
            workers.spawn(async move {
                let stored = split.store(begun.download, claim, begun.end, turn);
                (begun.lane, split.settle(claim, stored).await)
            });
        }
        // Nobody looks for more before all of these are known.
        let claims: Vec<_> = requests
            .into_iter()
            .map(|request| {
                let range = request.range.unwrap_or(0..self.object.size);
                let claim = self.board().claim(request.connection, range, now);
                (request.connection, claim)
            })
            .collect();
        for (lane, claim) in claims {
            self.spawn(&mut workers, lane, Some(claim));
        }
        if self.object.ranges != Ranges::Equal {
            // While one response arrives, the next is asked for.
            let at_once = self.object.client.config().version.requests_at_once();
            for lane in (0..self.turns.len()).filter(|_| at_once > 1) {
                self.spawn(&mut workers, lane, None);
            }
        }
        let outcome = self.supervise(&mut workers).await;
        workers.end().await;
        outcome
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Self>, workers: &mut Workers, lane: usize, claim: Option<usize>) {
        let split = Arc::clone(self);
        workers.spawn(async move { (lane, split.work(lane, claim).await) });
    }

    async fn supervise(self: &Arc<Self>, workers: &mut Workers) -> Result<Outcome, ClientError> {
        while let Some(ended) = workers.join_next().await {
            let broken = |error: crate::tasks::Unfinished| mismatch(&error.to_string());
            match ended.map_err(broken)? {
                (_, Ok(())) => {}
                (_, Err(Stop::Other(outcome))) => return Ok(outcome),
                (_, Err(Stop::Failed(error))) => return Err(error),
                (_, Err(Stop::Lost(error))) => {
                    let live: Vec<_> = self.board().live().collect();
                    if live.is_empty() {
                        return Err(error);
                    }
                    for lane in live {
                        self.spawn(workers, lane, None);
                    }
                }
            }
        }
        match self.stored() == self.object.size {
            true => Ok(Outcome::Complete),
            false => Err(mismatch("the pieces do not add up")),
        }
    }

    /// Fetches the range of `claim`, then further ranges on `lane`.
    async fn work(&self, lane: usize, mut claim: Option<usize>) -> Result<(), Stop> {
        let runtime = self.object.client.runtime();
        loop {
            let turn = Arc::clone(&self.turns[lane]).lock_owned().await;
            let changed = self.changed.notified();
            let next = match claim.take() {
                Some(claim) => Next::Fetch(claim),
                None => self.board().next(lane, runtime.now()),
            };
            match next {
                Next::Fetch(claim) => self.settle(claim, self.fetch(lane, claim, turn)).await?,
                Next::Wait(most) => {
                    // Whoever has a claim on the lane goes first.
                    drop(turn);
                    // Changed or not, it is time to look.
                    let _ = runtime.timeout(most, changed).await;
                }
                Next::End => return Ok(()),
            }
        }
    }

    /// Waits for `work` on a claim, or until it is taken away; records on the board how that ended.
    async fn settle(
        &self,
        claim: usize,
        work: impl Future<Output = Result<(), Stop>>,
    ) -> Result<(), Stop> {
        let taken = Arc::clone(self.board().taken(claim));
        let result = tokio::select! {
            biased;
            () = taken.notified() => Ok(()),
            result = work => result,
        };
        match &result {
            Err(Stop::Lost(_)) => self.board().lose(claim),
            _ => self.board().complete(claim),
        }
        self.changed.notify_waiters();
        result
    }

    async fn fetch(
        &self,
        lane: usize,
        claim: usize,
        turn: OwnedMutexGuard<()>,
    ) -> Result<(), Stop> {
        let Object { client, uri, .. } = &self.object;
        let here = &self.object.lanes[lane];
        here.open(client).await.map_err(Stop::Lost)?;
        // It may be less than it was.
        let range = self.board().rest_of(claim);
        if range.is_empty() {
            return Ok(());
        }
        let mut headers = self.object.headers.clone();
        headers.insert(RANGE, range_header(range.start, Some(range.end - 1)));
        if let Some(validator) = &self.board().validator {
            headers.insert(IF_RANGE, validator.clone());
        }
        let asked = client.runtime().now();
        let answer = here.get(client, uri, &headers).await;
        let Answer {
            connection,
            response,
        } = answer.map_err(Stop::Lost)?;
        let now = client.runtime().now();
        self.board().answered(lane, asked, now);
        self.board().coordinated = client.config().bundle && connection.peer_coordinates_bundles();
        let _ = self.first.set(First {
            at: now,
            connection: connection.id,
            status: response.status(),
        });
        let download = self.check(&range, connection, response)?;
        self.store(download, claim, range.end, Some(turn)).await
    }

    /// The content of a response that fits.
    fn check(
        &self,
        range: &Range<u64>,
        connection: Arc<Connection>,
        response: Response<Download>,
    ) -> Result<Download, Stop> {
        let status = response.status();
        let expected = ContentRange {
            first: range.start,
            last: range.end - 1,
            size: Some(self.object.size),
        };
        let mut board = self.board();
        match (status, &board.validator) {
            (StatusCode::PARTIAL_CONTENT, known) => {
                let validator = Validator::of(response.headers()).0;
                let fits = match known {
                    Some(known) => validator.as_ref() == Some(known),
                    None => validator.is_some(),
                };
                if !fits || ContentRange::of(response.headers()) != Some(expected) {
                    return Err(Stop::Other(Outcome::Whole));
                }
                board.validator = validator;
                Ok(response.into_body())
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, _) | (StatusCode::OK, Some(_)) => {
                Err(Stop::Other(Outcome::Whole))
            }
            (_, None) => {
                let answer = Answer {
                    connection,
                    response,
                };
                Err(Stop::Other(Outcome::Instead(Box::new(answer))))
            }
            (status, Some(_)) => {
                let error = mismatch(&format!("{status} for {expected:?}"));
                Err(Stop::Lost(error))
            }
        }
    }

    /// Stores what comes of a claim, asked for up to `end`; lets others ask on its lane when little is left
    /// of it.
    async fn store(
        &self,
        mut download: Download,
        claim: usize,
        end: u64,
        mut turn: MyTurn,
    ) -> Result<(), Stop> {
        let mut next = None;
        loop {
            let chunk = match download.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) if next == Some(end) => return Ok(()),
                Ok(None) => return Err(Stop::Lost(mismatch("a short piece"))),
                Err(error) => return Err(Stop::Lost(error)),
            };
            let len = chunk.len() as u64;
            let now = self.object.client.runtime().now();
            let taken = self.board().arrived(claim, len, now);
            if len > end - taken.offset {
                return Err(Stop::Failed(mismatch("a piece is too long")));
            }
            let bytes = &chunk[..taken.bytes as usize];
            let written = self.object.store.write(taken.offset, bytes);
            written.map_err(Stop::Failed)?;
            self.stored.fetch_add(taken.bytes, Relaxed);
            next = Some(taken.offset + taken.bytes);
            if taken.stop {
                return Ok(());
            }
            if taken.ask {
                drop(turn.take());
            }
        }
    }
}

type Workers = TaskSet<(usize, Result<(), Stop>)>;

fn mismatch(what: &str) -> ClientError {
    ClientError::WrongRange(what.to_owned())
}

#[cfg(test)]
mod tests;
