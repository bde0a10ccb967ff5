//! A connection of TCP as the two directions of a CONNECT request.
//!
//! Backpressure reaches from end to end: each direction holds one chunk beside the buffers of the kernel and of QUIC, whose
//! windows limit one stream and all of a connection.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame};
use marline_http::BoxError;
use marline_http::tcp::socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::counters::SplitBytes;

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// The time without segments after which the peer of a connection is asked whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(300);

/// The interval of further questions, of which Linux asks nine.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// A connection. Dropped before both directions have ended, it is reset: otherwise what was sent would look complete.
pub(crate) struct Stream<G> {
    tcp: TcpStream,
    is_read: AtomicBool,
    is_written: AtomicBool,
    bytes: Arc<SplitBytes>,
    /// Kept as long as the connection.
    _guard: G,
}

impl<G> Stream<G> {
    pub(crate) fn new(tcp: TcpStream, bytes: Arc<SplitBytes>, guard: G) -> Arc<Self> {
        // Both fail if the connection has ended.
        let _ = tcp.set_nodelay(true);
        let keep_alive = TcpKeepalive::new()
            .with_time(KEEP_ALIVE)
            .with_interval(KEEP_ALIVE_INTERVAL);
        let _ = SockRef::from(&tcp).set_tcp_keepalive(&keep_alive);
        Arc::new(Self {
            tcp,
            is_read: AtomicBool::new(false),
            is_written: AtomicBool::new(false),
            bytes,
            _guard: guard,
        })
    }

    /// The next bytes; none at the end.
    fn poll_read(&self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        loop {
            ready!(self.tcp.poll_read_ready(cx))?;
            let mut chunk = BytesMut::with_capacity(CHUNK);
            match self.tcp.try_read_buf(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(length) => {
                    self.is_read.fetch_or(length == 0, Relaxed);
                    self.bytes.on_sent(length);
                    // A small read does not keep a whole buffer.
                    return Poll::Ready(Ok(match length < CHUNK / 4 {
                        true => Bytes::copy_from_slice(&chunk),
                        false => chunk.freeze(),
                    }));
                }
            }
        }
    }

    /// Writes `content`, and ends this direction with it.
    ///
    /// # Errors
    /// The content fails, or the peer accepts no more.
    pub(crate) async fn write<B>(&self, content: B) -> Result<(), Broken>
    where
        B: Body<Data = Bytes>,
    {
        let mut content = pin!(content);
        while let Some(frame) = std::future::poll_fn(|cx| content.as_mut().poll_frame(cx)).await {
            let Ok(mut data) = frame.map_err(|_| Broken)?.into_data() else {
                continue;
            };
            self.bytes.on_received(data.len());
            while !data.is_empty() {
                self.tcp.writable().await.map_err(|_| Broken)?;
                match self.tcp.try_write(&data) {
                    Ok(length) => data.advance(length),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return Err(Broken),
                }
            }
        }
        let ended = SockRef::from(&self.tcp).shutdown(std::net::Shutdown::Write);
        ended.map_err(|_| Broken)?;
        self.is_written.store(true, Relaxed);
        Ok(())
    }
}

impl<G> Drop for Stream<G> {
    fn drop(&mut self) {
        if !self.is_read.load(Relaxed) || !self.is_written.load(Relaxed) {
            // It fails if the connection has ended.
            let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
        }
    }
}

/// A direction has not ended cleanly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The bytes read from a connection, as content, once there is a connection.
pub(crate) struct ReadContent<G> {
    source: Source<G>,
    ended: Option<oneshot::Sender<()>>,
}

enum Source<G> {
    Awaited(oneshot::Receiver<Arc<Stream<G>>>),
    Stream(Arc<Stream<G>>),
}

/// The end of a [`ReadContent`].
pub(crate) struct ReadEnd(oneshot::Receiver<()>);

impl<G> ReadContent<G> {
    /// The content of a connection that is given later.
    pub(crate) fn awaiting(stream: oneshot::Receiver<Arc<Stream<G>>>) -> (Self, ReadEnd) {
        let (ended, end) = oneshot::channel();
        let content = Self {
            source: Source::Awaited(stream),
            ended: Some(ended),
        };
        (content, ReadEnd(end))
    }
}

impl ReadEnd {
    /// Waits until the content has been read to its end.
    ///
    /// # Errors
    /// It was dropped before, or the connection has failed.
    pub(crate) async fn reached(self) -> Result<(), Broken> {
        self.0.await.map_err(|_| Broken)
    }
}

impl<G> Body for ReadContent<G> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Source::Awaited(stream) = &mut self.source {
            let Ok(stream) = ready!(Pin::new(stream).poll(cx)) else {
                return Poll::Ready(Some(Err("there is no connection".into())));
            };
            self.source = Source::Stream(stream);
        }
        let Source::Stream(stream) = &self.source else {
            return Poll::Pending;
        };
        match ready!(stream.poll_read(cx)) {
            Ok(bytes) if bytes.is_empty() => {
                if let Some(ended) = self.ended.take() {
                    let _ = ended.send(());
                }
                Poll::Ready(None)
            }
            Ok(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Err(error) => {
                self.ended = None;
                Poll::Ready(Some(Err(error.into())))
            }
        }
    }
}

/// A connection as the contents of a response and of its request.
pub(crate) struct Joined<G> {
    read: ReadContent<G>,
    /// Whether the request's content was not written.
    failed: Option<oneshot::Receiver<Broken>>,
    writing: AbortHandle,
}

impl<G: Send + Sync + 'static> Joined<G> {
    /// Writes the content of the request to the connection, and is what is read, both until `revoked`.
    pub(crate) fn new(
        stream: Arc<Stream<G>>,
        content: marline_http::Body,
        revoked: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let (mut failing, failed) = oneshot::channel();
        let writer = Arc::clone(&stream);
        let writing = tokio::spawn(async move {
            let mut revoked = pin!(revoked);
            let broken = tokio::select! {
                written = writer.write(content) => match written {
                    Err(broken) => Some(broken),
                    Ok(()) => tokio::select! {
                        () = &mut revoked => Some(Broken),
                        () = failing.closed() => None,
                    },
                },
                () = &mut revoked => Some(Broken),
            };
            if let Some(broken) = broken {
                let _ = failing.send(broken);
            }
        });
        Self {
            read: ReadContent {
                source: Source::Stream(stream),
                ended: None,
            },
            failed: Some(failed),
            writing: writing.abort_handle(),
        }
    }
}

impl<G> Body for Joined<G> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(failed) = &mut self.failed
            && let Poll::Ready(failed) = Pin::new(failed).poll(cx)
        {
            self.failed = None;
            if failed.is_ok() {
                return Poll::Ready(Some(Err("the client has reset the connection".into())));
            }
        }
        Pin::new(&mut self.read).poll_frame(cx)
    }
}

impl<G> Drop for Joined<G> {
    fn drop(&mut self) {
        let Source::Stream(stream) = &self.read.source else {
            return;
        };
        // After the end of the response, the request goes on.
        if !stream.is_read.load(Relaxed) {
            self.writing.abort();
        }
    }
}
