//! The writing side of a connection's socket.
//!
//! The `h2` library writes, and flushes, each frame of DATA by itself. Over HTTP/2, small writes of one poll of the connection are
//! joined here, so that its responses take one system call together.

use std::fmt;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::deliveries::{Deliveries, Look};
use crate::limits;

/// The writing side of a socket, and small writes that are not passed to it yet. Clones are the same one.
#[derive(Clone)]
pub(in crate::server) struct Outbox(Arc<Mutex<State>>);

struct State {
    /// `None` until there is a socket, and after it is closed.
    stream: Option<Arc<TcpStream>>,
    /// The outcome of responses is recorded there.
    deliveries: Deliveries,
    look: Look,
    /// Whether small writes wait for [`Outbox::poll_send`].
    is_joining: bool,
    waiting: BytesMut,
    /// Time of the latest moved bytes.
    moved: Instant,
    /// Why the socket took no more, until a write returns it.
    failure: Option<io::ErrorKind>,
}

impl Outbox {
    pub(in crate::server) fn new(deliveries: Deliveries) -> Self {
        Self(Arc::new(Mutex::new(State {
            stream: None,
            deliveries,
            look: Look::new(),
            is_joining: false,
            waiting: BytesMut::new(),
            moved: Instant::now(),
            failure: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes to `stream`, to which nothing was written.
    pub(super) fn open(&self, stream: &Arc<TcpStream>) {
        let mut state = self.lock();
        state.deliveries.watch(stream);
        state.stream = Some(Arc::clone(stream));
    }

    /// Joins small writes from now on. The task of the connection calls [`poll_send`](Self::poll_send) after each of its polls.
    pub(super) fn join_writes(&self) {
        self.lock().is_joining = true;
    }

    /// Passes the waiting bytes to the system.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>) {
        let mut state = self.lock();
        if !state.waiting.is_empty() && state.poll_send(cx).is_ready() {
            state.flushed(cx);
        }
    }

    pub(super) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.lock().poll_write(cx, bufs)
    }

    /// Flushes, unless bytes wait: [`poll_send`](Self::poll_send) follows.
    pub(super) fn flush(&self, cx: &mut Context<'_>) {
        let mut state = self.lock();
        if state.waiting.is_empty() {
            state.flushed(cx);
        }
    }

    /// Passes all bytes to the system before the socket is shut down.
    pub(super) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        ready!(state.poll_send(cx));
        state.deliveries.flushed();
        Poll::Ready(state.failed())
    }

    /// Looks whether the client has received responses.
    pub(super) fn look(&self, cx: &mut Context<'_>) {
        let state = &mut *self.lock();
        // It only has to be looked.
        let _ = state.look.poll(cx, &state.deliveries);
    }

    /// Bytes of the client have arrived.
    pub(super) fn on_received(&self) {
        self.lock().moved = Instant::now();
    }

    /// The socket is closed: tries to pass the waiting bytes to the system. Returns the time of the latest moved bytes.
    pub(super) fn close(&self) -> Instant {
        let mut state = self.lock();
        if let Some(stream) = state.stream.take()
            && let Ok(written) = stream.try_write(&state.waiting)
            && written > 0
        {
            state.wrote(written);
        }
        state.moved
    }
}

impl State {
    fn wrote(&mut self, written: usize) {
        self.deliveries.written(written);
        self.moved = Instant::now();
    }

    fn flushed(&mut self, cx: &mut Context<'_>) {
        self.deliveries.flushed();
        let _ = self.look.poll(cx, &self.deliveries);
    }

    fn failed(&mut self) -> io::Result<()> {
        match self.failure.take() {
            Some(kind) => Err(kind.into()),
            None => Ok(()),
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.failed()?;
        let len: usize = bufs.iter().map(|buf| buf.len()).sum();
        if self.is_joining && self.waiting.len() + len <= limits::JOINED_WRITES {
            if self.waiting.is_empty() {
                self.waiting.reserve(limits::JOINED_WRITES / 4);
            }
            bufs.iter()
                .for_each(|buf| self.waiting.extend_from_slice(buf));
            self.deliveries.on_waiting();
            return Poll::Ready(Ok(len));
        }
        ready!(self.poll_send(cx));
        self.failed()?;
        let Some(stream) = self.stream.clone() else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        loop {
            ready!(stream.poll_write_ready(cx))?;
            match stream.try_write_vectored(bufs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(written) => {
                    self.wrote(written);
                    return Poll::Ready(Ok(written));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Ready when no bytes wait: the system has them, or they are lost with the connection.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.waiting.is_empty() {
            let Some(stream) = self.stream.clone() else {
                break;
            };
            let written = match ready!(stream.poll_write_ready(cx)) {
                Ok(()) => stream.try_write(&self.waiting),
                Err(error) => Err(error),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(written) => {
                    self.waiting.advance(written);
                    self.wrote(written);
                }
                Err(error) => {
                    self.failure = Some(error.kind());
                    break;
                }
            }
        }
        // Idle connections hold no memory for it.
        self.waiting = BytesMut::new();
        Poll::Ready(())
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Read;
    use std::net::TcpStream as Client;

    use tokio::net::TcpListener;

    use super::*;
    use crate::runtime::RuntimeHandle;
    use crate::server::progress::Progress;

    /// An outbox that joins writes to a socket, and the client of that.
    async fn joining() -> (Outbox, Client) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let progress = Progress::new(&RuntimeHandle::new(None).unwrap(), 1);
        let outbox = Outbox::new(Deliveries::new(Arc::new(progress)));
        outbox.open(&Arc::new(stream));
        outbox.join_writes();
        (outbox, client)
    }

    async fn write(outbox: &Outbox, bytes: &[u8]) -> usize {
        poll_fn(|cx| outbox.poll_write(cx, &[IoSlice::new(bytes)]))
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn small_writes_arrive_together_and_before_what_follows() {
        let (outbox, mut client) = joining().await;
        let mut read = [0; 20];
        for part in [&b"one "[..], b"two "] {
            assert_eq!(write(&outbox, part).await, part.len());
            poll_fn(|cx| {
                outbox.flush(cx);
                Poll::Ready(())
            })
            .await;
        }
        let nothing = client.read(&mut read).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        poll_fn(|cx| {
            outbox.poll_send(cx);
            Poll::Ready(())
        })
        .await;
        let len = client.read(&mut read).unwrap();
        assert_eq!(&read[..len], b"one two ");
        write(&outbox, b"three ").await;
        let large = vec![b'x'; 2 * limits::JOINED_WRITES];
        assert!(write(&outbox, &large).await > 0);
        let len = client.read(&mut read).unwrap();
        assert!(read[..len].starts_with(b"three x"));
    }

    #[tokio::test]
    async fn the_end_follows_what_waits_and_a_lost_connection_is_reported() {
        let (outbox, mut client) = joining().await;
        write(&outbox, b"last").await;
        poll_fn(|cx| outbox.poll_end(cx)).await.unwrap();
        let mut read = [0; 20];
        assert_eq!(client.read(&mut read).unwrap(), 4);
        write(&outbox, b"lost").await;
        // The system refuses to write after this side was closed.
        let stream = outbox.lock().stream.clone().unwrap();
        socket2::SockRef::from(&*stream)
            .shutdown(std::net::Shutdown::Write)
            .unwrap();
        let lost = poll_fn(|cx| outbox.poll_end(cx)).await.unwrap_err();
        assert_eq!(lost.kind(), io::ErrorKind::BrokenPipe);
    }
}
