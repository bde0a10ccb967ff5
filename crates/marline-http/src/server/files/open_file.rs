//! The file that `ServeDir` has opened, and the place that it has found in it.

use std::fs::Metadata;
use std::future::{Ready, ready};
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs;

use super::super::open_files::HeldFile;

/// The file of a response: `ServeDir` chooses it, and does not read it.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen(Arc<Mutex<Option<Place>>>);

/// A position in an open file.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) file: HeldFile,
    pub(super) position: u64,
}

impl Chosen {
    /// The file, if one was opened.
    pub(super) fn take(&self) -> Option<Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn replace(&self, place: Option<Place>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub(super) struct OpenFile {
    chosen: Chosen,
    metadata: Metadata,
    position: u64,
}

impl OpenFile {
    /// The file is `chosen`, and what was chosen before no longer is.
    pub(super) fn new(chosen: Chosen, file: HeldFile, metadata: Metadata) -> Self {
        chosen.replace(Some(Place { file, position: 0 }));
        Self {
            chosen,
            metadata,
            position: 0,
        }
    }
}

impl AsyncRead for OpenFile {
    /// Fails: [`FileBody`](super::body::FileBody) reads what was chosen.
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
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
        let place = this.chosen.take().map(|place| Place {
            position: this.position,
            ..place
        });
        this.chosen.replace(place);
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
