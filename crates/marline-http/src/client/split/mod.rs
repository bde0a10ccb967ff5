//! One object over several connections: each fetches ranges of it.
//!
//! Every lane asks for a range, and once little of that is left, for the next, if there is one: no
//! connection idles for a round trip in between. What a lane that fails still owes goes to those that
//! live. A range that has begun is not taken from a lane that is merely slow: its bytes are on their way
//! already, and would come twice.
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
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use self::board::Board;
use self::pace::Pace;
use super::lane::Lane;
use super::plan::PlannedRequest;
use super::range::{ContentRange, range as range_header};
use super::save::Validator;
use super::{Client, ClientError, Connection, Download};
use crate::tasks::TaskSet;

/// How an object's bytes are shared out among connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ranges {
    /// One contiguous range for each connection, all of one size (mQUIC, section V-C). The object is
    /// complete when the slowest connection is.
    #[default]
    Equal,
    /// Smaller ranges, from the object's beginning on, to whichever connection is about to need one: fast
    /// connections fetch more, and all end together. The less is left, the smaller they are, down to
    /// 64 KiB, but never less than what arrives on the connection in a round trip or two.
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

/// What the requests are.
pub(crate) enum Work {
    /// These, at once.
    Planned(Vec<PlannedRequest>),
    /// Whatever is next of these bytes.
    Handed(Range<u64>),
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

/// A response, and where it came from.
pub(crate) struct Answer {
    pub(crate) connection: Arc<Connection>,
    pub(crate) response: Response<Download>,
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
    /// Its lane failed, and owes these bytes.
    Lost(Range<u64>, ClientError),
    /// No lane would do better.
    Failed(ClientError),
    Other(Outcome),
}

/// An object under way.
pub(crate) struct Split {
    object: Object,
    /// Who may ask on each lane.
    turns: Vec<Arc<Turn<Pace>>>,
    board: Mutex<Board>,
    first: OnceLock<First>,
    /// Bytes.
    stored: AtomicU64,
}

type MyTurn = Option<OwnedMutexGuard<Pace>>;

impl Split {
    pub(crate) fn new(object: Object) -> Arc<Self> {
        let turns = object.lanes.iter().map(|_| Arc::default()).collect();
        Arc::new(Self {
            board: Mutex::new(Board::new(object.lanes.len())),
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

    /// Does the work; `begun` is the object's beginning, if it was asked for before.
    ///
    /// When this returns, nothing is written to the store any more.
    ///
    /// # Errors
    /// All lanes failed, or the store.
    pub(crate) async fn run(
        self: &Arc<Self>,
        work: Work,
        begun: Option<Begun>,
    ) -> Result<Outcome, ClientError> {
        let mut workers = TaskSet::new(self.object.client.world());
        if let Some(begun) = begun {
            self.board().validator = begun.validator.clone();
            // Who begins later on this lane waits for its turn, but this one must not.
            let mut turn = Arc::clone(&self.turns[begun.lane]).try_lock_owned().ok();
            if let Some(pace) = &mut turn {
                pace.answered(begun.asked, begun.at);
            }
            let split = Arc::clone(self);
            workers.spawn(async move {
                let stored = split.store(begun.download, 0..begun.end, turn).await;
                (begun.lane, stored)
            });
        }
        match work {
            Work::Planned(requests) => {
                for request in requests {
                    let range = request.range.unwrap_or(0..self.object.size);
                    self.spawn(&mut workers, request.connection, Some(range));
                }
            }
            Work::Handed(range) => {
                self.board().give_back(range);
                // While one response arrives, the next is asked for.
                let at_once = self.object.client.config().version.requests_at_once();
                for _ in 0..at_once.min(2) {
                    for lane in 0..self.turns.len() {
                        self.spawn(&mut workers, lane, None);
                    }
                }
            }
        }
        let outcome = self.supervise(&mut workers).await;
        workers.end().await;
        outcome
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Self>, workers: &mut Workers, lane: usize, range: Option<Range<u64>>) {
        let split = Arc::clone(self);
        workers.spawn(async move { (lane, split.work(lane, range).await) });
    }

    async fn supervise(self: &Arc<Self>, workers: &mut Workers) -> Result<Outcome, ClientError> {
        while let Some(ended) = workers.join_next().await {
            let broken = |error: crate::tasks::Unfinished| mismatch(&error.to_string());
            match ended.map_err(broken)? {
                (_, Ok(())) => {}
                (_, Err(Stop::Other(outcome))) => return Ok(outcome),
                (_, Err(Stop::Failed(error))) => return Err(error),
                (lane, Err(Stop::Lost(range, error))) => {
                    let live = self.board().lose(lane, range);
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

    /// Fetches `range`, then what else is left.
    async fn work(&self, lane: usize, mut range: Option<Range<u64>>) -> Result<(), Stop> {
        loop {
            let turn = Arc::clone(&self.turns[lane]).lock_owned().await;
            let next = range.take();
            let next = next.or_else(|| self.board().take(lane, turn.ahead()));
            let Some(range) = next else { return Ok(()) };
            self.fetch(lane, range, turn).await?;
        }
    }

    async fn fetch(
        &self,
        lane: usize,
        range: Range<u64>,
        mut turn: OwnedMutexGuard<Pace>,
    ) -> Result<(), Stop> {
        let Object { client, uri, .. } = &self.object;
        let mut headers = self.object.headers.clone();
        headers.insert(RANGE, range_header(range.start, Some(range.end - 1)));
        if let Some(validator) = &self.board().validator {
            headers.insert(IF_RANGE, validator.clone());
        }
        let here = &self.object.lanes[lane];
        if let Err(error) = here.open(client).await {
            return Err(Stop::Lost(range, error));
        }
        let asked = client.world().now();
        let (connection, response) = match here.get(client, uri, &headers).await {
            Ok(answer) => answer,
            Err(error) => return Err(Stop::Lost(range, error)),
        };
        let now = client.world().now();
        turn.answered(asked, now);
        let _ = self.first.set(First {
            at: now,
            connection: connection.id,
            status: response.status(),
        });
        let download = self.check(&range, connection, response)?;
        self.store(download, range, Some(turn)).await
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
                Err(Stop::Lost(range.clone(), error))
            }
        }
    }

    /// Stores a range; lets others ask on its lane when little is left of it.
    async fn store(
        &self,
        mut download: Download,
        range: Range<u64>,
        mut turn: MyTurn,
    ) -> Result<(), Stop> {
        let mut offset = range.start;
        loop {
            let chunk = match download.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) if offset == range.end => break,
                Ok(None) => return Err(Stop::Lost(offset..range.end, mismatch("a short piece"))),
                Err(error) => return Err(Stop::Lost(offset..range.end, error)),
            };
            let len = chunk.len() as u64;
            if len > range.end - offset {
                return Err(Stop::Failed(mismatch("a piece is too long")));
            }
            self.object
                .store
                .write(offset, &chunk)
                .map_err(Stop::Failed)?;
            offset += len;
            self.stored.fetch_add(len, Relaxed);
            if let Some(pace) = &mut turn {
                pace.arrived(len, self.object.client.world().now());
                if range.end - offset <= pace.ahead() {
                    turn = None;
                }
            }
        }
        Ok(())
    }
}

type Workers = TaskSet<(usize, Result<(), Stop>)>;

fn mismatch(what: &str) -> ClientError {
    ClientError::WrongRange(what.to_owned())
}

#[cfg(test)]
mod tests;
