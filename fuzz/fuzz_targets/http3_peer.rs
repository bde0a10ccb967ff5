//! An in-memory client without logic: the streams that the server accepts, reads and writes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use marline::{ConnectionError, Priority, ReadError, StreamId, WriteError};
use marline_http::http3::{BidiStream, QuicRecv, QuicSend, QuicTransport};

/// Both ends of the connection: the target writes as the client, the server reads.
#[derive(Clone, Default)]
pub struct Peer(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    streams: BTreeMap<u64, Halves>,
    arrived_uni: VecDeque<u64>,
    arrived_bidi: VecDeque<u64>,
    opened_uni: u64,
    closed: bool,
    wakers: Vec<Waker>,
}

#[derive(Default)]
struct Halves {
    chunks: VecDeque<Bytes>,
    fin: bool,
    reset: Option<u64>,
    /// Whether flow control blocks the response.
    blocked: bool,
    stopped: Option<u64>,
    /// Whether the server has ended the response.
    finished: bool,
}

impl Peer {
    /// Sends `chunk` on a client-initiated stream; the first chunk opens it.
    pub fn send(&self, id: u64, chunk: Bytes) {
        self.write(id, |stream| {
            // Streams never return empty chunks.
            if !chunk.is_empty() {
                stream.chunks.push_back(chunk);
            }
        });
    }

    /// Finishes the client's sending part of a stream.
    pub fn finish(&self, id: u64) {
        self.write(id, |stream| stream.fin = true);
    }

    /// Resets the client's sending part of a stream.
    pub fn reset(&self, id: u64, code: u64) {
        self.write(id, |stream| stream.reset = Some(code));
    }

    /// Sends STOP_SENDING for the server's sending part.
    pub fn stop(&self, id: u64, code: u64) {
        self.change(id, |stream| stream.stopped = Some(code));
    }

    /// Closes or opens the flow control window of the server's sending part.
    pub fn block(&self, id: u64, blocked: bool) {
        self.change(id, |stream| stream.blocked = blocked);
    }

    /// Closes the connection.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.wake();
    }

    /// Nothing follows the end of a stream.
    fn write(&self, id: u64, write: impl FnOnce(&mut Halves)) {
        self.change(id, |stream| {
            if !stream.fin && stream.reset.is_none() {
                write(stream);
            }
        });
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Halves)) {
        let mut state = self.state();
        if !state.streams.contains_key(&id) {
            match id & 2 {
                0 => state.arrived_bidi.push_back(id),
                _ => state.arrived_uni.push_back(id),
            }
        }
        change(state.streams.entry(id).or_default());
        state.wake();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic is survived")
    }

    fn poll_accept(
        &self,
        cx: &mut Context<'_>,
        arrived: impl FnOnce(&mut State) -> &mut VecDeque<u64>,
    ) -> Poll<Result<u64, ConnectionError>> {
        let mut state = self.state();
        if let Some(id) = arrived(&mut state).pop_front() {
            return Poll::Ready(Ok(id));
        }
        state.closed_or_later(cx).map(Err)
    }

    fn stream(&self, id: u64) -> Stream {
        let peer = self.clone();
        Stream { peer, id }
    }
}

impl State {
    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    fn closed_or_later(&mut self, cx: &Context<'_>) -> Poll<ConnectionError> {
        if self.closed {
            return Poll::Ready(ConnectionError::IdleTimeout);
        }
        if !self.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// One direction of a stream.
pub struct Stream {
    peer: Peer,
    id: u64,
}

impl QuicTransport for Peer {
    type Send = Stream;
    type Recv = Stream;

    fn poll_accept_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<Self>, ConnectionError>> {
        let accepted = self.poll_accept(cx, |state| &mut state.arrived_bidi);
        accepted.map_ok(|id| BidiStream {
            send: self.stream(id),
            recv: self.stream(id),
        })
    }

    fn poll_accept_uni(&self, cx: &mut Context<'_>) -> Poll<Result<Stream, ConnectionError>> {
        let accepted = self.poll_accept(cx, |state| &mut state.arrived_uni);
        accepted.map_ok(|id| self.stream(id))
    }

    fn poll_open_bi(&self, _: &mut Context<'_>) -> Poll<Result<BidiStream<Self>, ConnectionError>> {
        unreachable!("servers open no requests")
    }

    fn poll_open_uni(&self, cx: &mut Context<'_>) -> Poll<Result<Stream, ConnectionError>> {
        let mut state = self.state();
        if state.closed {
            return state.closed_or_later(cx).map(Err);
        }
        let id = state.opened_uni * 4 + 3;
        state.opened_uni += 1;
        state.streams.entry(id).or_default();
        Poll::Ready(Ok(self.stream(id)))
    }

    fn set_priority(&self, _: StreamId, _: Priority) {}

    fn close(&self, _: u64, _: &[u8]) {
        Self::close(self);
    }
}

impl QuicRecv for Stream {
    fn id(&self) -> StreamId {
        self.id.into()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReadError>> {
        let mut state = self.peer.state();
        let stream = state.streams.entry(self.id).or_default();
        if let Some(code) = stream.reset {
            return Poll::Ready(Err(ReadError::Reset(code)));
        }
        if let Some(chunk) = stream.chunks.pop_front() {
            return Poll::Ready(Ok(Some(chunk)));
        }
        if stream.fin {
            return Poll::Ready(Ok(None));
        }
        let ended = state.closed_or_later(cx);
        ended.map(|error| Err(ReadError::ConnectionLost(error)))
    }

    fn stop(&mut self, code: u64) {
        self.peer.reset(self.id, code);
    }
}

impl QuicSend for Stream {
    fn id(&self) -> StreamId {
        self.id.into()
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<Result<(), WriteError>> {
        let mut state = self.peer.state();
        let stream = state.streams.entry(self.id).or_default();
        if let Some(code) = stream.stopped {
            return Poll::Ready(Err(WriteError::Stopped(code)));
        }
        if !stream.blocked && !state.closed {
            bytes.clear();
            return Poll::Ready(Ok(()));
        }
        let ended = state.closed_or_later(cx);
        ended.map(|error| Err(WriteError::ConnectionLost(error)))
    }

    fn finish(&mut self) {
        self.peer
            .state()
            .streams
            .entry(self.id)
            .or_default()
            .finished = true;
    }

    fn reset(&mut self, _: u64) {}

    fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, ConnectionError>> {
        let mut state = self.peer.state();
        let stream = state.streams.entry(self.id).or_default();
        if let Some(code) = stream.stopped {
            return Poll::Ready(Ok(Some(code)));
        }
        // What was written is received at once.
        if stream.finished && !stream.blocked {
            return Poll::Ready(Ok(None));
        }
        state.closed_or_later(cx).map(Err)
    }
}
