//! When the file of a log is replaced by a new one, and what happens to the old ones.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use marline::settings::units::{read_bytes, read_time, write_bytes, write_time};

use super::file::lock;
use super::messages::{self, Subject};
use super::{Level, utc};
use crate::limits;

/// When the file of a log is renamed, so that a new one begins.
///
/// Written as `size=100MB`, `every=1d`, or both, and optionally `keep=N` and `gzip`: `size=100MB,every=1d,keep=30,gzip`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRotation {
    size: Option<u64>,
    every: Option<Duration>,
    keep: usize,
    gzip: bool,
}

/// The reason why a text is not a rotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLogRotation {
    /// It has no condition.
    #[error("it does not say when; write as \"size=100MB\", \"every=1d\", or both")]
    Never,
    /// A part is unknown.
    #[error("unknown part \"{0}\"; write as \"size=100MB,every=1d,keep=10,gzip\"")]
    Part(String),
    /// A value is out of its domain.
    #[error("{key}: {problem}")]
    Value {
        /// The part's name.
        key: &'static str,
        /// The problem.
        problem: String,
    },
}

/// Files that are kept unless it is said how many.
const KEEP: usize = 10;

/// The most files that can be kept.
const MAX_KEEP: usize = 10_000;

/// The smallest file that is rotated, so that not every line has one.
const MIN_SIZE: u64 = 1 << 10;

/// The shortest period.
const MIN_PERIOD: Duration = Duration::from_secs(60);

impl LogRotation {
    /// Whether a file may have `size` bytes.
    pub(super) fn has_room(&self, size: u64) -> bool {
        self.size.is_none_or(|limit| size <= limit)
    }

    /// The number of the period of `unix`, in seconds since 1970. Periods begin in UTC: days at midnight.
    pub(super) fn period(&self, unix: f64) -> Option<u64> {
        let every = self.every?;
        Some((unix / every.as_secs_f64()) as u64)
    }
}

impl FromStr for LogRotation {
    type Err = InvalidLogRotation;

    fn from_str(text: &str) -> Result<Self, InvalidLogRotation> {
        let mut this = Self {
            size: None,
            every: None,
            keep: KEEP,
            gzip: false,
        };
        for part in text.split(',').map(str::trim) {
            let value = |key, problem| InvalidLogRotation::Value { key, problem };
            match part.split_once('=') {
                None if part == "gzip" => this.gzip = true,
                Some(("size", size)) => {
                    let size = read_bytes(size).map_err(|why| value("size", why))?;
                    if size < MIN_SIZE {
                        let least = write_bytes(MIN_SIZE);
                        return Err(value("size", format!("this must be {least} or more")));
                    }
                    this.size = Some(size);
                }
                Some(("every", every)) => {
                    let every = read_period(every).map_err(|why| value("every", why))?;
                    if every < MIN_PERIOD {
                        let least = write_time(MIN_PERIOD);
                        return Err(value("every", format!("this must be {least} or more")));
                    }
                    this.every = Some(every);
                }
                Some(("keep", keep)) => {
                    let keep = keep.parse().ok();
                    let keep = keep.filter(|keep| (1..=MAX_KEEP).contains(keep));
                    this.keep = keep.ok_or_else(|| {
                        value(
                            "keep",
                            format!("this must be a number of files from 1 to {MAX_KEEP}"),
                        )
                    })?;
                }
                _ => return Err(InvalidLogRotation::Part(part.to_owned())),
            }
        }
        match (this.size, this.every) {
            (None, None) => Err(InvalidLogRotation::Never),
            _ => Ok(this),
        }
    }
}

/// A day, in seconds.
const DAY: u64 = 24 * 3600;

/// Reads a time, which may be in days.
fn read_period(text: &str) -> Result<Duration, String> {
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<u32>().ok());
    match days {
        Some(days) => Ok(Duration::from_secs(u64::from(days) * DAY)),
        None => read_time(text),
    }
}

impl fmt::Display for LogRotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(size) = self.size {
            parts.push(format!("size={}", write_bytes(size)));
        }
        if let Some(every) = self.every {
            parts.push(match every.as_secs() % DAY == 0 {
                true => format!("every={}d", every.as_secs() / DAY),
                false => format!("every={}", write_time(every)),
            });
        }
        parts.push(format!("keep={}", self.keep));
        if self.gzip {
            parts.push("gzip".to_owned());
        }
        f.write_str(&parts.join(","))
    }
}

/// The rotated files of a log: `NAME.YYYYMMDD-hhmmss`, with `-02` and so on in the same second, and `.gz` if compressed.
pub(super) struct Rotated {
    path: PathBuf,
    tidying: Arc<Mutex<Tidying>>,
}

/// The thread that removes and compresses.
#[derive(Default)]
struct Tidying {
    is_running: bool,
    /// Whether files were added since it looked.
    again: bool,
}

/// The ending of compressed files.
const GZ: &str = ".gz";

/// The ending of files that are being compressed.
const PART: &str = ".gz.part";

/// The form of the times in names; digits stand for digits.
const STAMP: &str = "00000000-000000";

