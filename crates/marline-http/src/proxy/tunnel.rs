//! Tunnels: byte streams as the content of a request and of its response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::future::{AbortHandle, abortable};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::body::{Body, BoxError};
use crate::limits;

/// What is read from a stream, as content.
pub(crate) struct ReadBody<R>(R);

impl<R> ReadBody<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self(stream)
    }
}

impl<R: AsyncRead + Unpin> http_body::Body for ReadBody<R> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut chunk = BytesMut::zeroed(limits::TUNNEL_CHUNK_BYTES);
        let mut buf = ReadBuf::new(&mut chunk);
        if let Err(error) = ready!(Pin::new(&mut self.0).poll_read(cx, &mut buf)) {
            return Poll::Ready(Some(Err(error.into())));
        }
        let read = buf.filled().len();
        if read == 0 {
            return Poll::Ready(None);
        }
        // A tunnel that carries little does not hold a whole buffer.
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(
            &chunk[..read],
        )))))
    }
}

/// Writes `content` to a stream as it arrives, and shuts it down at the end, or when the content fails.
pub(crate) async fn write_all<W: AsyncWrite + Unpin>(mut content: Body, mut stream: W) {
    while let Some(Ok(frame)) = content.frame().await {
        if let Ok(data) = frame.into_data() {
            let written = stream.write_all(&data).await;
            if written.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    }
    // The other end may have closed it.
    let _ = stream.shutdown().await;
}

/// A task that ends when this is dropped.
pub(super) struct Task(AbortHandle);

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
