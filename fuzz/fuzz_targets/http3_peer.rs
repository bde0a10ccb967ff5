//! An in-memory client without logic: the streams that h3 accepts, reads and writes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

/// Both ends of the connection: the target writes as the client, h3 reads as the server.
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
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        let mut state = self.state();
        if let Some(id) = arrived(&mut state).pop_front() {
            let peer = self.clone();
            return Poll::Ready(Ok(Stream { peer, id }));
        }
        state.closed_or_later(cx).map(Err)
    }
}

impl State {
    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    fn closed_or_later(&mut self, cx: &Context<'_>) -> Poll<ConnectionErrorIncoming> {
        if self.closed {
            return Poll::Ready(ConnectionErrorIncoming::Timeout);
        }
        if !self.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

fn lost(connection_error: ConnectionErrorIncoming) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error }
}

/// A stream, or either half of it.
pub struct Stream {
    peer: Peer,
    id: u64,
}

impl Stream {
    fn stream_id(&self) -> StreamId {
        StreamId::try_from(self.id).expect("the target numbers few streams")
    }
}

impl quic::OpenStreams<Bytes> for Peer {
    type BidiStream = Stream;
    type SendStream = Stream;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Stream, StreamErrorIncoming>> {
        unreachable!("servers open no requests")
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Stream, StreamErrorIncoming>> {
        let mut state = self.state();
        if state.closed {
            return state.closed_or_later(cx).map(lost).map(Err);
        }
        let id = state.opened_uni * 4 + 3;
        state.opened_uni += 1;
        state.streams.entry(id).or_default();
        let peer = self.clone();
        Poll::Ready(Ok(Stream { peer, id }))
    }

    fn close(&mut self, _: Code, _: &[u8]) {
        Self::close(self);
    }
}

impl quic::Connection<Bytes> for Peer {
    type RecvStream = Stream;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        self.poll_accept(cx, |state| &mut state.arrived_uni)
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        self.poll_accept(cx, |state| &mut state.arrived_bidi)
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

impl quic::RecvStream for Stream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let mut state = self.peer.state();
        let stream = state.streams.entry(self.id).or_default();
        if let Some(error_code) = stream.reset {
            return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated { error_code }));
        }
        if let Some(chunk) = stream.chunks.pop_front() {
            return Poll::Ready(Ok(Some(chunk)));
        }
        if stream.fin {
            return Poll::Ready(Ok(None));
        }
        state.closed_or_later(cx).map(lost).map(Err)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.peer.reset(self.id, error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.stream_id()
    }
}

impl quic::SendStream<Bytes> for Stream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let mut state = self.peer.state();
        let stream = state.streams.entry(self.id).or_default();
        if let Some(error_code) = stream.stopped {
            return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated { error_code }));
        }
        if !stream.blocked && !state.closed {
            return Poll::Ready(Ok(()));
        }
        state.closed_or_later(cx).map(lost).map(Err)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        let mut data = data.into();
        data.advance(data.remaining());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.poll_ready(cx)
    }

    fn reset(&mut self, _: u64) {}

    fn send_id(&self) -> StreamId {
        self.stream_id()
    }
}

impl quic::BidiStream<Bytes> for Stream {
    type SendStream = Self;
    type RecvStream = Self;

    fn split(self) -> (Self, Self) {
        let send = Self {
            peer: self.peer.clone(),
            id: self.id,
        };
        (send, self)
    }
}
