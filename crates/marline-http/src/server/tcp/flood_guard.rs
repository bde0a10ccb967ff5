//! Closes connections whose requests make no progress, or that make room for others; those of HTTP/2 with GOAWAY.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::super::budget::UsedUp;
use super::super::progress::Progress;
use super::super::received::OpenContents;
use super::super::stop::Stopped;
use super::deliveries::{Deliveries, Look};
use crate::limits;

/// The largest amount of content that a connection holds, in bytes.
const WINDOW: usize = limits::HTTP2_CONNECTION_WINDOW as usize;

/// Bytes of the preface, before the first frame (section 3.4).
const PREFACE_BYTES: usize = limits::HTTP2_PREFACE_BYTES;

/// A frame GOAWAY for all streams (RFC 9113 section 6.8) with ENHANCE_YOUR_CALM.
const ENHANCE_YOUR_CALM: [u8; 17] = go_away(0x0b);

/// The same with NO_ERROR, for a client that does not use the connection.
const NO_ERROR: [u8; 17] = go_away(0);

const fn go_away(code: u8) -> [u8; 17] {
    [
        0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, code,
    ]
}

/// Ends a connection if too much time passes, or over HTTP/2 too many bytes arrive, while its requests make no progress: floods of
/// frames outside requests, and clients that never read responses. Also ends it when it has to make room.
///
/// Neither hyper nor h2 limits these, nor can h2 be told to send GOAWAY with this code and wait: the frame is written here, between
/// two frames of h2's.
pub(super) struct Http2FloodGuard<S> {
    stream: S,
    progress: Arc<Progress>,
    deliveries: Deliveries,
    look: Look,
    version: Version,
    limit: Duration,
    alarm: Pin<Box<Sleep>>,
    /// Completes when the connection has to make room.
    evicted: Stopped,
    outgoing: Frames,
    incoming: Frames,
    contents: OpenContents,
    /// Set while there is no budget for the content that has arrived.
    excess: Option<Excess>,
    /// The rest of the last frame, if the connection is being closed.
    leaving: Option<&'static [u8]>,
}

