//! TLS sessions that a client may resume once, in memory and in a file.
//!
//! rustls accepts 0-RTT only for sessions that the server remembers and forgets when they are resumed, so that early data
//! cannot be replayed; sealed tickets do not suffice. The file is a journal, so that it is exact when the process is
//! killed: a line for each session that is stored or taken.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::server::StoresServerSessions;

use super::StateError;
use super::files::{self, Existing};
use crate::limits::{MAX_SESSION_BYTES, MAX_SESSION_FILES, MAX_SESSIONS, SESSION_FILE_LIFETIME};

/// The prefix of these files' names.
pub(super) const PREFIX: &str = "sessions-";

/// The first word of the file.
const FORMAT: &str = "marline-sessions-1";

/// The sessions of one endpoint. The oldest is forgotten first.
pub(crate) struct Sessions(Mutex<Inner>);

struct Inner {
    path: PathBuf,
    settings: String,
    /// `None` after it could not be written: sessions are in memory only.
    journal: Option<File>,
    /// Lines of the journal.
    lines: usize,
    values: HashMap<Vec<u8>, Vec<u8>>,
    /// Keys in the order in which they were stored, taken ones included.
    order: VecDeque<Vec<u8>>,
    /// Whether this process may resume sessions: never while another does, which could accept the same early data.
    are_own: bool,
}

impl Sessions {
    /// Reads the sessions in the file at `path` for these settings, and creates the file if there is none.
    pub(super) fn open(path: &Path, settings: &[u8; 32]) -> Result<Self, StateError> {
        let sessions = Self::of_other(path, settings);
        sessions.take_over()?;
        Ok(sessions)
    }

    /// Those of another process, which still uses the file: none, until they are [taken over](Self::take_over).
    pub(super) fn of_other(path: &Path, settings: &[u8; 32]) -> Self {
        Self(Mutex::new(Inner {
            path: path.to_owned(),
            settings: STANDARD.encode(settings),
            journal: None,
            lines: 0,
            values: HashMap::new(),
            order: VecDeque::new(),
            are_own: false,
        }))
    }

