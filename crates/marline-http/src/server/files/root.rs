//! A file system confined to one directory.

#[cfg(target_os = "linux")]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::Semaphore;
use tower_http::services::fs::Backend;

use super::super::open_files::HeldFile;
use super::DirectoryEntry;
use super::kept::{KeptFile, KeptFiles};
use super::names::actual;
use super::open_file::{Chosen, OpenFile, State};
use crate::limits;
use crate::server::resources::Origin;

type BoxFuture<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// The served directory, and the request it is served for. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Root {
    inner: Arc<Inner>,
    /// The origin of the request, if budgets count it.
    origin: Option<Origin>,
    chosen: Chosen,
}

#[derive(Debug)]
struct Inner {
    /// Absolute, without symbolic links.
    path: PathBuf,
    #[cfg(target_os = "linux")]
    directory: File,
    follow_links: bool,
    /// Files that are being opened on blocking threads.
    opening: Semaphore,
    kept: KeptFiles,
}

/// Whether opening may block on the disk.
#[derive(Clone, Copy, PartialEq)]
enum Wait {
    Never,
    Allowed,
}

impl Root {
    pub(super) fn open(path: &Path, follow_links: bool) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        if !fs::metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        fs::read_dir(&path)?;
        Ok(Self {
            inner: Arc::new(Inner {
                #[cfg(target_os = "linux")]
                directory: File::open(&path)?,
                path,
                follow_links,
                opening: Semaphore::new(limits::OPENING_FILES),
                kept: KeptFiles::default(),
            }),
            origin: None,
            chosen: Chosen::default(),
        })
    }

    /// The same directory for a request from `origin`; the file of its response becomes `chosen`.
    pub(super) fn for_request(&self, origin: Option<Origin>, chosen: Chosen) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            origin,
            chosen,
        }
    }

    /// The origin of the request, if budgets count it.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The file at `path` if it is kept in memory, and has not changed at `now`.
    pub(super) fn kept(&self, path: &Path, now: SystemTime) -> Option<Arc<KeptFile>> {
        #[cfg(target_os = "linux")]
        return self.inner.kept.get(&self.inner.directory, path, now);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Keeps a small file: see [`KeptFiles::keep`].
    pub(super) fn keep(&self, path: PathBuf, opened: &Opened, now: SystemTime, file: KeptFile) {
        self.inner.kept.keep(path, opened, now, file);
    }

    /// The entries of the directory at `path`, `limit` of them at most.
    pub(super) async fn list(
        &self,
        path: PathBuf,
        limit: usize,
    ) -> io::Result<Vec<DirectoryEntry>> {
        let inner = Arc::clone(&self.inner);
        let _opening = self
            .inner
            .opening
            .acquire()
            .await
            .map_err(io::Error::other)?;
        tokio::task::spawn_blocking(move || inner.list(&path, limit)).await?
    }

    /// Opens from the system's cache, or else on a blocking thread.
    async fn open_anywhere(inner: Arc<Inner>, path: PathBuf) -> io::Result<Opened> {
        let opened = match inner.open(&path, Wait::Never) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let opener = Arc::clone(&inner);
                let _opening = inner.opening.acquire().await.map_err(io::Error::other)?;
                tokio::task::spawn_blocking(move || opener.open(&path, Wait::Allowed)).await?
            }
            answer => answer,
        };
        // A name that the file system cannot store is that of no file.
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidFilename => io::ErrorKind::NotFound.into(),
            _ => error,
        })
    }
}

/// A file or directory.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) metadata: Metadata,
}

