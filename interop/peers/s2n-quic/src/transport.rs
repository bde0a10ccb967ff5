//! Implements h3's transport traits for s2n-quic.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    self, BidiStream, ConnectionErrorIncoming, OpenStreams, RecvStream, SendStream,
    StreamErrorIncoming, StreamId, WriteBuf,
};
use s2n_quic::application;
use s2n_quic::connection::{Error as ConnectionError, Handle, StreamAcceptor};
use s2n_quic::stream::{BidirectionalStream, Error as StreamError, ReceiveStream};

type Connecting<T> = Poll<Result<T, ConnectionErrorIncoming>>;
type Streaming<T> = Poll<Result<T, StreamErrorIncoming>>;

/// A connection of s2n-quic.
pub(crate) struct Transport {
    acceptor: StreamAcceptor,
    opener: Opener,
}

impl Transport {
    pub(crate) fn new(connection: s2n_quic::Connection) -> Self {
        let (handle, acceptor) = connection.split();
        Self {
            acceptor,
            opener: Opener(handle),
        }
    }
}

/// The accepted stream; `None` means that the connection was closed without an error.
fn accepted<T>(result: Result<Option<T>, ConnectionError>) -> Result<T, ConnectionErrorIncoming> {
    result
        .map_err(connection_error)?
        .ok_or(ConnectionErrorIncoming::ApplicationClose {
            error_code: Code::H3_NO_ERROR.value(),
        })
}

impl<B: Buf> quic::Connection<B> for Transport {
    type RecvStream = Receiving;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, cx: &mut Context<'_>) -> Connecting<Receiving> {
        let result = ready!(self.acceptor.poll_accept_receive_stream(cx));
        Poll::Ready(accepted(result).map(Receiving))
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Connecting<Bidi<B>> {
        let result = ready!(self.acceptor.poll_accept_bidirectional_stream(cx));
        Poll::Ready(accepted(result).map(Bidi::new))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl<B: Buf> OpenStreams<B> for Transport {
    type BidiStream = Bidi<B>;
    type SendStream = Sending<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Streaming<Bidi<B>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Streaming<Sending<B>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

/// Opens streams.
#[derive(Clone)]
pub(crate) struct Opener(Handle);

impl<B: Buf> OpenStreams<B> for Opener {
    type BidiStream = Bidi<B>;
    type SendStream = Sending<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Streaming<Bidi<B>> {
        let opened = ready!(self.0.poll_open_bidirectional_stream(cx));
        Poll::Ready(opened.map(Bidi::new).map_err(lost))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Streaming<Sending<B>> {
        let opened = ready!(self.0.poll_open_send_stream(cx));
        Poll::Ready(opened.map(Sending::new).map_err(lost))
    }

    fn close(&mut self, code: Code, _reason: &[u8]) {
        self.0.close(application_code(code.value()));
    }
}

/// Both halves of a bidirectional stream.
pub(crate) struct Bidi<B> {
    send: Sending<B>,
    recv: Receiving,
}

impl<B> Bidi<B> {
    fn new(stream: BidirectionalStream) -> Self {
        let (recv, send) = stream.split();
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
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Streaming<()> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Streaming<()> {
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

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Streaming<Option<Bytes>> {
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
pub(crate) struct Receiving(ReceiveStream);

impl RecvStream for Receiving {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Streaming<Option<Bytes>> {
        self.0.poll_receive(cx).map_err(stream_error)
    }

    fn stop_sending(&mut self, error_code: u64) {
        // A finished stream needs no STOP_SENDING.
        let _ = self.0.stop_sending(application_code(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.0.id())
    }
}

/// The sending half of a stream.
pub(crate) struct Sending<B> {
    stream: s2n_quic::stream::SendStream,
    writing: Option<WriteBuf<B>>,
    /// The part of it that s2n-quic takes next.
    part: Bytes,
}

impl<B> Sending<B> {
    fn new(stream: s2n_quic::stream::SendStream) -> Self {
        Self {
            stream,
            writing: None,
            part: Bytes::new(),
        }
    }
}

impl<B: Buf> SendStream<B> for Sending<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Streaming<()> {
        loop {
            if self.part.is_empty() {
                match &mut self.writing {
                    Some(data) if data.has_remaining() => {
                        let length = data.chunk().len();
                        self.part = data.copy_to_bytes(length);
                    }
                    _ => {
                        self.writing = None;
                        return Poll::Ready(Ok(()));
                    }
                }
            }
            ready!(self.stream.poll_send(&mut self.part, cx)).map_err(stream_error)?;
        }
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Streaming<()> {
        Poll::Ready(self.stream.finish().map_err(stream_error))
    }

    fn reset(&mut self, reset_code: u64) {
        // A finished stream needs no reset.
        let _ = self.stream.reset(application_code(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::Application { error, .. } => ConnectionErrorIncoming::ApplicationClose {
            error_code: error.into(),
        },
        ConnectionError::Closed { .. } => ConnectionErrorIncoming::ApplicationClose {
            error_code: Code::H3_NO_ERROR.value(),
        },
        ConnectionError::IdleTimerExpired { .. } => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: connection_error(error),
    }
}

fn stream_error(error: StreamError) -> StreamErrorIncoming {
    match error {
        StreamError::StreamReset { error, .. } => StreamErrorIncoming::StreamTerminated {
            error_code: error.into(),
        },
        StreamError::ConnectionError { error, .. } => lost(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

fn application_code(code: u64) -> application::Error {
    application::Error::new(code).unwrap_or(application::Error::UNKNOWN)
}

/// Both sides keep stream IDs below 2^62 (RFC 9000, section 2.1).
fn stream_id(id: u64) -> StreamId {
    let Ok(id) = StreamId::try_from(id) else {
        unreachable!("a stream ID of 2^62 or more");
    };
    id
}