impl Rotated {
    /// Those of the log at `path`.
    pub(super) fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            tidying: Arc::default(),
        }
    }

    /// A name that no file has.
    pub(super) fn name(&self, unix: f64) -> io::Result<PathBuf> {
        let time = utc(unix);
        let stamp = format!(
            "{:04}{:02}{:02}-{:02}{:02}{:02}",
            time.year(),
            u8::from(time.month()),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        );
        for number in 1..100 {
            let ending = match number {
                1 => format!(".{stamp}"),
                _ => format!(".{stamp}-{number:02}"),
            };
            let name = with_ending(&self.path, &ending);
            if !name.exists() && !with_ending(&name, GZ).exists() {
                return Ok(name);
            }
        }
        Err(io::Error::other("there are a hundred of this second"))
    }

    /// Removes the oldest files and compresses others, on a thread of its own. What is left, as after a crash, is done the next
    /// time.
    pub(super) fn tidy(&self, rotation: &LogRotation) {
        let mut tidying = lock_of(&self.tidying);
        if tidying.is_running {
            tidying.again = true;
            return;
        }
        let (path, rotation, shared) = (
            self.path.clone(),
            rotation.clone(),
            Arc::clone(&self.tidying),
        );
        let thread = thread::Builder::new().name("log rotation".to_owned());
        let spawned = thread.spawn(move || {
            loop {
                if let Err(error) = tidy(&path, &rotation) {
                    let path = path.display();
                    let text = format!("cannot tidy up the rotated files of {path}: {error}");
                    messages::emit(Level::Warning, Subject::Log, &text);
                }
                let mut tidying = lock_of(&shared);
                if !std::mem::take(&mut tidying.again) {
                    tidying.is_running = false;
                    return;
                }
            }
        });
        tidying.is_running = spawned.is_ok();
    }

    /// Waits until the thread has ended.
    #[cfg(test)]
    pub(super) fn wait(&self) {
        while lock_of(&self.tidying).is_running {
            thread::yield_now();
        }
    }
}

fn lock_of(tidying: &Mutex<Tidying>) -> MutexGuard<'_, Tidying> {
    tidying.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A rotated file.
struct Old {
    stamp: String,
    path: PathBuf,
    is_compressed: bool,
}

fn tidy(path: &Path, rotation: &LogRotation) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let mut olds = Vec::new();
    for entry in fs::read_dir(directory)?.take(limits::LOG_DIRECTORY_ENTRIES) {
        let entry = entry?;
        if let Some(old) = old_file(name, &entry.file_name(), entry.path()) {
            olds.push(old);
        }
    }
    olds.sort_by(|one, other| other.stamp.cmp(&one.stamp));
    for old in olds.iter().skip(rotation.keep) {
        fs::remove_file(&old.path)?;
    }
    // A process that does not yet know of the last rotation may still write to the newest.
    let compressed = olds.iter().take(rotation.keep).skip(1);
    for old in compressed.filter(|old| rotation.gzip && !old.is_compressed) {
        compress(&old.path)?;
    }
    Ok(())
}

/// The rotated file of the log `name` that `found` names, if it does.
fn old_file(name: &OsStr, found: &OsStr, path: PathBuf) -> Option<Old> {
    let rest = found.to_str()?.strip_prefix(name.to_str()?)?;
    let rest = rest.strip_prefix('.')?;
    let stamp = rest.strip_suffix(GZ).unwrap_or(rest);
    let digits: String = stamp
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let is_stamp = digits == STAMP || digits == format!("{STAMP}-00");
    is_stamp.then(|| Old {
        stamp: stamp.to_owned(),
        is_compressed: rest.len() > stamp.len(),
        path,
    })
}

/// Compresses the file at `path`, which is removed when the other is complete, unless another process does.
fn compress(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    if !lock(&file)? || !path.exists() {
        return Ok(());
    }
    let part = with_ending(path, PART);
    let out = File::create(&part)?;
    let metadata = file.metadata()?;
    out.set_permissions(metadata.permissions())?;
    let mut encoder = GzEncoder::new(out, Compression::default());
    io::copy(&mut file, &mut encoder)?;
    let out = encoder.finish()?;
    out.sync_all()?;
    if let Ok(modified) = metadata.modified() {
        out.set_modified(modified)?;
    }
    fs::rename(&part, with_ending(path, GZ))?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_is_read_as_it_is_shown() {
        for text in [
            "size=100MB,keep=10",
            "every=1d,keep=30,gzip",
            "size=1MiB,every=1h,keep=1",
        ] {
            let rotation: LogRotation = text.parse().unwrap();
            let shown = rotation.to_string();
            assert_eq!(shown.parse(), Ok(rotation), "{shown}");
        }
        let rotation: LogRotation = "every=1d".parse().unwrap();
        assert_eq!(rotation.to_string(), "every=1d,keep=10");
    }

    #[test]
    fn a_wrong_part_is_named() {
        for (text, words) in [
            ("", "unknown part \"\""),
            ("gzip", "does not say when"),
            ("size=1MB,zip", "unknown part \"zip\""),
            ("size=1B", "size: this must be 1KiB or more"),
            ("every=1s", "every: this must be 1min or more"),
            ("size=1MB,keep=0", "keep: this must be a number of files"),
        ] {
            let error = text.parse::<LogRotation>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn only_names_with_a_time_are_rotated_files() {
        let is_old = |found: &str| {
            old_file(OsStr::new("log"), OsStr::new(found), PathBuf::new())
                .map(|old| old.is_compressed)
        };
        assert_eq!(is_old("log.20231114-010000"), Some(false));
        assert_eq!(is_old("log.20231114-010000-02.gz"), Some(true));
        for other in [
            "log",
            "log.1",
            "log.gz",
            "log2.20231114-010000",
            "log.20231114-010000.gz.part",
        ] {
            assert_eq!(is_old(other), None, "{other}");
        }
    }
}