impl<S> Http2FloodGuard<S> {
    pub(super) fn new(
        stream: S,
        progress: Arc<Progress>,
        deliveries: Deliveries,
        version: Version,
        limit: Duration,
        evicted: Stopped,
        contents: OpenContents,
    ) -> Self {
        Self {
            incoming: Frames::after(PREFACE_BYTES),
            contents,
            excess: None,
            stream,
            progress,
            deliveries,
            look: Look::new(),
            version,
            limit,
            alarm: Box::pin(sleep(limit)),
            evicted,
            outgoing: Frames::default(),
            leaving: None,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http2FloodGuard<S> {
    /// Closes the connection, over HTTP/2 with GOAWAY, which may take as long as `patience`.
    fn poll_leave(
        &mut self,
        cx: &mut Context<'_>,
        frame: &'static [u8; 17],
        patience: Duration,
    ) -> Poll<io::Error> {
        let over = || Poll::Ready(io::ErrorKind::TimedOut.into());
        self.deliveries.expel();
        if self.version != Version::HTTP_2 {
            return over();
        }
        if self.leaving.is_none() {
            self.alarm.as_mut().reset(Instant::now() + patience);
            // Within a frame, the client has taken nothing for long.
            let is_between = self.outgoing.is_between();
            self.leaving = Some(if is_between { frame } else { &[] });
        }
        let mut stream = Pin::new(&mut self.stream);
        while let Some(rest) = self.leaving.as_mut().filter(|rest| !rest.is_empty()) {
            match stream.as_mut().poll_write(cx, rest) {
                Poll::Ready(Ok(written)) if written > 0 => *rest = &rest[written..],
                Poll::Ready(_) => return over(),
                Poll::Pending => {
                    return self
                        .alarm
                        .as_mut()
                        .poll(cx)
                        .map(|()| io::ErrorKind::TimedOut.into());
                }
            }
        }
        match stream.poll_shutdown(cx) {
            Poll::Ready(_) => over(),
            Poll::Pending => self
                .alarm
                .as_mut()
                .poll(cx)
                .map(|()| io::ErrorKind::TimedOut.into()),
        }
    }

    /// Waits for a budget for the arrived content, while nothing more is read. Fails if there is none in time.
    fn poll_excess(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UsedUp>> {
        while let Some(excess) = &mut self.excess {
            if self.contents.on_arrival(0, WINDOW) {
                self.excess = None;
            } else if excess.since.elapsed() >= limits::UNREAD_TIMEOUT {
                return Poll::Ready(Err(UsedUp));
            } else {
                ready!(excess.recheck.as_mut().poll(cx));
                let next = Instant::now() + limits::RECEIVED_CHECK;
                excess.recheck.as_mut().reset(next);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ready if there was no progress for too long.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            // Bytes received by the client count, too: the system's buffer may hold data for minutes.
            self.deliveries.refresh();
            let idle = self.progress.idle();
            // A request whose content arrives too slowly is answered at the limit, and a response ends.
            let limit = match self.progress.is_unused() {
                true => self.limit,
                false => self.limit + limits::LINGER,
            };
            let Some(left) = limit.checked_sub(idle).filter(|left| !left.is_zero()) else {
                return Poll::Ready(());
            };
            self.alarm.as_mut().reset(Instant::now() + left);
        }
    }

    /// A waiting write fails if there was no progress for too long: nothing may be read meanwhile.
    fn check<T>(
        &mut self,
        cx: &mut Context<'_>,
        wrote: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if wrote.is_ready() || self.poll_idle(cx).is_pending() {
            return wrote;
        }
        self.deliveries.expel();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Http2FloodGuard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let is_evicted = this.leaving.is_none() && Pin::new(&mut this.evicted).poll(cx).is_ready();
        if is_evicted || this.leaving.is_some() || this.poll_idle(cx).is_ready() {
            let frame = match this.progress.is_unused() {
                true => &NO_ERROR,
                false => &ENHANCE_YOUR_CALM,
            };
            let patience = match is_evicted {
                true => limits::EVICTED_LINGER,
                false => limits::LINGER,
            };
            return this.poll_leave(cx, frame, patience).map(Err);
        }
        if ready!(this.poll_excess(cx)).is_err() {
            return this
                .poll_leave(cx, &ENHANCE_YOUR_CALM, limits::LINGER)
                .map(Err);
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        // hyper receives no more content of HTTP/1.1 than is read.
        if this.version == Version::HTTP_2 {
            let content = this.incoming.advance(&buf.filled()[before..]);
            if !this.contents.on_arrival(content, WINDOW) {
                this.excess = Some(Excess::new());
            }
        }
        let received = this.progress.on_received(buf.filled().len() - before);
        if received > limits::MAX_BYTES_WITHOUT_PROGRESS && this.version == Version::HTTP_2 {
            return this
                .poll_leave(cx, &ENHANCE_YOUR_CALM, limits::LINGER)
                .map(Err);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Http2FloodGuard<S> {
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
        let this = self.get_mut();
        if this.leaving.is_some() {
            // Reading ends the connection.
            return Poll::Pending;
        }
        let wrote = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        let written = ready!(this.check(cx, wrote))?;
        if this.version != Version::HTTP_2 {
            return Poll::Ready(Ok(written));
        }
        let mut left = written;
        for buf in bufs {
            let len = left.min(buf.len());
            this.outgoing.advance(&buf[..len]);
            left -= len;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.leaving.is_some() {
            return Poll::Pending;
        }
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        this.check(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // A client that has its response may close its side without reading what follows, close_notify of TLS: it resets
        // the connection then, and does not acknowledge what it has read.
        let shut_down = match this.look.poll(cx, &this.deliveries) {
            Poll::Ready(()) => Pin::new(&mut this.stream).poll_shutdown(cx),
            Poll::Pending => Poll::Pending,
        };
        this.check(cx, shut_down)
    }
}

/// More content has arrived than there is budget for.
struct Excess {
    since: Instant,
    recheck: Pin<Box<Sleep>>,
}

impl Excess {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            recheck: Box::pin(sleep(limits::RECEIVED_CHECK)),
        }
    }
}

/// The boundaries of frames in a sequence of bytes (RFC 9113 section 4.1).
#[derive(Debug, Default)]
struct Frames {
    /// Bytes of a frame's header so far.
    header: usize,
    /// The length in the header.
    length: usize,
    /// Whether it is a frame of DATA.
    is_data: bool,
    /// Bytes of payload to follow.
    payload: usize,
    /// Whether this payload is that of DATA.
    is_content: bool,
}

impl Frames {
    const HEADER: usize = 9;

    /// The frames after `bytes` bytes of other data.
    fn after(bytes: usize) -> Self {
        Self {
            payload: bytes,
            ..Self::default()
        }
    }

    /// Returns the number of `bytes` that are the payload of frames of DATA.
    fn advance(&mut self, mut bytes: &[u8]) -> usize {
        let mut content = 0;
        loop {
            let skipped = self.payload.min(bytes.len());
            content += if self.is_content { skipped } else { 0 };
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            let Some((&byte, rest)) = bytes.split_first() else {
                return content;
            };
            bytes = rest;
            if self.header < 3 {
                self.length = self.length << 8 | usize::from(byte);
            }
            if self.header == 3 {
                self.is_data = byte == 0;
            }
            self.header += 1;
            if self.header == Self::HEADER {
                self.payload = std::mem::take(&mut self.length);
                self.is_content = self.is_data;
                self.header = 0;
            }
        }
    }

    /// Whether the last frame is complete.
    fn is_between(&self) -> bool {
        self.header == 0 && self.payload == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_in_bytes_that_are_cut_anywhere() {
        let mut bytes = vec![0, 0, 0, 4, 1, 0, 0, 0, 0];
        bytes.extend_from_slice(&ENHANCE_YOUR_CALM);
        bytes.extend_from_slice(&[0, 1, 2, 0, 0, 0, 0, 0, 1]);
        bytes.extend_from_slice(&[7; 258]);
        for size in 1..40 {
            let mut frames = Frames::default();
            let mut ends = Vec::new();
            let mut content = 0;
            for (index, chunk) in bytes.chunks(size).enumerate() {
                content += frames.advance(chunk);
                if frames.is_between() {
                    ends.push(index * size + chunk.len());
                }
            }
            assert_eq!(ends.last(), Some(&bytes.len()), "{size}");
            assert_eq!(content, 258, "{size}");
            assert!(
                ends.iter().all(|end| [9, 26, 293].contains(end)),
                "{ends:?}"
            );
        }
    }
}
