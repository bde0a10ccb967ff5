//! The state of an HTTP/3 connection that its requests and its driver share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use bytes::Bytes;
use marline::ReadError;
use marline_h3::{Config, Error, ErrorCode, Side, StreamEvent, StreamId, Transmit};

use super::datagrams::{Received, Receiving};
use super::error::RequestError;
use super::transport::QuicTransport;
use crate::limits;

/// An HTTP/3 connection. Clones are the same connection, which is closed when the last one and the last request are
/// dropped.
pub(crate) struct Session<C: QuicTransport> {
    shared: Arc<Shared<C>>,
    /// `None` at the driver, which does not keep the connection open.
    user: Option<Arc<User<C>>>,
}

/// Closes the connection when it is no longer used.
struct User<C: QuicTransport>(Arc<Shared<C>>);

impl<C: QuicTransport> Drop for User<C> {
    fn drop(&mut self) {
        self.0.transport.close(ErrorCode::NO_ERROR.value(), b"");
    }
}

struct Shared<C> {
    transport: C,
    side: Side,
    /// Whether this end has announced that it accepts HTTP datagrams.
    takes_datagrams: bool,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) http3: marline_h3::Connection,
    /// Bytes for this end's unidirectional streams.
    transmits: VecDeque<Transmit>,
    /// Their size in memory, in bytes.
    queued: usize,
    /// Tasks that read requests.
    readers: BTreeMap<StreamId, Waker>,
    /// Requests whose datagrams are received.
    datagrams: BTreeMap<StreamId, Receiving>,
    /// Those of requests that have ended.
    ended_datagrams: Vec<Receiving>,
    /// The task that drives the connection.
    driver: Option<Waker>,
    /// Wakers that are dropped after the lock was released: one may own a task, and the task a stream, whose drop
    /// takes the lock.
    retired: Vec<Waker>,
    /// The peer's protocol violation, if there was one.
    error: Option<Error>,
    /// Why the connection has ended, once the driver knows it.
    ended: Option<RequestError>,
    /// Bytes that were read since the last progress of a request, with what reading them costs.
    idle_bytes: u64,
    /// The limit of `idle_bytes`.
    max_idle_bytes: u64,
}

/// The next step of the reader of a request.
pub(super) enum Step {
    /// Report this event.
    Event {
        event: StreamEvent,
        /// Whether nothing else is left to report before more is read.
        is_last: bool,
    },
    /// Read from the stream.
    Read,
    /// Wait to be woken, without reading.
    Wait,
    /// End with this error.
    Over(RequestError),
}

/// Lets the requests of `ended` know that no more datagrams arrive.
fn end_all(ended: impl IntoIterator<Item = Receiving>) {
    let receiving = ended.into_iter().filter_map(|one| one.upgrade());
    receiving.for_each(|received| received.end());
}

/// The memory of `transmit` in bytes, approximately.
fn cost(transmit: &Transmit) -> usize {
    transmit.bytes.len() + size_of::<Transmit>()
}

impl<C: QuicTransport> Clone for Session<C> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            user: self.user.clone(),
        }
    }
}

impl State {
    /// Something was read from a stream.
    ///
    /// # Errors
    /// Too much arrives without progress of a request: unknown frames, GOAWAY, empty DATA.
    pub(super) fn on_read(&mut self, read: &Result<Option<Bytes>, ReadError>) -> Result<(), Error> {
        let bytes = match read {
            Ok(Some(bytes)) => bytes.len(),
            _ => 0,
        };
        self.idle_bytes += (bytes + limits::READ_COST) as u64;
        match self.idle_bytes > self.max_idle_bytes {
            true => Err(Error::new(
                ErrorCode::EXCESSIVE_LOAD,
                "too much arrives without a response or its content",
            )),
            false => Ok(()),
        }
    }

