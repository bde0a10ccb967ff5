//! The responses that the client of a connection has received, as far as the system knows.
//!
//! ```text
//! Content -> Part -> hyper or h2, TLS -> Socket -> system -> client
//!    passed     taken           flushed          acknowledged
//! ```

mod content;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http::Response;
use slab::Slab;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

pub(super) use self::content::{Content, Part, Sending};
use self::content::{Outgoing, Streamed};
use super::super::progress::Progress;
use super::super::record::{Answer, Record};
use super::super::refusal::Refusal;
use crate::body::Body;
use crate::limits;
use crate::tcp::Acknowledged;

/// The responses of one connection whose end the client has not acknowledged. Cheap to clone.
#[derive(Clone)]
pub(in crate::server) struct Deliveries(Arc<Mutex<State>>);

struct State {
    progress: Arc<Progress>,
    /// Until it is closed.
    socket: Option<Watched>,
    /// Bytes that the system has taken.
    written: u64,
    /// Whether nothing was written since the latest flush.
    is_flushed: bool,
    responses: Slab<Delivery>,
    /// Responses so far.
    begun: u64,
    turns: Turns,
    /// Responses of which something was taken, or that have ended, since the last flush.
    unflushed: Vec<usize>,
    flushed: VecDeque<Flushed>,
    /// Ends of responses among them.
    ends: usize,
    /// The task of the connection.
    waker: Option<Waker>,
    /// Bytes of content that were passed to the connection, and that the client has not acknowledged.
    outstanding: u64,
    /// Whether the connection is closed for the client's behaviour.
    is_expelled: bool,
}

struct Watched {
    stream: Arc<TcpStream>,
    /// The system's count since before anything was written.
    count: Option<Acknowledged>,
}

impl Watched {
    /// Bytes of `written` that the client has acknowledged; all if the system does not know.
    fn acknowledged(&self, written: u64) -> u64 {
        let acknowledged = self.count.and_then(|count| count.since(&self.stream));
        acknowledged.map_or(written, |acknowledged| acknowledged.min(written))
    }
}

/// A response.
struct Delivery {
    /// Its number on the connection.
    number: u64,
    record: Record,
    /// Bytes that were passed to the connection, and that were not taken.
    untaken: u64,
    /// Whether the frame with its last bytes ends it, so that nothing follows.
    has_framed_end: bool,
    /// Whether its last bytes were passed to the connection as such.
    is_whole: bool,
    /// The end of its flushed bytes.
    offset: u64,
    /// Set while there are such bytes.
    turn: Option<Turn>,
    /// The task that waits for its end.
    waker: Option<Waker>,
    /// Whether it was abandoned.
    is_cut: bool,
    /// Bytes that were passed to the connection, and that the client has not acknowledged.
    outstanding: u64,
    /// Bytes that were taken since the last flush.
    taken: u64,
    has_ended: bool,
    is_listed: bool,
}

impl Delivery {
    /// Whether everything was flushed, although it may not have been dropped then.
    fn is_flushed(&self) -> bool {
        self.has_framed_end && self.is_whole && self.untaken == 0 && self.taken == 0
    }
}

/// Content of a connection that has moved so far.
#[derive(Clone, Copy, Default)]
struct Moved {
    /// Bytes that were taken.
    taken: u64,
    /// Bytes that the client has acknowledged.
    acknowledged: u64,
}

impl Moved {
    /// Bytes since `before`, whichever are more: with buffers of megabytes, those of minutes may be taken at once.
    fn since(self, before: Self) -> u64 {
        let taken = self.taken - before.taken;
        taken.max(self.acknowledged - before.acknowledged)
    }
}

/// The order in which responses wait for the connection, which serves them in turn.
#[derive(Default)]
struct Turns {
    moved: Moved,
    begun: u64,
    /// The latest response of which some was taken.
    served: u64,
    /// Waiting responses.
    waiting: u64,
}

