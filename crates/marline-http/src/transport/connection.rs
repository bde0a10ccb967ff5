//! A connection as h3 needs it.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};

use super::stream::{BidiStream, RecvStream, SendStream, connection_error, lost};

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