    /// The next step of the reader of a request, which is woken when that changes for another reason than bytes on the
    /// stream.
    pub(super) fn next_step(&mut self, id: StreamId, cx: &Context<'_>) -> Step {
        if let Some(event) = self.http3.poll_stream(id) {
            if matches!(event, StreamEvent::Response(_) | StreamEvent::Data(_)) {
                self.idle_bytes = 0;
            }
            let is_last = !self.http3.has_stream_events(id) && !self.http3.is_blocked(id);
            return Step::Event { event, is_last };
        }
        if let Some(error) = self.error {
            return Step::Over(error.into());
        }
        // Data that arrived before the end can still be read, unless it waits for instructions that
        // will not arrive.
        let is_blocked = self.http3.is_blocked(id);
        if let Some(error) = self.ended.as_ref().filter(|_| is_blocked) {
            return Step::Over(error.clone());
        }
        let waker = cx.waker();
        if !self
            .readers
            .get(&id)
            .is_some_and(|known| known.will_wake(waker))
        {
            let known = self.readers.insert(id, waker.clone());
            self.retired.extend(known);
        }
        match is_blocked {
            true => Step::Wait,
            false => Step::Read,
        }
    }

    /// The next bytes for this end's unidirectional streams.
    pub(super) fn take_transmit(&mut self) -> Option<Transmit> {
        let transmit = self.transmits.pop_front()?;
        self.queued -= cost(&transmit);
        Some(transmit)
    }

    /// Whether the peer makes this end queue more than it accepts, and that was not detected
    /// before.
    fn is_overloaded(&self) -> bool {
        self.queued > limits::MAX_QUEUED_INSTRUCTIONS && self.error.is_none()
    }

    /// The task of `cx` drives the connection.
    pub(super) fn set_driver(&mut self, cx: &Context<'_>) {
        let known = self.driver.replace(cx.waker().clone());
        self.retired.extend(known);
    }

    /// The task that reads a request, if it waits.
    pub(super) fn take_reader(&mut self, id: StreamId) -> Option<Waker> {
        self.readers.remove(&id)
    }

    /// The stream is no longer needed.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.http3.forget(id);
        let reader = self.readers.remove(&id);
        self.retired.extend(reader);
        self.ended_datagrams.extend(self.datagrams.remove(&id));
    }

    /// Datagrams of the request on this stream are for `received`.
    pub(super) fn receive_datagrams(&mut self, id: StreamId, received: &Arc<Received>) {
        let receiving = Arc::downgrade(received);
        match self.ended {
            None => self.datagrams.insert(id, receiving),
            Some(_) => {
                self.ended_datagrams.push(receiving);
                None
            }
        };
    }

    /// The queue for datagrams of the request on this stream, if they are received.
    pub(super) fn datagrams_of(&self, id: StreamId) -> Option<Receiving> {
        self.datagrams.get(&id).cloned()
    }

    /// Collects the bytes to send on this end's own streams.
    fn collect(&mut self) -> Option<Waker> {
        while let Some(transmit) = self.http3.poll_transmit() {
            self.queued += cost(&transmit);
            self.transmits.push_back(transmit);
        }
        match self.transmits.is_empty() {
            true => None,
            false => self.driver.take(),
        }
    }
}

impl<C: QuicTransport> Session<C> {
    /// A connection of which nothing was sent.
    pub(super) fn new(transport: C, side: Side, config: &Config) -> Self {
        let shared = Arc::new(Shared {
            transport,
            side,
            takes_datagrams: config.h3_datagram,
            state: Mutex::new(State {
                http3: marline_h3::Connection::new(side, config),
                transmits: VecDeque::new(),
                queued: 0,
                readers: BTreeMap::new(),
                datagrams: BTreeMap::new(),
                ended_datagrams: Vec::new(),
                driver: None,
                retired: Vec::new(),
                error: None,
                ended: None,
                idle_bytes: 0,
                max_idle_bytes: match side {
                    Side::Client => limits::MAX_IDLE_BYTES,
                    // The server has limits of its own for what clients send.
                    Side::Server => u64::MAX,
                },
            }),
        });
        Self {
            user: Some(Arc::new(User(Arc::clone(&shared)))),
            shared,
        }
    }

