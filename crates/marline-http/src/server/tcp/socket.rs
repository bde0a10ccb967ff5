//! The socket of one connection.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::closing::Closing;
use super::deliveries::Deliveries;
use super::outbox::Outbox;

/// Ends a connection with a reset: the data sent is incomplete.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct Reset(Arc<AtomicBool>);

impl Reset {
    /// The connection is reset when its socket is closed.
    pub(super) fn when_closed(&self) {
        self.0.store(true, Relaxed);
    }
}

/// A socket, and the bytes already read from it. On drop, it is passed to the task that waits for its closing.
pub(super) struct Socket {
    stream: Arc<TcpStream>,
    read: Bytes,
    reset: Reset,
    deliveries: Deliveries,
    outbox: Outbox,
    /// Whether it was shut down after everything was sent.
    is_shut_down: bool,
    close: Option<oneshot::Sender<Closing>>,
}

impl Socket {
    /// `stream`, from which `read` was already read, and to which `outbox` writes. The outcome of responses written to it is recorded
    /// in `deliveries`.
    pub(super) fn new(
        stream: TcpStream,
        read: Bytes,
        reset: Reset,
        deliveries: Deliveries,
        outbox: Outbox,
        close: oneshot::Sender<Closing>,
    ) -> Self {
        let stream = Arc::new(stream);
        outbox.open(&stream);
        Self {
            stream,
            read,
            reset,
            deliveries,
            outbox,
            is_shut_down: false,
            close: Some(close),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.reset.0.load(Relaxed) {
            // An error is that of a connection that has ended.
            let _ = SockRef::from(&*self.stream).set_linger(Some(Duration::ZERO));
            return self.deliveries.close();
        }
        let moved = self.outbox.close();
        if self.is_shut_down {
            self.deliveries.settle();
        }
        let closing = Closing::new(
            Arc::clone(&self.stream),
            self.deliveries.clone(),
            moved,
            self.is_shut_down,
        );
        if let Some(close) = self.close.take() {
            // If no task waits, it is closed at once.
            let _ = close.send(closing);
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.outbox.look(cx);
        if !self.read.is_empty() {
            let len = self.read.len().min(buf.remaining());
            buf.put_slice(&self.read[..len]);
            self.read.advance(len);
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => {
                    self.outbox.on_received();
                    return Poll::Ready(read.map(|_| ()));
                }
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.outbox.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outbox.flush(cx);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut_down {
            ready!(self.outbox.poll_end(cx))?;
            self.is_shut_down = true;
            SockRef::from(&*self.stream).shutdown(Shutdown::Write)?;
        }
        Poll::Ready(Ok(()))
    }
}
