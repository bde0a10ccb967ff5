//! The file that `ServeDir` has opened, and the position that it has selected in it.

use std::fs::Metadata;
use std::future::{Ready, ready};
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs;

use super::super::open_files::HeldFile;
use super::root::Opened;

/// The file of a response: `ServeDir` chooses it, and does not read it.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen(Arc<Mutex<Choice>>);

#[derive(Debug, Default)]
struct Choice {
    place: Option<Place>,
    modified: Option<Modified>,
    looked_at: Option<LookedAt>,
    /// Whether metadata was asked for before.
    is_asked: bool,
}

/// A file that was opened for its metadata. `ServeDir` asks for these first, and opens the same path then.
#[derive(Debug)]
struct LookedAt {
    path: PathBuf,
    opened: Opened,
}

/// A position in an open file.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) file: HeldFile,
    pub(super) position: u64,
}

/// The modification state of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modified {
    pub(super) time: SystemTime,
    pub(super) len: u64,
}

impl Chosen {
    fn lock(&self) -> MutexGuard<'_, Choice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, if one was opened.
    pub(super) fn take(&self) -> Option<Place> {
        self.lock().place.take()
    }

    /// The state of the file found last, if the file system has times.
    pub(super) fn modified(&self) -> Option<Modified> {
        self.lock().modified
    }

    fn replace(&self, place: Option<Place>) {
        self.lock().place = place;
    }

    /// Whether these are the first metadata that `ServeDir` asks for: those of the path of the request, which may be a directory.
    pub(super) fn is_first(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_asked, true)
    }

    /// Keeps what was opened for its metadata.
    pub(super) fn look_at(&self, path: PathBuf, opened: Opened) {
        self.lock().looked_at = Some(LookedAt { path, opened });
    }

    /// The file that was opened at `path` for its metadata.
    pub(super) fn take_looked_at(&self, path: &Path) -> Option<Opened> {
        let mut choice = self.lock();
        let looked_at = choice.looked_at.take_if(|looked_at| looked_at.path == path);
        looked_at.map(|looked_at| looked_at.opened)
    }

    /// A file was found.
    pub(super) fn found(&self, metadata: &Metadata) {
        let time = metadata.modified().ok();
        let len = metadata.len();
        self.lock().modified = time.map(|time| Modified { time, len });
    }
}

/// The metadata of a file for `ServeDir`, without validators: some times make it panic.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    is_directory: bool,
    len: u64,
}

impl State {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            is_directory: metadata.is_dir(),
            len: metadata.len(),
        }
    }
}

impl fs::Metadata for State {
    fn is_dir(&self) -> bool {
        self.is_directory
    }

    fn modified(&self) -> io::Result<SystemTime> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub(super) struct OpenFile {
    chosen: Chosen,
    state: State,
    position: u64,
}

impl OpenFile {
    /// Makes the file the `chosen` one, instead of any before.
    pub(super) fn new(chosen: Chosen, file: HeldFile, metadata: &Metadata) -> Self {
        chosen.replace(Some(Place { file, position: 0 }));
        chosen.found(metadata);
        Self {
            chosen,
            state: State::of(metadata),
            position: 0,
        }
    }
}

impl AsyncRead for OpenFile {
    /// Fails: [`FileBody`](super::body::FileBody) reads the chosen file.
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
            SeekFrom::End(offset) => this.state.len.checked_add_signed(offset),
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
    type Metadata = State;
    type MetadataFuture<'a> = Ready<io::Result<State>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.state))
    }
}