impl Turns {
    /// The turn of a response that begins to wait.
    fn begin(&mut self) -> Turn {
        self.waiting += 1;
        Turn {
            number: self.next(),
            is_passed_over: false,
            since: Instant::now(),
            taken: 0,
            before: self.moved,
        }
    }

    fn end(&mut self, _turn: Turn) {
        self.waiting -= 1;
    }

    fn next(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }
}

/// The turn of a response that waits for the connection to take its bytes.
struct Turn {
    number: u64,
    /// Whether responses that began to wait later were served before it: then it does not wait for their turns.
    is_passed_over: bool,
    /// When it began to wait, or it or its connection last moved enough.
    since: Instant,
    /// Bytes that were taken since then.
    taken: u64,
    /// Content of the connection that had moved then.
    before: Moved,
}

impl Turn {
    /// Notes that `bytes` were taken.
    fn on_taken(&mut self, bytes: u64, turns: &mut Turns, min_bytes: u64) {
        self.is_passed_over = self.is_passed_over(turns);
        turns.served = turns.served.max(self.number);
        self.number = turns.next();
        self.taken += bytes;
        if self.taken >= min_bytes {
            self.restart(turns);
        }
    }

    fn restart(&mut self, turns: &Turns) {
        self.is_passed_over = false;
        self.since = Instant::now();
        self.taken = 0;
        self.before = turns.moved;
    }

    /// Whether it has waited for `limit` because of its own window, or on a connection that moves less than `min_bytes` for each
    /// waiting response. Otherwise it gets as much time again.
    fn is_stuck(&mut self, limit: Duration, turns: &Turns, min_bytes: u64) -> bool {
        if self.since.elapsed() < limit {
            return false;
        }
        let moved = turns.moved.since(self.before);
        if self.is_passed_over(turns) || moved < min_bytes.saturating_mul(turns.waiting) {
            return true;
        }
        self.restart(turns);
        false
    }

    /// Whether it is passed over, given `turns`. Each of the others may have been served in a few parts before it.
    fn is_passed_over(&self, turns: &Turns) -> bool {
        let served = turns.served.saturating_sub(self.number);
        self.is_passed_over || served > limits::PARTS_OF_TURN * turns.waiting
    }
}

/// A part of a response that the system has taken.
struct Flushed {
    response: usize,
    bytes: u64,
    is_end: bool,
    /// The client has it when it has acknowledged this many bytes of the connection.
    offset: u64,
}