    /// The same connection, without keeping it open.
    pub(super) fn passive(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            user: None,
        }
    }

    pub(super) fn transport(&self) -> &C {
        &self.shared.transport
    }

    pub(super) fn side(&self) -> Side {
        self.shared.side
    }

    /// Runs `call` on the state, then wakes the driver if there is something to send.
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = call(&mut state);
        let driver = state.collect();
        let retired = std::mem::take(&mut state.retired);
        let ended = std::mem::take(&mut state.ended_datagrams);
        let is_overloaded = state.is_overloaded();
        drop(state);
        drop(retired);
        end_all(ended);
        if is_overloaded {
            self.fail(Error::new(
                ErrorCode::EXCESSIVE_LOAD,
                "the control and QPACK streams are not read",
            ));
        }
        driver.into_iter().for_each(Waker::wake);
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes the result of a read from a request stream; returns the next step of its reader.
    pub(super) fn receive(
        &self,
        id: StreamId,
        read: Result<Option<Bytes>, ReadError>,
        cx: &Context<'_>,
    ) -> Step {
        let received = self.with(|state| {
            state.on_read(&read)?;
            match read {
                Ok(Some(bytes)) => state.http3.on_stream_data(id, bytes, false)?,
                Ok(None) => state.http3.on_stream_data(id, Bytes::new(), true)?,
                Err(ReadError::Reset(code)) => state.http3.on_reset(id, code)?,
                Err(error) => return Ok(Step::Over(error.into())),
            }
            Ok(state.next_step(id, cx))
        });
        match received {
            Ok(Step::Over(error)) => Step::Over(self.explain(error)),
            Ok(step) => step,
            Err(error) => {
                self.fail(error);
                Step::Over(error.into())
            }
        }
    }

    /// The peer violated the protocol: closes the connection.
    pub(super) fn fail(&self, error: Error) {
        self.lock().error.get_or_insert(error);
        self.close(error.code(), &error.reason().to_string());
        self.end(error.into());
    }

    /// Closes the connection.
    pub(crate) fn close(&self, code: ErrorCode, reason: &str) {
        self.shared.transport.close(code.value(), reason.as_bytes());
    }

    /// The connection has ended, or is no longer driven: wakes all tasks.
    pub(super) fn end(&self, error: RequestError) {
        let mut state = self.lock();
        state.ended.get_or_insert(error);
        let readers = std::mem::take(&mut state.readers);
        let datagrams = std::mem::take(&mut state.datagrams);
        let driver = state.driver.take();
        drop(state);
        end_all(datagrams.into_values());
        readers.into_values().chain(driver).for_each(Waker::wake);
    }

    /// The cause of `error`: the peer's protocol violation, if that ended the connection.
    pub(super) fn explain(&self, error: RequestError) -> RequestError {
        match (&error, self.lock().error) {
            (RequestError::Lost(_), Some(cause)) => cause.into(),
            _ => error,
        }
    }

    /// Whether no more requests can be sent: the server is going away, or violated the protocol.
    pub(crate) fn is_ending(&self) -> bool {
        let state = self.lock();
        state.http3.is_peer_going_away() || state.error.is_some()
    }

    /// Whether the server has announced that it accepts extended CONNECT.
    pub(crate) fn accepts_extended_connect(&self) -> bool {
        self.lock().http3.peer_settings().enable_connect_protocol
    }

    /// Whether this end has announced that it accepts HTTP datagrams (RFC 9297).
    pub(crate) fn takes_datagrams(&self) -> bool {
        self.shared.takes_datagrams
    }

    /// Whether both ends have announced that they accept HTTP datagrams.
    pub(super) fn accepts_datagrams(&self) -> bool {
        self.takes_datagrams() && self.lock().http3.peer_settings().h3_datagram
    }

    /// Lets the client know that [`go_away`](Self::go_away) follows.
    pub(crate) fn announce_going_away(&self) {
        self.with(|state| state.http3.announce_going_away());
    }

    /// Accepts no more requests from now on.
    pub(crate) fn go_away(&self) {
        self.with(|state| state.http3.go_away());
    }
}
