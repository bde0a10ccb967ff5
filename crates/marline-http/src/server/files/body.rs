//! The content of a file, read as far as it can be sent.

use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::task::JoinHandle;

use super::super::open_files::HeldFile;
use crate::body::BoxError;
use crate::limits;
use crate::server::budget::{Grant, UsedUp};
use crate::server::resources::Origin;

/// Waits for a part of the budget.
type Waiting = Pin<Box<dyn Future<Output = Result<Grant, UsedUp>> + Send>>;

/// A part of a file. Chunks are as large as the connection can take now, and count as buffered until they are sent.
pub(super) struct FileBody {
    file: HeldFile,
    position: u64,
    remaining: u64,
    origin: Option<Origin>,
    /// The budget of the next chunk.
    grant: Option<Grant>,
    waiting: Option<Waiting>,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl FileBody {
    /// `length` bytes from `position` on. Waits for the budget of the first ones: once the response has begun, it
    /// cannot report that there is none.
    ///
    /// # Errors
    /// There was none in time.
    pub(super) async fn begin(
        file: HeldFile,
        position: u64,
        length: u64,
        origin: Option<Origin>,
    ) -> Result<Self, UsedUp> {
        let first = length.min(limits::MIN_CHUNK_BYTES as u64) as usize;
        let grant = match &origin {
            Some(origin) => Some(origin.take(first).await?),
            None => None,
        };
        Ok(Self {
            file,
            position,
            remaining: length,
            origin,
            grant,
            waiting: None,
            reading: None,
        })
    }

    /// The size of the next chunk.
    fn wanted(&self) -> usize {
        let chunk = match &self.origin {
            Some(origin) => origin.chunk().bytes(),
            None => limits::FILE_CHUNK_BYTES,
        };
        usize::try_from(self.remaining).map_or(chunk, |remaining| remaining.min(chunk))
    }

    /// The size of the next chunk for which there is a budget. Waits for one.
    fn poll_budget(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, UsedUp>> {
        let wanted = self.wanted();
        let Some(origin) = &self.origin else {
            return Poll::Ready(Ok(wanted));
        };
        if self.grant.is_none() && self.waiting.is_none() {
            self.grant = origin.try_take(wanted);
        }
        let grant = match &mut self.grant {
            Some(grant) => {
                grant.grow(&origin.account(), wanted);
                grant
            }
            none => {
                let waiting = &mut self.waiting;
                let waiting = waiting.get_or_insert_with(|| Box::pin(origin.take(wanted)));
                let granted = ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
                none.insert(granted?)
            }
        };
        Poll::Ready(Ok(grant.bytes()))
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        if self.reading.is_none() {
            let len = ready!(self.poll_budget(cx)).map_err(io::Error::other)?;
            let mut chunk = vec![0; len];
            match read_cached(self.file.file(), &mut chunk, self.position) {
                Ok(read) => {
                    truncate(&mut chunk, read);
                    return Poll::Ready(Ok(chunk));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            let file = Arc::clone(self.file.file());
            let position = self.position;
            self.reading = Some(tokio::task::spawn_blocking(move || {
                let read = read_at(&file, &mut chunk, position)?;
                truncate(&mut chunk, read);
                Ok(chunk)
            }));
        }
        let Some(reading) = &mut self.reading else {
            return Poll::Pending;
        };
        let chunk = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        Poll::Ready(chunk?)
    }
}

/// Shortens `chunk`, and gives back memory if much of it is not used.
fn truncate(chunk: &mut Vec<u8>, len: usize) {
    chunk.truncate(len);
    if len < chunk.capacity() / 2 {
        chunk.shrink_to_fit();
    }
}

impl http_body::Body for FileBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if this.remaining == 0 {
            return Poll::Ready(None);
        }
        let chunk = match ready!(this.poll_chunk(cx)) {
            Ok(chunk) if chunk.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            chunk => chunk,
        };
        let grant = this.grant.take();
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                this.remaining = 0;
                return Poll::Ready(Some(Err(error.into())));
            }
        };
        this.position += chunk.len() as u64;
        this.remaining -= chunk.len() as u64;
        let bytes = match grant {
            Some(grant) => grant.hold(chunk),
            None => chunk.into(),
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

/// The first `len` bytes of `file`, if the system has them in memory, and the budget of `origin` has room for them now.
pub(super) fn read_whole(file: &File, len: usize, origin: Option<&Origin>) -> Option<Bytes> {
    let grant = match origin {
        Some(origin) => Some(origin.try_take(len)?),
        None => None,
    };
    let mut content = vec![0; len];
    let is_whole = read_cached(file, &mut content, 0).is_ok_and(|read| read == len);
    // Less than `wanted` may be granted.
    let is_covered = grant.as_ref().is_none_or(|grant| grant.bytes() >= len);
    (is_whole && is_covered).then(|| match grant {
        Some(grant) => grant.hold(content),
        None => content.into(),
    })
}

/// Reads data in the page cache; [`io::ErrorKind::WouldBlock`] if the disk has to be read.
#[cfg(target_os = "linux")]
fn read_cached(file: &File, buf: &mut [u8], position: u64) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    let mut buffers = [io::IoSliceMut::new(buf)];
    match preadv2(file, &mut buffers, position, ReadWriteFlags::NOWAIT) {
        // Some file systems do not support the flag.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
        answer => answer.map_err(Into::into),
    }
}

#[cfg(not(target_os = "linux"))]
fn read_cached(_file: &File, _buf: &mut [u8], _position: u64) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}

fn read_at(file: &File, buf: &mut [u8], position: u64) -> io::Result<usize> {
    loop {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(file, buf, position);
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(file, buf, position);
        match read {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}
