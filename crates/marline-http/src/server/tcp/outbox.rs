//! The writing side of a connection's socket.
//!
//! The `h2` library writes, and flushes, each frame of DATA by itself. Over HTTP/2, small writes of one poll of the connection are
//! joined here, so that its responses take one system call together. Large ones are passed on at once, but marked as parts of more:
//! the system then sends full segments, and the receiver is woken up for these instead of for each write.

use std::fmt;
use std::io::{self, IoSlice};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
#[cfg(target_os = "linux")]
use tokio::io::Interest;
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
    /// Whether the system may hold back a part of a segment until more follows.
    is_held: bool,
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
            is_held: false,
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
        state.release();
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
            let written = if self.is_joining {
                write_part(&stream, bufs)
            } else {
                stream.try_write_vectored(bufs)
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(written) => {
                    self.is_held = self.is_joining;
                    self.wrote(written);
                    return Poll::Ready(Ok(written));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Has the system send what it holds back.
    fn release(&mut self) {
        if mem::take(&mut self.is_held)
            && let Some(stream) = &self.stream
        {
            // Setting the option again sends the rest. An error is that of a connection that has ended.
            let _ = stream.set_nodelay(true);
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
                    self.is_held = false;
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

/// Writes what more will follow.
#[cfg(target_os = "linux")]
fn write_part(stream: &TcpStream, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
    stream.try_io(Interest::WRITABLE, || {
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        let mut no_ancillary = SendAncillaryBuffer::default();
        Ok(sendmsg(stream, bufs, &mut no_ancillary, flags)?)
    })
}

#[cfg(not(target_os = "linux"))]
fn write_part(stream: &TcpStream, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    stream.try_write_vectored(bufs)
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
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;
    use crate::runtime::RuntimeHandle;
    use crate::server::progress::Progress;

    /// An outbox that joins writes to a socket, and the client of that.
    async fn joining() -> (Outbox, Client) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::connect(listener.local_addr().unwrap()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
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
    async fn small_writes_arrive_together_and_before_what_follows_of_which_nothing_is_held_back() {
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
        client.set_nonblocking(true).unwrap();
        let nothing = client.read(&mut read).unwrap_err();
        client.set_nonblocking(false).unwrap();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        poll_fn(|cx| {
            outbox.poll_send(cx);
            Poll::Ready(())
        })
        .await;
        let len = client.read(&mut read).unwrap();
        assert_eq!(&read[..len], b"one two ");
        write(&outbox, b"three ").await;
        let large = vec![b'x'; limits::JOINED_WRITES + 1];
        let written = write(&outbox, &large).await;
        poll_fn(|cx| {
            outbox.poll_send(cx);
            Poll::Ready(())
        })
        .await;
        let mut read = vec![0; 6 + large.len()];
        let mut len = 0;
        while len < 6 + written {
            len += client.read(&mut read[len..]).unwrap();
        }
        assert!(read.starts_with(b"three xx"));
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
