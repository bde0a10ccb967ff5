//! Byte streams with an idle timeout.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails reads and writes with [`io::ErrorKind::TimedOut`] if no bytes move for a time, and writes if the peer reads nothing for
/// this time, whatever it sends: against idle peers, and those that request much and read nothing.
pub(super) struct IdleTimeout<S> {
    stream: S,
    limit: Duration,
    /// The time since bytes moved.
    idle: Pin<Box<Sleep>>,
    /// The time since a write began to wait.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl<S> IdleTimeout<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            idle: Box::pin(sleep(limit)),
            blocked: None,
        }
    }

    fn check<T>(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.idle.as_mut().reset(Instant::now() + self.limit);
            return progress;
        }
        self.idle
            .as_mut()
            .poll(cx)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn check_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.blocked = None;
            return self.check(cx, progress);
        }
        let limit = self.limit;
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(sleep(limit)));
        match blocked.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => self.check(cx, progress),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeout<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_read(cx, buf);
        this.check(cx, progress)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleTimeout<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.check_write(cx, progress)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.check_write(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_flush(cx);
        this.check_without_progress(cx, progress)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.check_without_progress(cx, progress)
    }
}

impl<S> IdleTimeout<S> {
    /// Flushing an empty buffer does not count as progress.
    fn check_without_progress(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if progress.is_ready() {
            self.blocked = None;
            return progress;
        }
        self.check_write(cx, progress)
    }
}
