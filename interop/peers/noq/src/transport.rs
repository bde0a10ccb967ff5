//! Implements h3's transport traits for noq.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    self, BidiStream, ConnectionErrorIncoming, OpenStreams, RecvStream, SendStream,
    StreamErrorIncoming, StreamId, WriteBuf,
};
use noq::{ConnectionError, ReadError, VarInt, WriteError};

/// Bytes read from a stream at once.
const READ_SIZE: usize = 16 * 1024;

type Pair = (noq::SendStream, noq::RecvStream);
type Pending<T> = Option<Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send>>>;

/// Polls the future in `slot`, created by `start` if there is none.
fn poll_slot<T, F>(
    slot: &mut Pending<T>,
    start: impl FnOnce() -> F,
    cx: &mut Context<'_>,
) -> Poll<Result<T, ConnectionErrorIncoming>>
where
    F: Future<Output = Result<T, ConnectionError>> + Send + 'static,
{
    let future = slot.get_or_insert_with(|| Box::pin(start()));
    let result = ready!(future.as_mut().poll(cx));
    *slot = None;
    Poll::Ready(result.map_err(connection_error))
}

/// A noq connection.
pub(crate) struct Transport {
    opener: Opener,
    accept_bidi: Pending<Pair>,
    accept_uni: Pending<noq::RecvStream>,
}

impl Transport {
    pub(crate) fn new(connection: noq::Connection) -> Self {
        Self {
            opener: Opener::new(connection),
            accept_bidi: None,
            accept_uni: None,
        }
    }
}

impl<B: Buf> quic::Connection<B> for Transport {
    type RecvStream = Receiving;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Receiving, ConnectionErrorIncoming>> {
        let connection = &self.opener.connection;
        let start = || {
            let connection = connection.clone();
            async move { connection.accept_uni().await }
        };
        poll_slot(&mut self.accept_uni, start, cx).map_ok(Receiving)
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bidi<B>, ConnectionErrorIncoming>> {
        let connection = &self.opener.connection;
        let start = || {
            let connection = connection.clone();
            async move { connection.accept_bi().await }
        };
        poll_slot(&mut self.accept_bidi, start, cx).map_ok(Bidi::new)
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl<B: Buf> OpenStreams<B> for Transport {
    type BidiStream = Bidi<B>;
    type SendStream = Sending<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bidi<B>, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Sending<B>, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

/// Opens streams on a noq connection.
pub(crate) struct Opener {
    connection: noq::Connection,
    open_bidi: Pending<Pair>,
    open_uni: Pending<noq::SendStream>,
}

impl Opener {
    fn new(connection: noq::Connection) -> Self {
        Self {
            connection,
            open_bidi: None,
            open_uni: None,
        }
    }
}

impl Clone for Opener {
    fn clone(&self) -> Self {
        Self::new(self.connection.clone())
    }
}

impl<B: Buf> OpenStreams<B> for Opener {
    type BidiStream = Bidi<B>;
    type SendStream = Sending<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bidi<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let start = || {
            let connection = connection.clone();
            async move { connection.open_bi().await }
        };
        poll_slot(&mut self.open_bidi, start, cx)
            .map_ok(Bidi::new)
            .map_err(lost)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Sending<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let start = || {
            let connection = connection.clone();
            async move { connection.open_uni().await }
        };
        poll_slot(&mut self.open_uni, start, cx)
            .map_ok(Sending::new)
            .map_err(lost)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(varint(code.value()), reason);
    }
}

/// Both halves of a bidirectional stream.
pub(crate) struct Bidi<B> {
    send: Sending<B>,
    recv: Receiving,
}

impl<B: Buf> Bidi<B> {
    fn new((send, recv): Pair) -> Self {
        Self {
            send: Sending::new(send),
            recv: Receiving(recv),
        }
    }
}

impl<B: Buf> BidiStream<B> for Bidi<B> {
    type SendStream = Sending<B>;
    type RecvStream = Receiving;

    fn split(self) -> (Sending<B>, Receiving) {
        (self.send, self.recv)
    }
}

impl<B: Buf> SendStream<B> for Bidi<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> RecvStream for Bidi<B> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

/// The receiving half of a stream.
pub(crate) struct Receiving(noq::RecvStream);

impl RecvStream for Receiving {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let mut buffer = vec![0; READ_SIZE];
        let length = ready!(self.0.poll_read(cx, &mut buffer)).map_err(|error| match error {
            ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated {
                error_code: code.into_inner(),
            },
            ReadError::ConnectionLost(error) => lost(connection_error(error)),
            other => StreamErrorIncoming::Unknown(Box::new(other)),
        })?;
        buffer.truncate(length);
        Poll::Ready(Ok((length > 0).then(|| buffer.into())))
    }

    fn stop_sending(&mut self, error_code: u64) {
        // A finished stream needs no STOP_SENDING.
        let _ = self.0.stop(varint(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.0.id())
    }
}

/// The sending half of a stream.
pub(crate) struct Sending<B> {
    stream: noq::SendStream,
    writing: Option<WriteBuf<B>>,
}

impl<B> Sending<B> {
    fn new(stream: noq::SendStream) -> Self {
        Self {
            stream,
            writing: None,
        }
    }
}

impl<B: Buf> SendStream<B> for Sending<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if let Some(data) = &mut self.writing {
            while data.has_remaining() {
                let stream = Pin::new(&mut self.stream);
                let written = ready!(stream.poll_write(cx, data.chunk())).map_err(write_error)?;
                data.advance(written);
            }
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let finished = self.stream.finish();
        Poll::Ready(finished.map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, reset_code: u64) {
        // A finished stream needs no reset.
        let _ = self.stream.reset(varint(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => ConnectionErrorIncoming::ApplicationClose {
            error_code: close.error_code.into_inner(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn lost(connection_error: ConnectionErrorIncoming) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        WriteError::ConnectionLost(error) => lost(connection_error(error)),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

fn varint(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

/// Both sides keep stream IDs below 2^62 (RFC 9000, section 2.1).
fn stream_id(id: noq::StreamId) -> StreamId {
    let Ok(id) = StreamId::try_from(u64::from(id)) else {
        unreachable!("a stream ID of 2^62 or more");
    };
    id
}
