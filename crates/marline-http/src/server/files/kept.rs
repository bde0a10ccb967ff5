//! Small files that are asked for often.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::HeaderValue;
#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp, statx};

use super::root::Opened;
use super::validators::Validators;
use crate::limits;

/// The contents of small files. Whether a file is as it was is asked for each request, which takes one system call rather than the four
/// of opening, checking, reading and closing it.
#[derive(Debug, Default)]
pub(super) struct KeptFiles(Mutex<HashMap<PathBuf, Entry>>);

#[derive(Debug)]
struct Entry {
    state: FileState,
    /// When it is read again in any case: a program that has mapped the file changes its time late.
    until: SystemTime,
    file: Arc<KeptFile>,
}

/// A file without a content coding.
#[derive(Debug)]
pub(super) struct KeptFile {
    pub(super) kind: Option<HeaderValue>,
    pub(super) validators: Validators,
    pub(super) content: Bytes,
}

impl KeptFiles {
    /// The file at `path` in `directory`, if it is kept and has not changed at `now`.
    pub(super) fn get(
        &self,
        directory: &File,
        path: &Path,
        now: SystemTime,
    ) -> Option<Arc<KeptFile>> {
        let (state, file) = {
            let files = self.lock();
            let entry = files.get(path)?;
            if entry.until <= now {
                return None;
            }
            (entry.state, Arc::clone(&entry.file))
        };
        (FileState::at(directory, path)? == state).then_some(file)
    }

    /// Keeps the file at `path`, which was `opened` and then read, if it has not changed for a while at `now`: of two changes within
    /// the resolution of times, the second is not noticed.
    pub(super) fn keep(&self, path: PathBuf, opened: &Opened, now: SystemTime, file: KeptFile) {
        let Some(state) = FileState::of(&opened.file) else {
            return;
        };
        let settled = state.changed.checked_add(limits::KEPT_FILE_TIME);
        let is_settled = settled.is_some_and(|settled| settled <= now);
        let is_same = opened.metadata.modified().ok() == Some(state.modified)
            && opened.metadata.len() == state.len;
        if !is_settled || !is_same {
            return;
        }
        let mut files = self.lock();
        if files.len() >= limits::KEPT_FILES {
            files.clear();
        }
        files.insert(
            path,
            Entry {
                state,
                until: now + limits::KEPT_FILE_TIME,
                file: Arc::new(file),
            },
        );
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The properties of a file of which one changes if its content, its permissions, or the file of its name does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: (u32, u32),
    number: u64,
    len: u64,
    modified: SystemTime,
    changed: SystemTime,
}

#[cfg(target_os = "linux")]
impl FileState {
    /// That of the file at `path` in `directory`.
    fn at(directory: &File, path: &Path) -> Option<Self> {
        Self::read(directory, path, AtFlags::empty())
    }

    /// That of an open file.
    fn of(file: &File) -> Option<Self> {
        Self::read(file, Path::new(""), AtFlags::EMPTY_PATH)
    }

    fn read(place: &File, path: &Path, flags: AtFlags) -> Option<Self> {
        let state = statx(place, path, flags, StatxFlags::BASIC_STATS).ok()?;
        let time = |at: StatxTimestamp| {
            let since = Duration::new(u64::try_from(at.tv_sec).ok()?, at.tv_nsec);
            UNIX_EPOCH.checked_add(since)
        };
        Some(Self {
            device: (state.stx_dev_major, state.stx_dev_minor),
            number: state.stx_ino,
            len: state.stx_size,
            modified: time(state.stx_mtime)?,
            changed: time(state.stx_ctime)?,
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl FileState {
    fn at(_directory: &File, _path: &Path) -> Option<Self> {
        None
    }

    fn of(_file: &File) -> Option<Self> {
        None
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use super::*;

    /// A directory with the file `a`, and what is kept of it.
    struct Place {
        directory: tempfile::TempDir,
        opened: File,
        files: KeptFiles,
    }

    impl Place {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("a"), "first").unwrap();
            Self {
                opened: File::open(directory.path()).unwrap(),
                directory,
                files: KeptFiles::default(),
            }
        }

        fn keep(&self, now: SystemTime) {
            let file = File::open(self.directory.path().join("a")).unwrap();
            let metadata = file.metadata().unwrap();
            let opened = Opened { file, metadata };
            let kept = KeptFile {
                kind: None,
                validators: Validators::new(now, 5, None, None),
                content: Bytes::from_static(b"first"),
            };
            self.files.keep("a".into(), &opened, now, kept);
        }

        /// When the file was changed.
        fn changed(&self) -> SystemTime {
            FileState::at(&self.opened, Path::new("a")).unwrap().changed
        }

        /// A time at which the file has not changed for a while.
        fn later(&self) -> SystemTime {
            self.changed() + Duration::from_secs(60)
        }

        fn is_kept(&self, now: SystemTime) -> bool {
            let found = self.files.get(&self.opened, Path::new("a"), now);
            found.is_some()
        }
    }

    #[test]
    fn files_are_kept_for_a_while_once_they_have_not_changed_for_a_while() {
        let place = Place::new();
        let early = place.changed();
        place.keep(early);
        assert!(!place.is_kept(early));
        let now = place.later();
        place.keep(now);
        assert!(place.is_kept(now));
        let last = now + limits::KEPT_FILE_TIME - Duration::from_nanos(1);
        assert!(place.is_kept(last));
        assert!(!place.is_kept(now + limits::KEPT_FILE_TIME));
    }

    #[test]
    fn a_file_that_has_changed_is_not_kept_whatever_its_size_and_time_say() {
        let changes: [fn(&Path); 4] = [
            |path| {
                let modified = fs::metadata(path).unwrap().modified().unwrap();
                fs::write(path, "other").unwrap();
                let file = fs::File::options().write(true).open(path).unwrap();
                file.set_modified(modified).unwrap();
            },
            |path| {
                let other = path.with_file_name("b");
                fs::write(&other, "other").unwrap();
                fs::rename(other, path).unwrap();
            },
            |path| fs::remove_file(path).unwrap(),
            |path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            },
        ];
        for change in changes {
            let place = Place::new();
            let now = place.later();
            place.keep(now);
            assert!(place.is_kept(now));
            // Times have the resolution of the kernel's tick.
            let before = place.changed();
            let touched = || {
                let probe = place.directory.path().join("probe");
                fs::write(probe, "").unwrap();
                FileState::at(&place.opened, Path::new("probe"))
                    .unwrap()
                    .changed
            };
            while touched() <= before {}
            change(&place.directory.path().join("a"));
            assert!(!place.is_kept(now));
        }
    }

    #[test]
    fn the_number_of_kept_files_is_limited() {
        let place = Place::new();
        let now = place.later() + Duration::from_secs(60);
        for number in 0..3 * limits::KEPT_FILES {
            let name = number.to_string();
            let path = place.directory.path().join(&name);
            fs::write(&path, "first").unwrap();
            let file = File::open(&path).unwrap();
            let metadata = file.metadata().unwrap();
            let kept = KeptFile {
                kind: None,
                validators: Validators::new(now, 5, None, None),
                content: Bytes::from_static(b"first"),
            };
            let opened = Opened { file, metadata };
            place.files.keep(name.into(), &opened, now, kept);
            assert!(place.files.lock().len() <= limits::KEPT_FILES);
        }
    }
}
