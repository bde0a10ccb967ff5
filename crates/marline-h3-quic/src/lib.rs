#![doc = include_str!("../README.md")]

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use marline::{ConnectionError, ReadError, WriteError};

/// A QUIC connection that h3 drives.
#[derive(Clone, Debug)]
pub struct Connection(marline::Connection);

/// Opens streams of the [`Connection`].
pub type Opener = Connection;

impl Connection {
    /// Wraps `connection` for h3.
    pub fn new(connection: marline::Connection) -> Self {
        Self(connection)
    }
}

impl quic::OpenStreams<Bytes> for Connection {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let (send, recv) = ready!(self.0.poll_open_bi(cx)).map_err(lost)?;
        Poll::Ready(Ok(BidiStream::opened(send, recv)))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        let send = ready!(self.0.poll_open_uni(cx)).map_err(lost)?;
        Poll::Ready(Ok(SendStream::new(send)))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.0.close(code.value(), reason);
    }
}

impl quic::Connection<Bytes> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let recv = ready!(self.0.poll_accept_uni(cx)).map_err(connection_error)?;
        Poll::Ready(Ok(RecvStream::new(recv)))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, ConnectionErrorIncoming>> {
        let (send, recv) = ready!(self.0.poll_accept_bi(cx)).map_err(connection_error)?;
        Poll::Ready(Ok(BidiStream::accepted(send, recv)))
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

/// The sending part of a stream. Dropped before it is finished, it is reset with H3_REQUEST_CANCELLED.
#[derive(Debug)]
pub struct SendStream {
    stream: marline::SendStream,
    /// The header of a frame and its content; written in this order.
    writing: [Bytes; 2],
    /// Whether nothing more will be written.
    finished: bool,
    /// Whether finishing waits until the peer has received everything. It does for responses, as their
    /// connection may be closed next; not for requests, whose response follows anyway.
    until_received: bool,
}

impl SendStream {
    fn new(stream: marline::SendStream) -> Self {
        Self {
            stream,
            writing: [Bytes::new(), Bytes::new()],
            finished: false,
            until_received: false,
        }
    }
}

impl quic::SendStream<Bytes> for SendStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        for part in &mut self.writing {
            ready!(self.stream.poll_write_chunk(cx, part)).map_err(write_error)?;
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.iter().any(|part| !part.is_empty()) {
            return Err(StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: ConnectionErrorIncoming::InternalError(
                    "data was sent before the stream was ready".to_owned(),
                ),
            });
        }
        let mut data = data.into();
        let header = data.chunk().len();
        self.writing[0] = data.copy_to_bytes(header);
        self.writing[1] = data.copy_to_bytes(data.remaining());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        if !self.finished {
            let finished = self.stream.finish();
            finished.map_err(|error| StreamErrorIncoming::Unknown(error.into()))?;
            self.finished = true;
        }
        if !self.until_received {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(match ready!(self.stream.poll_stopped(cx)) {
            Ok(None) => Ok(()),
            Ok(Some(error_code)) => Err(StreamErrorIncoming::StreamTerminated { error_code }),
            Err(error) => Err(lost(error)),
        })
    }

    fn reset(&mut self, reset_code: u64) {
        self.writing = [Bytes::new(), Bytes::new()];
        self.finished = true;
        self.stream.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        // The default of marline is the code 0, which HTTP/3 does not define.
        if !self.finished {
            self.stream.reset(Code::H3_REQUEST_CANCELLED.value());
        }
    }
}

/// The receiving part of a stream. Dropped before its end, it is stopped with H3_REQUEST_CANCELLED.
#[derive(Debug)]
pub struct RecvStream(marline::RecvStream);

impl RecvStream {
    fn new(stream: marline::RecvStream) -> Self {
        Self(stream)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // This has no effect on a stream that has ended.
        let _ = self.0.stop(Code::H3_REQUEST_CANCELLED.value());
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.0.poll_read_chunk(cx, usize::MAX).map_err(read_error)
    }

    fn stop_sending(&mut self, error_code: u64) {
        // A stream that has ended need not be stopped.
        let _ = self.0.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.0.id())
    }
}

/// Both parts of a bidirectional stream.
#[derive(Debug)]
pub struct BidiStream {
    send: SendStream,
    recv: RecvStream,
}

impl BidiStream {
    /// A stream that this end opened.
    fn opened(send: marline::SendStream, recv: marline::RecvStream) -> Self {
        Self {
            send: SendStream::new(send),
            recv: RecvStream::new(recv),
        }
    }

    /// A stream that the peer opened.
    fn accepted(send: marline::SendStream, recv: marline::RecvStream) -> Self {
        let mut stream = Self::opened(send, recv);
        stream.send.until_received = true;
        stream
    }
}

impl quic::BidiStream<Bytes> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.recv)
    }
}

impl quic::SendStream<Bytes> for BidiStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
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

impl quic::RecvStream for BidiStream {
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

fn stream_id(id: marline::StreamId) -> StreamId {
    StreamId::try_from(u64::from(id)).expect("stream IDs end at 2^62 - 1 here as there")
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::PeerApplication { code, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: code }
        }
        ConnectionError::IdleTimeout => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: connection_error(error),
    }
}

fn read_error(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        ReadError::ConnectionLost(error) => lost(error),
        other => StreamErrorIncoming::Unknown(other.into()),
    }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        WriteError::ConnectionLost(error) => lost(error),
        other => StreamErrorIncoming::Unknown(other.into()),
    }
}
