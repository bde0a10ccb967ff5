//! Files of logs that are created late and only within limits.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use super::QlogLimits;
use crate::log::Level;
use crate::log::messages::{self, Subject};

/// Bytes kept for a file that is not permitted yet: a handshake with a long certificate chain.
const HELD_BYTES: usize = 64 * 1024;

/// Bytes kept for all files that are not permitted yet: some thousand handshakes at once.
const HELD_BYTES_OF_ALL: u64 = 16 * 1024 * 1024;

/// The budget of the logs of a server or a client, and its use.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: RwLock<QlogLimits>,
    open: AtomicUsize,
    created: AtomicU64,
    bytes: AtomicU64,
    /// Bytes kept for files that are not permitted yet.
    held: AtomicU64,
    is_reported: AtomicBool,
    /// Makes the suffixes of names: its keys are random.
    names: RandomState,
}

impl Budget {
    pub(crate) fn new(limits: QlogLimits) -> Arc<Self> {
        Arc::new(Self {
            limits: RwLock::new(limits),
            open: AtomicUsize::new(0),
            created: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            held: AtomicU64::new(0),
            is_reported: AtomicBool::new(false),
            names: RandomState::new(),
        })
    }

    /// Replaces the limits; resources in use are kept.
    pub(crate) fn set_limits(&self, limits: QlogLimits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
        self.is_reported.store(false, Relaxed);
    }

    fn limits(&self) -> QlogLimits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place of a file; returns its number.
    fn take_file(&self) -> io::Result<u64> {
        let limits = self.limits();
        let below = |limit: u64| move |count: u64| (count < limit).then_some(count + 1);
        let open = |count: usize| (count < limits.open_files).then_some(count + 1);
        if self.open.fetch_update(Relaxed, Relaxed, open).is_err() {
            return Err(self.exceeded("files open at once"));
        }
        let number = self
            .created
            .fetch_update(Relaxed, Relaxed, below(limits.files));
        number.map_err(|_| {
            self.open.fetch_sub(1, Relaxed);
            self.exceeded("files")
        })
    }

    fn take_bytes(&self, count: usize) -> io::Result<()> {
        let count = count as u64;
        let limit = self.limits().bytes;
        let take = |used: u64| {
            let used = used.saturating_add(count);
            (used <= limit).then_some(used)
        };
        let taken = self.bytes.fetch_update(Relaxed, Relaxed, take);
        taken
            .map(|_| ())
            .map_err(|_| self.exceeded("bytes of all files"))
    }

    /// Whether `count` more bytes may be kept.
    fn hold(&self, count: usize) -> bool {
        let hold = |held: u64| {
            let held = held.saturating_add(count as u64);
            (held <= HELD_BYTES_OF_ALL).then_some(held)
        };
        self.held.fetch_update(Relaxed, Relaxed, hold).is_ok()
    }

    fn release(&self, count: usize) {
        self.held.fetch_sub(count as u64, Relaxed);
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    #[cold]
    fn exceeded(&self, what: &str) -> io::Error {
        if !self.is_reported.swap(true, Relaxed) {
            let text = format!("the limit of qlog on {what} is reached; some logs are missing");
            messages::emit(Level::Warning, Subject::Quic, &text);
        }
        io::Error::other("the limit of qlog is reached")
    }

    #[cfg(test)]
    pub(super) fn has_reported(&self) -> bool {
        self.is_reported.load(Relaxed)
    }
}

/// Whether a log may have a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Start(Arc<AtomicBool>);

impl Start {
    pub(super) fn permit(&self) {
        self.0.store(true, Relaxed);
    }

    pub(super) fn is_permitted(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// A file that is created with the first bytes that are written after its [`Start`] permits it.
///
/// Writers write whole records: records beyond the limits are dropped. A log without its beginning is not written.
#[derive(Debug)]
pub(super) struct LogFile {
    /// The path up to the suffix.
    base: PathBuf,
    side: &'static str,
    budget: Arc<Budget>,
    start: Start,
    held: Vec<u8>,
    file: Option<File>,
}

impl LogFile {
    pub(super) fn new(
        base: PathBuf,
        side: &'static str,
        budget: Arc<Budget>,
        start: Start,
    ) -> Self {
        Self {
            base,
            side,
            budget,
            start,
            held: Vec::new(),
            file: None,
        }
    }

    fn create(&self) -> io::Result<File> {
        let number = self.budget.take_file()?;
        let suffix = self.budget.names.hash_one(number);
        let mut path = self.base.clone().into_os_string();
        path.push(format!("_{suffix:016x}_{}.sqlog", self.side));
        create_private(Path::new(&path)).inspect_err(|_| {
            self.budget.open.fetch_sub(1, Relaxed);
        })
    }
}

/// Creates a file that only its owner can read. Never follows a link or overwrites a file.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.start.is_permitted() {
            let is_kept =
                self.held.len() + bytes.len() <= HELD_BYTES && self.budget.hold(bytes.len());
            if is_kept {
                self.held.extend_from_slice(bytes);
            }
            return match is_kept || !self.held.is_empty() {
                true => Ok(bytes.len()),
                false => Err(io::Error::other("too much is held")),
            };
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.create()?,
        };
        let held = std::mem::take(&mut self.held);
        self.budget.release(held.len());
        let written = self
            .budget
            .take_bytes(held.len() + bytes.len())
            .and_then(|()| file.write_all(&held))
            .and_then(|()| file.write_all(bytes));
        self.file = Some(file);
        written.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.budget.release(self.held.len());
        if self.file.is_some() {
            self.budget.open.fetch_sub(1, Relaxed);
        }
    }
}
