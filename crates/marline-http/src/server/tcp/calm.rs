//! HTTP/2 connections that make no progress, or room for others, are closed with GOAWAY.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::super::progress::Progress;
use super::super::stop::Stopped;
use crate::limits;

/// A frame GOAWAY for all streams (RFC 9113 section 6.8) with ENHANCE_YOUR_CALM.
const ENHANCE_YOUR_CALM: [u8; 17] = go_away(0x0b);

/// The same with NO_ERROR, for a client that has no use for the connection.
const NO_ERROR: [u8; 17] = go_away(0);

const fn go_away(code: u8) -> [u8; 17] {
    [
        0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, code,
    ]
}

/// Ends a connection of HTTP/2 if too many bytes arrive, or too much time passes, while its requests make no progress:
/// floods of frames that need no request, and clients that never read responses. Ends it also when it has to make room.
///
/// hyper limits none of these, nor can it be told to send GOAWAY with this code: the frame is written here, between two
/// frames of hyper's.
pub(super) struct Calm<S> {
    stream: S,
    progress: Arc<Progress>,
    limit: Duration,
    alarm: Pin<Box<Sleep>>,
    /// Completes when the connection has to make room.
    evicted: Stopped,
    outgoing: Frames,
    /// What is left of the last frame, if the connection is being closed.
    leaving: Option<&'static [u8]>,
}

impl<S> Calm<S> {
    pub(super) fn new(
        stream: S,
        progress: Arc<Progress>,
        limit: Duration,
        evicted: Stopped,
    ) -> Self {
        Self {
            stream,
            progress,
            limit,
            alarm: Box::pin(sleep(limit)),
            evicted,
            outgoing: Frames::default(),
            leaving: None,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Calm<S> {
    /// Closes the connection: sends GOAWAY, and reads while it lingers what the client still sends. Otherwise the system would
    /// answer it with a reset, for which the client's system may discard the frame.
    fn poll_leave(
        &mut self,
        cx: &mut Context<'_>,
        frame: &'static [u8; 17],
        linger: Duration,
    ) -> Poll<io::Error> {
        if self.leaving.is_none() {
            self.alarm.as_mut().reset(Instant::now() + linger);
            // Within a frame of hyper's, the client has taken nothing for long.
            let is_between = self.outgoing.is_between();
            self.leaving = Some(if is_between { frame } else { &[] });
        }
        if let Some(rest) = &mut self.leaving
            && !rest.is_empty()
            && let Poll::Ready(Ok(written)) = Pin::new(&mut self.stream).poll_write(cx, rest)
        {
            *rest = &rest[written..];
        }
        if self.leaving.is_some_and(<[u8]>::is_empty) {
            let _ = Pin::new(&mut self.stream).poll_shutdown(cx);
        }
        let is_over = self.alarm.as_mut().poll(cx).is_ready();
        let mut discarded = [0; 4096];
        let mut buf = ReadBuf::new(&mut discarded);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
            Poll::Ready(Ok(())) if !buf.filled().is_empty() && !is_over => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Pending if !is_over => Poll::Pending,
            _ => Poll::Ready(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Ready if there was no progress for too long.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            let idle = self.progress.idle();
            let Some(left) = self.limit.checked_sub(idle).filter(|left| !left.is_zero()) else {
                return Poll::Ready(());
            };
            self.alarm.as_mut().reset(Instant::now() + left);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Calm<S> {
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
            let linger = match is_evicted {
                true => limits::EVICTED_LINGER,
                false => limits::LINGER,
            };
            return this.poll_leave(cx, frame, linger).map(Err);
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let received = this.progress.on_received(buf.filled().len() - before);
        if received > limits::MAX_BYTES_WITHOUT_PROGRESS {
            return this
                .poll_leave(cx, &ENHANCE_YOUR_CALM, limits::LINGER)
                .map(Err);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Calm<S> {
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
        let written = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, bufs))?;
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
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// Where frames begin and end in a sequence of bytes (RFC 9113 section 4.1).
#[derive(Debug, Default)]
struct Frames {
    /// Bytes of a frame's header so far.
    header: usize,
    /// The length that the header has.
    length: usize,
    /// Bytes of payload that follow.
    payload: usize,
}

impl Frames {
    const HEADER: usize = 9;

    fn advance(&mut self, mut bytes: &[u8]) {
        loop {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            let Some((&byte, rest)) = bytes.split_first() else {
                return;
            };
            bytes = rest;
            if self.header < 3 {
                self.length = self.length << 8 | usize::from(byte);
            }
            self.header += 1;
            if self.header == Self::HEADER {
                self.payload = std::mem::take(&mut self.length);
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
            for (index, chunk) in bytes.chunks(size).enumerate() {
                frames.advance(chunk);
                if frames.is_between() {
                    ends.push(index * size + chunk.len());
                }
            }
            assert_eq!(ends.last(), Some(&bytes.len()), "{size}");
            assert!(
                ends.iter().all(|end| [9, 26, 293].contains(end)),
                "{ends:?}"
            );
        }
    }
}
