//! A file that is read from the page cache directly, and from the disk on a blocking thread.

use std::fs::{File, Metadata};
use std::future::{Future, Ready, ready};
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::JoinHandle;
use tower_http::services::fs;

use super::open_files::HeldFile;

/// A regular file that is open for reading, with its own position.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: HeldFile,
    metadata: Metadata,
    position: u64,
    waiting: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl OpenFile {
    pub(super) fn new(file: HeldFile, metadata: Metadata) -> Self {
        Self {
            file,
            metadata,
            position: 0,
            waiting: None,
        }
    }

    fn start_blocking_read(&mut self, len: usize) -> &mut JoinHandle<io::Result<Vec<u8>>> {
        let file = Arc::clone(self.file.file());
        let position = self.position;
        self.waiting.insert(tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; len];
            let read = read_at(&file, &mut chunk, position)?;
            chunk.truncate(read);
            Ok(chunk)
        }))
    }
}

impl AsyncRead for OpenFile {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let waiting = match &mut this.waiting {
            Some(waiting) => waiting,
            None => match read_cached(this.file.file(), buf.initialize_unfilled(), this.position) {
                Ok(read) => {
                    buf.advance(read);
                    this.position += read as u64;
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    this.start_blocking_read(buf.remaining())
                }
                Err(error) => return Poll::Ready(Err(error)),
            },
        };
        let chunk = ready!(Pin::new(waiting).poll(cx));
        this.waiting = None;
        let chunk = chunk??;
        // A reader that polls again with a smaller buffer gets less, and reads the rest again.
        let len = chunk.len().min(buf.remaining());
        buf.put_slice(&chunk[..len]);
        this.position += len as u64;
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for OpenFile {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let this = self.get_mut();
        let base = match position {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(offset) => this.position.checked_add_signed(offset),
            SeekFrom::End(offset) => this.metadata.len().checked_add_signed(offset),
        };
        this.position = base.ok_or(io::ErrorKind::InvalidInput)?;
        this.waiting = None;
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position))
    }
}

impl fs::File for OpenFile {
    type Metadata = Metadata;
    type MetadataFuture<'a> = Ready<io::Result<Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.metadata.clone()))
    }
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