impl Deliveries {
    pub(in crate::server) fn new(progress: Arc<Progress>) -> Self {
        Self(Arc::new(Mutex::new(State {
            progress,
            socket: None,
            written: 0,
            is_flushed: true,
            responses: Slab::new(),
            begun: 0,
            turns: Turns::default(),
            unflushed: Vec::new(),
            flushed: VecDeque::new(),
            ends: 0,
            waker: None,
            outstanding: 0,
            is_expelled: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches `stream`, to which nothing was written.
    pub(super) fn watch(&self, stream: &Arc<TcpStream>) {
        self.lock().socket = Some(Watched {
            stream: Arc::clone(stream),
            count: Acknowledged::begin(stream),
        });
    }

    /// Records `answer` when the client has received it, or will not.
    pub(super) fn follow(&self, answer: Answer) -> Response<Content> {
        let Answer { response, record } = answer;
        let outgoing = self.begin(record);
        response.map(|inner| Content::followed(inner, outgoing))
    }

    /// The same for content whose parts are written, and flushed, before the next is read.
    pub(super) fn follow_stream(&self, content: Body, record: Record) -> Body {
        Body::new(Streamed(Content::followed(content, self.begin(record))))
    }

    /// Records a response that was written already: `refusal` with this many `bytes` of content.
    pub(super) fn answered(&self, mut record: Record, refusal: Refusal, bytes: usize) {
        record.refuse(refusal);
        let outgoing = self.begin(record);
        outgoing.passed(bytes, true);
        outgoing.taken(bytes);
        drop(outgoing);
        self.settle();
    }

    fn begin(&self, record: Record) -> Arc<Outgoing> {
        let mut state = self.lock();
        state.begun += 1;
        let number = state.begun;
        let response = state.responses.insert(Delivery {
            number,
            record,
            untaken: 0,
            has_framed_end: false,
            is_whole: false,
            offset: 0,
            turn: None,
            waker: None,
            is_cut: false,
            outstanding: 0,
            taken: 0,
            has_ended: false,
            is_listed: false,
        });
        drop(state);
        Arc::new(Outgoing {
            deliveries: self.clone(),
            response,
            number,
        })
    }

    /// The system has taken `bytes` more.
    pub(super) fn written(&self, bytes: usize) {
        let mut state = self.lock();
        state.written += bytes as u64;
        state.is_flushed = false;
    }

    /// Bytes wait for the system to take them.
    pub(super) fn on_waiting(&self) {
        self.lock().is_flushed = false;
    }

    /// The system has taken all written bytes.
    pub(super) fn flushed(&self) {
        let mut state = self.lock();
        state.is_flushed = true;
        state.on_flushed();
        let many = state.flushed.len() >= limits::UNCONFIRMED_PARTS;
        drop(state);
        if many {
            self.refresh();
        }
    }

    /// Asks the system which bytes the client has acknowledged, and records responses that it has received. Returns the number of
    /// unacknowledged bytes of the connection.
    pub(super) fn refresh(&self) -> u64 {
        let Refreshed {
            received,
            lost,
            unacknowledged,
        } = self.lock().refresh();
        received.into_iter().for_each(Record::received);
        drop(lost);
        unacknowledged
    }

    /// Whether there are responses that have ended, for whose acknowledgment the task of `cx` waits.
    fn has_unconfirmed(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            waker => *waker = Some(cx.waker().clone()),
        }
        state.ends > 0 || state.is_flushed && !state.unflushed.is_empty()
    }

    /// Responses that have ended since the last flush are part of it, if nothing was written since: another task than that of the
    /// connection may have dropped already written parts.
    pub(super) fn settle(&self) {
        let mut state = self.lock();
        if state.is_flushed {
            state.on_flushed();
        }
    }

    /// The same for responses whose ends were flushed before they were dropped, also on a connection that has failed since.
    pub(super) fn settle_flushed(&self) {
        self.lock().on_flushed_if(Delivery::is_flushed);
    }

    /// Whether the system no longer knows the connection: it was reset, or both sides have closed it.
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        let socket = state.socket.as_ref();
        socket.is_none_or(|socket| socket.stream.peer_addr().is_err())
    }

    /// Marks the client as not worth waiting for.
    pub(super) fn expel(&self) {
        self.lock().is_expelled = true;
    }

    /// Whether the client is so marked.
    pub(super) fn is_expelled(&self) -> bool {
        self.lock().is_expelled
    }

    /// Records the other responses: the connection is closed.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        let Refreshed { received, lost, .. } = state.refresh();
        state.socket = None;
        let others: Vec<_> = state.responses.drain().collect();
        drop(state);
        received.into_iter().for_each(Record::received);
        drop((lost, others));
    }
}

/// Checks whether the client has received responses, at suitable intervals: the system sends no notification.
pub(super) struct Look {
    next: Option<Pin<Box<Sleep>>>,
    wait: Duration,
}

impl Look {
    pub(super) fn new() -> Self {
        Self {
            next: None,
            wait: limits::MIN_POLL_INTERVAL,
        }
    }

    /// Ready when there is nothing left to wait for.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, deliveries: &Deliveries) -> Poll<()> {
        while deliveries.has_unconfirmed(cx) {
            let wait = self.wait;
            let next = self.next.get_or_insert_with(|| Box::pin(sleep(wait)));
            ready!(next.as_mut().poll(cx));
            self.next = None;
            self.wait = (2 * self.wait).min(limits::MAX_POLL_INTERVAL);
            deliveries.settle();
            deliveries.refresh();
            // Asking the system costs as much as what it asks for: usually the client has everything.
            if deliveries.has_unconfirmed(cx) && deliveries.is_over() {
                break;
            }
        }
        *self = Self::new();
        Poll::Ready(())
    }
}

/// The result of asking the system.
struct Refreshed {
    /// The records of responses that the client has received.
    received: Vec<Record>,
    /// Those of others that have ended. They are recorded when they are dropped, without a lock.
    lost: Vec<Record>,
    /// Bytes of the connection that it has not acknowledged.
    unacknowledged: u64,
}

impl State {
    /// Changes a response, which will have something to flush.
    fn list(&mut self, response: usize, change: impl FnOnce(&mut Delivery)) {
        let Some(delivery) = self.responses.get_mut(response) else {
            return;
        };
        change(delivery);
        if !std::mem::replace(&mut delivery.is_listed, true) {
            self.unflushed.push(response);
        }
    }

