//! Byte streams with an idle timeout.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails reads and writes with [`io::ErrorKind::TimedOut`] if no bytes move for a time: against idle clients,
/// and those that request much and read nothing.
pub(super) struct IdleTimeout<S> {
    stream: S,
    limit: Duration,
    alarm: Pin<Box<Sleep>>,
}

impl<S> IdleTimeout<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            alarm: Box::pin(sleep(limit)),
        }
    }

    fn check<T>(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.alarm.as_mut().reset(Instant::now() + self.limit);
            return progress;
        }
        self.alarm
            .as_mut()
            .poll(cx)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
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
        this.check(cx, progress)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.check(cx, progress)
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
            return progress;
        }
        self.check(cx, progress)
    }
}
