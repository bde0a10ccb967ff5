//! Byte streams as content, and content as byte streams.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::body::{Body, BoxError};
use crate::limits;

/// A byte stream of any kind. One type for all keeps one copy of hyper and h2 for all.
pub(crate) type AnyStream = Box<dyn ByteStream>;

/// Reads and writes bytes.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// The bytes read from a stream, as content.
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
        // A small read does not keep a whole buffer.
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(
            &chunk[..read],
        )))))
    }
}

/// The end of content that is written to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Cleanly, and the stream was shut down; or the other end accepts no more.
    Complete,
    /// Early. The stream was not shut down, so that the written part does not look complete.
    Aborted,
}

/// Writes `content` to a stream as it arrives, and shuts it down at the end, unless the content fails.
pub(crate) async fn write_all<W: AsyncWrite + Unpin>(mut content: Body, stream: &mut W) -> End {
    while let Some(frame) = content.frame().await {
        let Ok(frame) = frame else {
            return End::Aborted;
        };
        if let Ok(data) = frame.into_data() {
            let written = stream.write_all(&data).await;
            if written.is_err() || stream.flush().await.is_err() {
                return End::Complete;
            }
        }
    }
    // The other end may have closed it.
    let _ = stream.shutdown().await;
    End::Complete
}
