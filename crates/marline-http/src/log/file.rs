//! A log in a file, which is rotated.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::messages::{self, Subject};
use super::queue::Stream;
use super::rotation::{LogRotation, Rotated};
use super::{Entry, Level, Sink};
use crate::file::open_for_appending;
use crate::limits;

/// A file to which lines are appended.
pub(super) struct LogFile {
    stream: Stream<File>,
    rotating: Option<Rotating>,
}

/// A file that is rotated.
struct Rotating {
    rotation: LogRotation,
    rotated: Rotated,
    path: PathBuf,
    /// Bytes in the file.
    size: u64,
    /// The period of the lines in the file.
    period: Option<u64>,
    /// When its place was looked at, in seconds since 1970.
    checked: f64,
    /// No further attempt before, in seconds since 1970.
    retry: f64,
}

impl LogFile {
    /// Appends to the file at `path`, which is created if there is none. It may be a pipe that a process reads. Does not
    /// wait for that.
    pub(super) fn open(
        path: &Path,
        is_stamped: bool,
        rotation: Option<LogRotation>,
    ) -> io::Result<Self> {
        let file = open_for_appending(path)?;
        let rotating = match rotation {
            Some(rotation) => Some(Rotating::new(rotation, path, &file.metadata()?)?),
            None => None,
        };
        Ok(Self {
            stream: Stream::new(file, is_stamped),
            rotating,
        })
    }

    /// Whether it is neither a pipe nor a device.
    pub(super) fn is_regular(&self) -> bool {
        self.stream
            .out
            .metadata()
            .is_ok_and(|metadata| metadata.is_file())
    }

    /// Makes the file a new one if a line of this time and length is not to be in it.
    fn rotate(&mut self, time: f64, length: usize) {
        let Some(rotating) = &mut self.rotating else {
            return;
        };
        if let Some(file) = rotating.next(&self.stream.out, time, length) {
            self.stream.out = file;
        }
        rotating.size += length as u64;
    }
}

impl Sink for LogFile {
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let line = self.stream.line(entry);
        self.rotate(entry.time, line.len());
        self.stream.write_line(&line)
    }
}

impl Rotating {
    fn new(rotation: LogRotation, path: &Path, metadata: &Metadata) -> io::Result<Self> {
        // The file that a symbolic link names is rotated, and not the link.
        let path = fs::canonicalize(path)?;
        if metadata.is_file()
            && let Some(beside) = path.parent()
        {
            // Found out now, and not at the first rotation.
            tempfile::tempfile_in(beside).map_err(|error| {
                let text = format!("no file can be created beside it, as rotation needs: {error}");
                io::Error::new(error.kind(), text)
            })?;
        }
        let rotated = Rotated::of(&path);
        let mut this = Self {
            rotation,
            rotated,
            path,
            size: 0,
            period: None,
            checked: 0.0,
            retry: 0.0,
        };
        this.on_open(metadata);
        Ok(this)
    }

    /// The file is another one, with this `metadata`.
    fn on_open(&mut self, metadata: &Metadata) {
        self.size = metadata.len();
        let written = metadata.modified().ok().filter(|_| self.size > 0);
        let written = written.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        self.period = written.and_then(|at| self.rotation.period(at.as_secs_f64()));
    }

    /// The file in place of `file` for a line of this time and length, if it is another one.
    fn next(&mut self, file: &File, time: f64, length: usize) -> Option<File> {
        // Another process, or the configuration before this one, may have rotated it.
        let mut other = None;
        if (time - self.checked).abs() >= limits::LOG_FILE_CHECK.as_secs_f64() {
            self.checked = time;
            match (is_at(&self.path, file), file.metadata()) {
                (false, _) => other = self.reopen(),
                // Another process may write to it as well.
                (true, Ok(metadata)) => self.size = metadata.len(),
                (true, Err(_)) => {}
            }
        }
        let rotated = self.next_if_due(other.as_ref().unwrap_or(file), time, length);
        rotated.or(other)
    }

    fn next_if_due(&mut self, file: &File, time: f64, length: usize) -> Option<File> {
        let period = self.rotation.period(time);
        let is_older = self.size > 0 && self.period.is_some() && self.period < period;
        let is_full = self.size > 0 && !self.rotation.has_room(self.size + length as u64);
        if self.period.is_none() {
            self.period = period;
        }
        if !(is_older || is_full) || time < self.retry {
            return None;
        }
        match self.rotate(file, time) {
            Ok(file) => {
                self.period = period;
                file
            }
            Err(error) => {
                self.retry = time + limits::LOG_COMPLAINTS.as_secs_f64();
                let path = self.path.display();
                let text = format!(
                    "the log {path} was not rotated: {error}; files have to be created beside it"
                );
                messages::emit(Level::Error, Subject::Log, &text);
                None
            }
        }
    }

    fn reopen(&mut self) -> Option<File> {
        let file = open_for_appending(&self.path).ok()?;
        self.on_open(&file.metadata().ok()?);
        Some(file)
    }

    /// Renames the file, and opens a new one, unless another process does.
    fn rotate(&mut self, file: &File, time: f64) -> io::Result<Option<File>> {
        // Released with the file.
        if !lock(file)? {
            return Ok(None);
        }
        if !is_at(&self.path, file) {
            return Ok(self.reopen());
        }
        let to = self.rotated.name(time)?;
        fs::rename(&self.path, &to)?;
        let opened = open_for_appending(&self.path)
            .and_then(|file| Ok((file.metadata()?, file)))
            .inspect_err(|_| {
                // The lines go on where they were.
                let _ = fs::rename(&to, &self.path);
            });
        let (metadata, file) = opened?;
        self.on_open(&metadata);
        self.rotated.tidy(&self.rotation);
        Ok(Some(file))
    }
}

/// Whether the file at `path` is `file`.
#[cfg(unix)]
fn is_at(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;

    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(open)) => there.dev() == open.dev() && there.ino() == open.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(path: &Path, _file: &File) -> bool {
    path.exists()
}

/// Locks `file` against other processes while it is open. Returns whether none of them has it.
#[cfg(unix)]
pub(super) fn lock(file: &File) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
pub(super) fn lock(_file: &File) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
#[path = "file/tests.rs"]
mod tests;
