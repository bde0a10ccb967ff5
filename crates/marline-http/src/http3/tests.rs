//! A session over a transport that accepts nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use marline::{ConnectionError, Dir, Priority, ReadError, Side, StreamId, WriteError};
use marline_h3::{Config, ErrorCode};

use super::{Begun, BidiStream, QuicRecv, QuicSend, QuicTransport};
use crate::limits;

/// A connection whose peer sends nothing, and allows no stream.
#[derive(Clone, Default)]
struct Stuck {
    closed: Arc<AtomicU64>,
}

/// No stream exists.
enum Never {}

impl QuicTransport for Stuck {
    type Send = Never;
    type Recv = Never;

    fn poll_accept_bi(
        &self,
        _: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<Self>, ConnectionError>> {
        Poll::Pending
    }

    fn poll_accept_uni(&self, _: &mut Context<'_>) -> Poll<Result<Never, ConnectionError>> {
        Poll::Pending
    }

    fn poll_open_bi(&self, _: &mut Context<'_>) -> Poll<Result<BidiStream<Self>, ConnectionError>> {
        Poll::Pending
    }

    fn poll_open_uni(&self, _: &mut Context<'_>) -> Poll<Result<Never, ConnectionError>> {
        Poll::Pending
    }

    fn set_priority(&self, _: StreamId, _: Priority) {}

    fn close(&self, code: u64, _: &[u8]) {
        // The first one counts.
        let _ = self
            .closed
            .compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl QuicSend for Never {
    fn id(&self) -> StreamId {
        match *self {}
    }

    fn poll_write(&mut self, _: &mut Context<'_>, _: &mut Bytes) -> Poll<Result<(), WriteError>> {
        match *self {}
    }

    fn finish(&mut self) {
        match *self {}
    }

    fn reset(&mut self, _: u64) {
        match *self {}
    }

    fn poll_stopped(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<u64>, ConnectionError>> {
        match *self {}
    }
}

impl QuicRecv for Never {
    fn id(&self) -> StreamId {
        match *self {}
    }

    fn poll_read(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReadError>> {
        match *self {}
    }

    fn stop(&mut self, _: u64) {
        match *self {}
    }
}

/// Each request that is cancelled causes an instruction for QPACK's decoder stream.
#[test]
fn instructions_that_the_peer_does_not_accept_are_limited() {
    let transport = Stuck::default();
    let begun = Begun::on(transport.clone(), Side::Server, &Config::default());
    let closed = || transport.closed.load(Ordering::Relaxed);
    for index in 0..limits::MAX_QUEUED_INSTRUCTIONS as u64 {
        assert_eq!(closed(), 0, "{index}");
        let id = StreamId::new(Side::Client, Dir::Bi, index);
        begun.session.with(|state| {
            state.http3.on_request_stream(id);
            state.forget(id);
        });
        if closed() != 0 {
            assert!(index > 4000, "{index}");
            break;
        }
    }
    assert_eq!(closed(), ErrorCode::EXCESSIVE_LOAD.value());
}