impl Inner {
    fn open(&self, path: &Path, wait: Wait) -> io::Result<Opened> {
        let file = self.open_within(path, wait)?;
        let metadata = file.metadata()?;
        // Pipes, sockets and devices have no length for a `Content-Length`.
        if metadata.is_file() || metadata.is_dir() {
            Ok(Opened { file, metadata })
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn list(&self, path: &Path, limit: usize) -> io::Result<Vec<DirectoryEntry>> {
        let directory = self.open(path, Wait::Allowed)?;
        if !directory.metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let mut entries = Vec::new();
        for name in self.names(&directory.file, path)? {
            let name = name?;
            // Files that may not be read, and links that lead out, are not answered.
            let Ok(opened) = self.open(&path.join(&name), Wait::Allowed) else {
                continue;
            };
            entries.push(DirectoryEntry {
                name,
                is_directory: opened.metadata.is_dir(),
                bytes: opened.metadata.len(),
                modified: opened.metadata.modified().ok(),
            });
            if entries.len() == limit {
                break;
            }
        }
        Ok(entries)
    }

    /// The names in `directory`, which is open: nothing else can have taken the place of its path.
    #[cfg(target_os = "linux")]
    #[expect(clippy::unused_self, reason = "other systems have the path only")]
    fn names(
        &self,
        directory: &File,
        _path: &Path,
    ) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
        use std::os::unix::ffi::OsStrExt;

        let names = rustix::fs::Dir::read_from(directory)?.map(|entry| {
            let entry = entry?;
            Ok(OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
        });
        let is_link = |name: &OsString| name == "." || name == "..";
        Ok(names.filter(move |name| !name.as_ref().is_ok_and(is_link)))
    }

    #[cfg(not(target_os = "linux"))]
    fn names(
        &self,
        _directory: &File,
        path: &Path,
    ) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
        let entries = fs::read_dir(self.path.join(path))?;
        Ok(entries.map(|entry| Ok(entry?.file_name())))
    }

    #[cfg(target_os = "linux")]
    fn open_within(&self, path: &Path, wait: Wait) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        use rustix::io::Errno;

        let mut resolve = ResolveFlags::empty();
        if !self.follow_links {
            resolve |= ResolveFlags::BENEATH;
        }
        if wait == Wait::Never {
            resolve |= ResolveFlags::CACHED;
        }
        // NONBLOCK: opening a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        match openat2(&self.directory, path, flags, Mode::empty(), resolve) {
            Ok(file) => Ok(file.into()),
            // Links that lead out; sockets, and devices that are not there.
            Err(Errno::XDEV | Errno::LOOP | Errno::NXIO | Errno::NODEV) => {
                Err(io::ErrorKind::NotFound.into())
            }
            // Kernels before 5.6, and sandboxes that forbid the call.
            Err(Errno::NOSYS | Errno::PERM) if wait == Wait::Never => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(Errno::NOSYS | Errno::PERM) => self.open_checked(path),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_within(&self, path: &Path, wait: Wait) -> io::Result<File> {
        match wait {
            Wait::Never => Err(io::ErrorKind::WouldBlock.into()),
            Wait::Allowed => self.open_checked(path),
        }
    }

    /// Without the kernel's support: resolves the path, then checks that it is inside the directory.
    fn open_checked(&self, path: &Path) -> io::Result<File> {
        let mut path = self.path.join(path);
        if !self.follow_links {
            path = fs::canonicalize(path)?;
            if !path.starts_with(&self.path) {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        let kind = fs::metadata(&path)?;
        if !kind.is_file() && !kind.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        File::open(path)
    }
}

/// A file that is held open for a response, or a directory.
pub(super) struct HeldOpen {
    pub(super) file: HeldFile,
    pub(super) metadata: Metadata,
}

impl Root {
    /// Opens `path`, which is relative to the directory.
    pub(super) async fn look_at(&self, path: PathBuf) -> io::Result<Opened> {
        Self::open_anywhere(Arc::clone(&self.inner), path).await
    }

    /// Holds the file at `path` open for the request; `opened` is that file, if it is open already.
    pub(super) async fn hold(
        &self,
        path: PathBuf,
        mut opened: Option<Opened>,
    ) -> io::Result<HeldOpen> {
        loop {
            let Opened { file, metadata } = match opened.take() {
                Some(opened) => opened,
                None => self.look_at(path.clone()).await?,
            };
            let held = match &self.origin {
                Some(origin) => origin.hold(file, &metadata),
                None => Ok(HeldFile::uncounted(file)),
            };
            match (held, &self.origin) {
                (Ok(file), _) => return Ok(HeldOpen { file, metadata }),
                // The client's own network may hold another one.
                (Err(_), Some(origin)) if origin.becomes_proven().await => {}
                (Err(error), _) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl Backend for Root {
    type File = OpenFile;
    type Metadata = State;
    type OpenFuture = BoxFuture<OpenFile>;
    type MetadataFuture = BoxFuture<State>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        let root = self.clone();
        let path = actual(&path);
        let looked_at = root.chosen.take_looked_at(&path);
        Box::pin(async move {
            let HeldOpen { file, metadata } = root.hold(path, looked_at).await?;
            // One whose name is that of a variant: others are not opened.
            if metadata.is_dir() {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(OpenFile::new(root.chosen, file, &metadata))
        })
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        let path = actual(&path);
        let opened = Self::open_anywhere(Arc::clone(&self.inner), path.clone());
        let chosen = self.chosen.clone();
        let is_first = chosen.is_first();
        Box::pin(async move {
            let opened = opened.await?;
            // One whose name is that of a variant or of an index, for HEAD.
            if opened.metadata.is_dir() && !is_first {
                return Err(io::ErrorKind::NotFound.into());
            }
            let state = State::of(&opened.metadata);
            chosen.found(&opened.metadata);
            chosen.look_at(path, opened);
            Ok(state)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_file_whose_metadata_was_asked_is_the_one_that_is_opened() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.txt");
        fs::write(&path, "first").unwrap();
        let chosen = Chosen::default();
        let root = Root::open(place.path(), false).unwrap();
        let root = root.for_request(None, chosen.clone());
        Backend::metadata(&root, "a.txt".into()).await.unwrap();
        fs::write(place.path().join("b.txt"), "second one").unwrap();
        fs::rename(place.path().join("b.txt"), &path).unwrap();
        Backend::open(&root, "a.txt".into()).await.unwrap();
        assert_eq!(chosen.modified().unwrap().len, 5);
        // Only once: a second open gives the file of that moment.
        Backend::open(&root, "a.txt".into()).await.unwrap();
        assert_eq!(chosen.modified().unwrap().len, 10);
    }
}