    fn on_taken(&mut self, response: usize, bytes: u64) {
        let turns = &mut self.turns;
        let Some(delivery) = self.responses.get_mut(response) else {
            return;
        };
        delivery.untaken = delivery.untaken.saturating_sub(bytes);
        turns.moved.taken += bytes;
        self.progress.on_content(bytes);
        if let Some(turn) = &mut delivery.turn {
            turn.on_taken(bytes, turns, self.progress.min_bytes());
        }
        if delivery.untaken == 0
            && let Some(turn) = delivery.turn.take()
        {
            turns.end(turn);
        }
        self.list(response, |delivery| delivery.taken += bytes);
    }

    fn on_flushed(&mut self) {
        self.on_flushed_if(|_| true);
    }

    /// The same for responses that are `chosen`.
    fn on_flushed_if(&mut self, chosen: impl Fn(&Delivery) -> bool) {
        for response in std::mem::take(&mut self.unflushed) {
            let Some(delivery) = self.responses.get_mut(response) else {
                continue;
            };
            if !chosen(delivery) {
                self.unflushed.push(response);
                continue;
            }
            delivery.is_listed = false;
            if !delivery.is_flushed() {
                delivery.offset = self.written;
            }
            self.ends += usize::from(delivery.has_ended);
            let part = Flushed {
                response,
                bytes: std::mem::take(&mut delivery.taken),
                is_end: delivery.has_ended,
                offset: delivery.offset,
            };
            let earlier = |other: &Flushed| other.offset <= part.offset;
            let place = self.flushed.partition_point(earlier);
            self.flushed.insert(place, part);
        }
    }

    fn refresh(&mut self) -> Refreshed {
        let (mut received, mut lost) = (Vec::new(), Vec::new());
        let Some(socket) = &self.socket else {
            return Refreshed {
                received,
                lost,
                unacknowledged: 0,
            };
        };
        let acknowledged = socket.acknowledged(self.written);
        let mut is_news = false;
        let is_received = |part: &Flushed| part.offset <= acknowledged;
        while self.flushed.front().is_some_and(is_received) {
            let Some(part) = self.flushed.pop_front() else {
                break;
            };
            is_news = true;
            self.ends -= usize::from(part.is_end);
            let Some(delivery) = self.responses.get_mut(part.response) else {
                continue;
            };
            delivery.record.confirm(part.bytes);
            self.turns.moved.acknowledged += part.bytes;
            self.progress.on_content(part.bytes);
            delivery.outstanding = delivery.outstanding.saturating_sub(part.bytes);
            self.outstanding = self.outstanding.saturating_sub(part.bytes);
            if part.is_end {
                let Delivery {
                    record,
                    outstanding,
                    is_cut,
                    ..
                } = self.responses.remove(part.response);
                self.outstanding = self.outstanding.saturating_sub(outstanding);
                // Otherwise its stream or its connection was reset.
                match outstanding == 0 && !is_cut {
                    true => received.push(record),
                    false => lost.push(record),
                }
            }
        }
        if is_news && self.outstanding == 0 {
            // However little it was: the client waits for the site.
            self.progress.advance();
        }
        Refreshed {
            received,
            lost,
            unacknowledged: self.written - acknowledged,
        }
    }
}
