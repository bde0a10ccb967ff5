//! Connections to applications that end when an application does not read for too long.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tower::Service;

use crate::body::BoxError;

/// Connects to applications.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    inner: HttpConnector,
    write_timeout: Duration,
}

impl Connector {
    /// Connects as `inner` does. Writing fails if the application takes nothing for `write_timeout`: hyper ends a
    /// connection only when everything is written, even if the response is no longer awaited.
    pub(super) fn new(inner: HttpConnector, write_timeout: Duration) -> Self {
        Self {
            inner,
            write_timeout,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let write_timeout = self.write_timeout;
        Box::pin(async move {
            Ok(Stream {
                stream: connecting.await?,
                write_timeout,
                alarm: None,
            })
        })
    }
}

/// A connection to an application.
pub(super) struct Stream {
    stream: TokioIo<TcpStream>,
    write_timeout: Duration,
    /// Set while the application takes nothing.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    fn check<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.alarm = None;
            return written;
        }
        let limit = self.write_timeout;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(limit)));
        let expired = alarm.as_mut().poll(cx);
        expired.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.check(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.check(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}
