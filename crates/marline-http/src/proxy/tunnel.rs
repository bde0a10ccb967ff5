//! Tunnels: byte streams as the content of a request and of its response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{AbortHandle, abortable};
use http_body::Frame;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

use super::content::Guard;
use crate::body::{Body, BoxError};
use crate::stream::{End, ReadBody, write_all};

/// A byte stream whose two directions are the contents of a response and of a request.
pub(super) struct Joined {
    /// The bytes that are read. It fails when the content of the request does.
    pub(super) body: Body,
    /// Writes the content of the request.
    pub(super) task: Task,
}

impl Joined {
    /// Writes `content` to `write` in a task of its own.
    pub(super) fn new<R, W>(read: R, mut write: W, content: Body) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (abort, aborted) = oneshot::channel();
        let task = Task::spawn(async move {
            if write_all(content, &mut write).await == End::Aborted {
                // The response may be over.
                let _ = abort.send(());
            }
        });
        let body = Body::new(JoinedBody {
            read: ReadBody::new(read),
            aborted: Some(aborted),
        });
        Self { body, task }
    }
}

struct JoinedBody<R> {
    read: ReadBody<R>,
    aborted: Option<oneshot::Receiver<()>>,
}

impl<R: AsyncRead + Unpin> http_body::Body for JoinedBody<R> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(aborted) = &mut self.aborted
            && let Poll::Ready(aborted) = Pin::new(aborted).poll(cx)
        {
            self.aborted = None;
            if aborted.is_ok() {
                return Poll::Ready(Some(Err("the client has aborted the tunnel".into())));
            }
        }
        Pin::new(&mut self.read).poll_frame(cx)
    }
}

/// The two halves of a TCP connection, which is reset when they are dropped before one of its directions has ended
/// cleanly: otherwise the content sent would look complete.
pub(super) struct Halves {
    pub(super) read: ReadHalf,
    pub(super) write: WriteHalf,
}

impl Halves {
    pub(super) fn of(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        let is_over = Arc::new(AtomicBool::new(false));
        Self {
            read: ReadHalf {
                half: read,
                is_over: Arc::clone(&is_over),
            },
            write: WriteHalf {
                half: Some(write),
                is_over,
            },
        }
    }
}

pub(super) struct ReadHalf {
    half: OwnedReadHalf,
    is_over: Arc<AtomicBool>,
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.half).poll_read(cx, buf))?;
        if buf.filled().len() == before && buf.remaining() > 0 {
            self.is_over.store(true, Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

pub(super) struct WriteHalf {
    /// `None` once it was dropped.
    half: Option<OwnedWriteHalf>,
    is_over: Arc<AtomicBool>,
}

impl WriteHalf {
    fn half(&mut self) -> io::Result<Pin<&mut OwnedWriteHalf>> {
        let half = self.half.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Pin::new(half))
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.half()?.poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.half()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_over.store(true, Relaxed);
        self.half()?.poll_shutdown(cx)
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        let Some(half) = self.half.take() else { return };
        if !self.is_over.load(Relaxed) {
            // It fails if the connection has ended.
            let _ = SockRef::from(half.as_ref()).set_linger(Some(Duration::ZERO));
        }
        // Dropped otherwise, it would be shut down.
        half.forget();
    }
}

/// A task that ends when this is dropped.
pub(super) struct Task(AbortHandle);

impl Guard for Task {}

impl Task {
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        let (work, handle) = abortable(work);
        tokio::spawn(async move {
            // Aborted with its owner.
            let _ = work.await;
        });
        Self(handle)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
