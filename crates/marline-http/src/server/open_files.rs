//! The files that responses hold open: each once, and not more than the system allows.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline::Prefix;

use super::shares::Shares;

/// The open files of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct OpenFiles(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    shares: Shares,
    files: BTreeMap<Identity, Entry>,
}

/// A file that is open.
#[derive(Debug)]
struct Entry {
    file: Arc<File>,
    /// Responses of each client that hold it.
    holders: BTreeMap<Prefix, usize>,
}

/// Which file it is, as long as it is open: a new version of it has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;

        Some(Self {
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }

    /// Elsewhere files have no number, and are not shared.
    #[cfg(not(unix))]
    fn of(_metadata: &Metadata) -> Option<Self> {
        None
    }
}

/// The client holds as many open files as it may, or the system allows no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many files are open")]
pub(super) struct TooManyFiles;

impl OpenFiles {
    /// Allows `limit` open files.
    pub(super) fn new(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            shares: Shares::new(limit),
            files: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files that are open.
    pub(super) fn open(&self) -> u64 {
        self.state().shares.used()
    }

    /// Holds `file` for a response to `client`. If it is open already, `file` is closed, and the open one is used.
    ///
    /// # Errors
    /// The client may hold no other file.
    pub(super) fn hold(
        &self,
        client: Prefix,
        file: File,
        metadata: &Metadata,
    ) -> Result<HeldFile, TooManyFiles> {
        let identity = Identity::of(metadata);
        let file = self.state().hold(client, identity, file)?;
        let holder = Holder {
            files: self.clone(),
            client,
            identity,
        };
        Ok(HeldFile {
            file,
            _holder: Some(holder),
        })
    }
}

impl State {
    fn hold(
        &mut self,
        client: Prefix,
        identity: Option<Identity>,
        file: File,
    ) -> Result<Arc<File>, TooManyFiles> {
        let shared = identity.and_then(|identity| self.files.get_mut(&identity));
        if let Some(entry) = shared {
            let holding = entry.holders.entry(client).or_default();
            *holding += 1;
            if *holding == 1 {
                self.shares.charge(client, 1);
            }
            return Ok(Arc::clone(&entry.file));
        }
        if !self.shares.take(client, 1) {
            return Err(TooManyFiles);
        }
        let file = Arc::new(file);
        if let Some(identity) = identity {
            let entry = Entry {
                file: Arc::clone(&file),
                holders: BTreeMap::from([(client, 1)]),
            };
            self.files.insert(identity, entry);
        }
        Ok(file)
    }

    fn let_go(&mut self, client: Prefix, identity: Option<Identity>) {
        let Some(identity) = identity else {
            return self.shares.give_back(client, 1);
        };
        let Some(entry) = self.files.get_mut(&identity) else {
            return;
        };
        if let Some(holding) = entry.holders.get_mut(&client) {
            *holding -= 1;
            if *holding == 0 {
                entry.holders.remove(&client);
                self.shares.discharge(client, 1);
            }
        }
        if entry.holders.is_empty() {
            self.files.remove(&identity);
            self.shares.free(1);
        }
    }
}

/// An open file, which is closed when nobody holds it any more.
#[derive(Debug)]
pub(super) struct HeldFile {
    file: Arc<File>,
    _holder: Option<Holder>,
}

impl HeldFile {
    /// A file that counts nowhere.
    pub(super) fn uncounted(file: File) -> Self {
        Self {
            file: Arc::new(file),
            _holder: None,
        }
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

/// Who holds which file.
#[derive(Debug)]
struct Holder {
    files: OpenFiles,
    client: Prefix,
    identity: Option<Identity>,
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.files.state().let_go(self.client, self.identity);
    }
}

/// Whether a request fails because files or memory have run out, and may succeed later.
pub(super) fn is_exhaustion(error: &io::Error) -> bool {
    // ENFILE, EMFILE and ENOMEM have the same numbers on all systems with these names.
    let is_system = cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24 | 12));
    is_system
        || error
            .get_ref()
            .is_some_and(|cause| cause.is::<TooManyFiles>())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn client(number: u8) -> Prefix {
        Prefix::of_network([10, 0, number, 1].into())
    }

    /// Some files that can be held.
    struct Directory(TempDir);

    impl Directory {
        fn new() -> Self {
            let directory = TempDir::new().unwrap();
            for name in 0..20 {
                std::fs::write(directory.path().join(name.to_string()), b"").unwrap();
            }
            Self(directory)
        }

        fn hold(
            &self,
            files: &OpenFiles,
            client: Prefix,
            name: u32,
        ) -> Result<HeldFile, TooManyFiles> {
            let file = File::open(self.0.path().join(name.to_string())).unwrap();
            let metadata = file.metadata().unwrap();
            files.hold(client, file, &metadata)
        }
    }

    #[cfg(unix)]
    #[test]
    fn responses_share_one_open_file() {
        let directory = Directory::new();
        let files = OpenFiles::new(2);
        let held: Vec<_> = (1..=4)
            .map(|number| directory.hold(&files, client(number), 0).unwrap())
            .collect();
        assert_eq!(files.open(), 1);
        assert!(held.iter().all(|one| Arc::ptr_eq(&one.file, &held[0].file)));
        drop(held);
        assert_eq!(files.open(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_replaced_is_another_one() {
        let directory = Directory::new();
        let files = OpenFiles::new(10);
        let old = directory.hold(&files, client(1), 0).unwrap();
        std::fs::rename(directory.0.path().join("1"), directory.0.path().join("0")).unwrap();
        let new = directory.hold(&files, client(1), 0).unwrap();
        assert!(!Arc::ptr_eq(&old.file, &new.file));
        assert_eq!(files.open(), 2);
    }

    #[test]
    fn one_client_cannot_hold_all_files() {
        let directory = Directory::new();
        let files = OpenFiles::new(10);
        let held: Vec<_> = (0..20)
            .filter_map(|name| directory.hold(&files, client(1), name).ok())
            .collect();
        assert_eq!(held.len(), 5);
        let other = directory.hold(&files, client(2), 19);
        assert!(other.is_ok());
        drop(held);
        assert!(directory.hold(&files, client(1), 10).is_ok());
    }

    #[test]
    fn a_lack_of_files_is_exhaustion() {
        assert!(is_exhaustion(&io::Error::other(TooManyFiles)));
        assert!(!is_exhaustion(&io::ErrorKind::NotFound.into()));
        #[cfg(unix)]
        assert!(is_exhaustion(&io::Error::from_raw_os_error(24)));
    }
}