    /// Reads the file, which no other process uses from now on. It has what is known of earlier, unless that was used meanwhile.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(crate) fn take_over(&self) -> Result<(), StateError> {
        let mut inner = self.lock();
        inner.values.clear();
        inner.order.clear();
        // A file system may leave an empty file after a power failure.
        if let Some(text) = files::read(&inner.path)?.filter(|text| !text.is_empty()) {
            inner.replay(&text)?;
        }
        inner.rewrite()?;
        inner.are_own = true;
        Self::remove_others(&inner.path);
        Ok(())
    }

    /// Leaves the sessions to a process that takes over.
    #[cfg(target_os = "linux")]
    pub(crate) fn give_up(&self) {
        self.lock().are_own = false;
    }

    /// Removes the files of other addresses beside that at `path`, which was just written, if their sessions are no longer
    /// usable, or there are too many: a server on a free port leaves one at each start. A running server whose file is
    /// removed keeps its sessions in memory.
    fn remove_others(path: &Path) {
        let Some(now) = modified(path) else { return };
        let beside = path.parent().and_then(|parent| fs::read_dir(parent).ok());
        let entries = beside.into_iter().flatten().flatten();
        let mut others: Vec<_> = entries
            .filter(|entry| {
                entry
                    .file_name()
                    .as_encoded_bytes()
                    .starts_with(PREFIX.as_bytes())
            })
            .map(|entry| entry.path())
            .filter(|other| other != path)
            .filter_map(|other| Some((modified(&other)?, other)))
            .collect();
        others.sort_unstable_by(|one, other| other.cmp(one));
        for (index, (modified, other)) in others.into_iter().enumerate() {
            let age = now.duration_since(modified).unwrap_or_default();
            if age > SESSION_FILE_LIFETIME || index + 1 >= MAX_SESSION_FILES {
                // Without permission to remove it, it stays.
                let _ = fs::remove_file(other);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn replay(&mut self, text: &str) -> Result<(), StateError> {
        let mut lines = text.lines();
        let head = lines.next().and_then(|head| head.split_once(' '));
        let Some((FORMAT, settings)) = head else {
            return Err(StateError::malformed(&self.path, "not a list of sessions"));
        };
        if settings != self.settings {
            return Ok(());
        }
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            let decode = |text| STANDARD.decode(text).ok();
            match words[..] {
                ["+", key, value] => match (decode(key), decode(value)) {
                    (Some(key), Some(value)) => self.insert(key, value),
                    _ => break,
                },
                ["-", key] => match decode(key) {
                    Some(key) => drop(self.values.remove(&key)),
                    None => break,
                },
                // The last line may be incomplete after a power failure.
                _ => break,
            }
        }
        Ok(())
    }

    fn insert(&mut self, key: Vec<u8>, value: Vec<u8>) {
        while self.order.len() >= MAX_SESSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.values.insert(key, value);
    }

    /// Writes a file without the taken sessions, which can no longer be decrypted.
    fn rewrite(&mut self) -> Result<(), StateError> {
        let values = &self.values;
        self.order.retain(|key| values.contains_key(key));
        let mut text = format!("{FORMAT} {}\n", self.settings);
        for key in &self.order {
            text += &stored(key, &self.values[key]);
        }
        self.journal = None;
        files::write(&self.path, text.as_bytes(), Existing::Replace)?;
        let journal = OpenOptions::new().append(true).open(&self.path);
        self.journal = Some(journal.map_err(|error| StateError::io(&self.path, error))?);
        self.lines = self.order.len();
        Ok(())
    }

    fn append(&mut self, line: &str) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        self.lines += 1;
        let is_written = match self.lines > 4 * MAX_SESSIONS {
            true => self.rewrite().is_ok(),
            false => journal.write_all(line.as_bytes()).is_ok(),
        };
        if !is_written {
            // A session that is taken now could be resumed again after a restart.
            self.journal = None;
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        if value.len() > MAX_SESSION_BYTES {
            return false;
        }
        let line = stored(&key, &value);
        let mut inner = self.lock();
        if !inner.are_own {
            return false;
        }
        inner.insert(key, value);
        inner.append(&line);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let inner = self.lock();
        inner.values.get(key).filter(|_| inner.are_own).cloned()
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut inner = self.lock();
        if !inner.are_own {
            return None;
        }
        let value = inner.values.remove(key)?;
        inner.append(&format!("- {}\n", STANDARD.encode(key)));
        Some(value)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// When the regular file at `path` was written last.
fn modified(path: &Path) -> Option<SystemTime> {
    let metadata = fs::symlink_metadata(path).ok()?;
    metadata.is_file().then(|| metadata.modified().ok())?
}

/// The line of a session that is stored.
fn stored(key: &[u8], value: &[u8]) -> String {
    format!("+ {} {}\n", STANDARD.encode(key), STANDARD.encode(value))
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SETTINGS: [u8; 32] = [1; 32];

    fn key(number: usize) -> Vec<u8> {
        number.to_be_bytes().to_vec()
    }

    #[test]
    fn a_session_survives_a_restart_and_is_taken_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions");
        let open = || Sessions::open(&path, &SETTINGS).unwrap();
        let sessions = open();
        assert!(sessions.put(key(1), b"one".to_vec()));
        assert!(sessions.put(key(2), b"two".to_vec()));
        assert_eq!(sessions.take(&key(1)).unwrap(), b"one");
        // Nothing is written at the end: a process may be killed.
        std::mem::forget(sessions);
        let sessions = open();
        assert_eq!(sessions.take(&key(1)), None);
        assert_eq!(sessions.get(&key(2)).unwrap(), b"two");
        assert_eq!(sessions.take(&key(2)).unwrap(), b"two");
        assert_eq!(open().take(&key(2)), None);
    }

    #[test]
    fn a_session_is_resumed_by_one_of_two_processes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions");
        let old = Sessions::open(&path, &SETTINGS).unwrap();
        let new = Sessions::of_other(&path, &SETTINGS);
        for number in 1..=2 {
            assert!(old.put(key(number), vec![1]));
        }
        assert_eq!(new.take(&key(1)), None);
        assert!(!new.put(key(3), vec![1]));
        assert!(old.take(&key(1)).is_some());
        old.give_up();
        new.take_over().unwrap();
        assert!(old.get(&key(2)).is_none() && old.take(&key(2)).is_none());
        assert!(!old.put(key(3), vec![1]));
        assert_eq!(new.take(&key(1)), None, "it was taken before");
        assert!(new.take(&key(2)).is_some());
    }

    #[test]
    fn other_settings_start_without_sessions_and_another_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions");
        Sessions::open(&path, &SETTINGS)
            .unwrap()
            .put(key(1), vec![1]);
        let sessions = Sessions::open(&path, &[2; 32]).unwrap();
        assert_eq!(sessions.get(&key(1)), None);
        files::write(&path, b"something else", Existing::Replace).unwrap();
        let error = Sessions::open(&path, &SETTINGS).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn an_incomplete_last_line_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions");
        Sessions::open(&path, &SETTINGS)
            .unwrap()
            .put(key(1), vec![1]);
        let mut text = fs::read_to_string(&path).unwrap();
        text += "+ AAAAAAAAAAI= AQ==\n+ AAAAAAAAA";
        files::write(&path, text.as_bytes(), Existing::Replace).unwrap();
        let sessions = Sessions::open(&path, &SETTINGS).unwrap();
        assert!(sessions.get(&key(1)).is_some() && sessions.get(&key(2)).is_some());
        assert_eq!(sessions.lock().values.len(), 2);
    }

    #[test]
    fn an_empty_file_has_no_sessions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions");
        files::write(&path, b"", Existing::Replace).unwrap();
        let sessions = Sessions::open(&path, &SETTINGS).unwrap();
        assert!(sessions.put(key(1), vec![1]));
    }

    #[test]
    fn files_of_other_addresses_are_removed_once_they_are_old_or_too_many() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let own = path("sessions-own");
        Sessions::open(&own, &SETTINGS).unwrap();
        let now = modified(&own).unwrap();
        let write = |name: String, age: Duration| {
            let file = File::create(path(&name)).unwrap();
            file.set_modified(now - age).unwrap();
        };
        let old = SESSION_FILE_LIFETIME + Duration::from_secs(1);
        write("sessions-old".to_owned(), old);
        write("keys".to_owned(), old);
        fs::create_dir(path("sessions-directory")).unwrap();
        for number in 0..MAX_SESSION_FILES as u64 + 3 {
            let age = Duration::from_secs(number);
            write(format!("sessions-{number}"), age);
        }
        Sessions::remove_others(&own);
        let kept = MAX_SESSION_FILES - 1;
        for number in 0..MAX_SESSION_FILES + 3 {
            let is_kept = path(&format!("sessions-{number}")).exists();
            assert_eq!(is_kept, number < kept, "{number}");
        }
        assert!(own.exists() && path("keys").exists() && path("sessions-directory").exists());
        assert!(!path("sessions-old").exists());
    }

    #[test]
    fn memory_and_file_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions");
        let sessions = Sessions::open(&path, &SETTINGS).unwrap();
        assert!(!sessions.put(key(0), vec![0; MAX_SESSION_BYTES + 1]));
        for number in 0..6 * MAX_SESSIONS {
            assert!(sessions.put(key(number), vec![0; 100]));
        }
        assert_eq!(sessions.lock().values.len(), MAX_SESSIONS);
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 4 * MAX_SESSIONS + 1, "{lines}");
        let last = key(6 * MAX_SESSIONS - 1);
        assert!(
            Sessions::open(&path, &SETTINGS)
                .unwrap()
                .get(&last)
                .is_some()
        );
    }
}
