//! A file with one line for each finished run, so that an interrupted experiment can continue.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use marline_report::input;

use super::differences::summary_of_differences;
use super::files::{MAX_FILE, PLAN, RESULTS, RUNS, read_json, write_json};
use super::inputs::difference;
use super::{Plan, Record, RunFailure};

/// The file to which finished runs are appended, if they are kept.
pub(super) struct Journal {
    file: Option<(File, PathBuf)>,
    /// Held for the plan and the results beside it, too.
    _lock: Option<Lock>,
}

/// A directory that no other start writes to.
#[cfg(target_os = "linux")]
type Lock = nix::fcntl::Flock<File>;
#[cfg(not(target_os = "linux"))]
type Lock = ();

/// Locks `directory` until the result is dropped. File systems without locks are used without.
///
/// # Errors
/// Another start has locked it, or it cannot be read.
#[cfg(target_os = "linux")]
fn lock(directory: &Path) -> Result<Option<Lock>, RunFailure> {
    use nix::errno::Errno;
    use nix::fcntl::{Flock, FlockArg};

    let opened = File::open(directory).map_err(|cause| RunFailure::unreadable(directory, cause))?;
    match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Err(RunFailure::InUse {
            directory: directory.to_owned(),
        }),
        Err(_) => Ok(None),
    }
}

/// Other systems have no lock of directories.
#[cfg(not(target_os = "linux"))]
fn lock(_directory: &Path) -> Result<Option<Lock>, RunFailure> {
    Ok(None)
}

/// A journal, and the runs it contained when it was opened.
pub(super) struct Continued {
    pub(super) journal: Journal,
    pub(super) records: Vec<Record>,
}

impl Journal {
    /// A journal that keeps nothing.
    pub(super) const fn none() -> Self {
        Self {
            file: None,
            _lock: None,
        }
    }

    /// Opens or creates the journal of `plan` in `directory`, and returns its runs. With `fresh`, they
    /// are discarded.
    pub(super) fn open(
        directory: &Path,
        plan: &Plan,
        fresh: bool,
    ) -> Result<Continued, RunFailure> {
        std::fs::create_dir_all(directory).map_err(|cause| RunFailure::file(directory, cause))?;
        let lock = lock(directory)?;
        let path = directory.join(RUNS);
        let records = if fresh {
            remove(&path)?;
            Vec::new()
        } else {
            let old: Option<Plan> = read_json(directory, PLAN)?;
            if let Some(old) = &old
                && old.experiment != plan.experiment
            {
                return Err(RunFailure::OtherExperiment {
                    directory: directory.to_owned(),
                    found: old.experiment.clone(),
                });
            }
            let differing = match &old {
                Some(old) => (old.settings_hash != plan.settings_hash)
                    .then(|| summary_of_differences(old, plan)),
                None => (path.exists() || directory.join(RESULTS).exists())
                    .then(|| format!("{PLAN} is missing")),
            };
            if let Some(differing) = differing {
                return Err(RunFailure::OtherSettings {
                    directory: directory.to_owned(),
                    differing,
                });
            }
            let records = read_runs(&path, plan)?;
            let differing = old.as_ref().filter(|_| !records.is_empty());
            let differing = differing.and_then(|old| difference(&old.inputs, &plan.inputs));
            if let Some(differing) = differing {
                return Err(RunFailure::OtherInputs {
                    directory: directory.to_owned(),
                    differing,
                });
            }
            // Another build may give other results.
            let other = old.filter(|old| !records.is_empty() && old.program != plan.program);
            if let Some(old) = other {
                return Err(RunFailure::OtherProgram {
                    directory: directory.to_owned(),
                    found: old.build(),
                    own: plan.build(),
                });
            }
            records
        };
        write_json(directory, PLAN, plan)?;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|cause| RunFailure::file(&path, cause))?;
        let journal = Self {
            file: Some((file, path)),
            _lock: lock,
        };
        Ok(Continued { journal, records })
    }

    /// Appends `record`.
    pub(super) fn append(&mut self, record: &Record) -> Result<(), RunFailure> {
        let Some((file, path)) = &mut self.file else {
            return Ok(());
        };
        line(record)
            .and_then(|line| file.write_all(&line))
            .map_err(|cause| RunFailure::file(path, cause))
    }
}

/// Runs that are stored in a directory.
#[derive(Debug)]
pub struct StoredRuns {
    /// The plan that they belong to.
    pub plan: Plan,
    /// The finished runs, by number.
    pub records: Vec<Record>,
}

/// Reads the plan and the finished runs in `directory`.
pub fn read(directory: &Path) -> Result<StoredRuns, RunFailure> {
    let Some(plan): Option<Plan> = read_json(directory, PLAN)? else {
        return Err(RunFailure::no_results(directory, PLAN));
    };
    let records = read_runs(&directory.join(RUNS), &plan)?;
    Ok(StoredRuns { plan, records })
}

pub(super) fn line(record: &Record) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

fn remove(path: &Path) -> Result<(), RunFailure> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RunFailure::file(path, error)),
        _ => Ok(()),
    }
}

/// Reads runs, each once. An incomplete last line is removed: its run is repeated.
fn read_runs(path: &Path, plan: &Plan) -> Result<Vec<Record>, RunFailure> {
    let text = match input::read_text(path, MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RunFailure::unreadable(path, error)),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.set_len(whole as u64))
            .map_err(|cause| RunFailure::file(path, cause))?;
    }
    let mut records: Vec<Option<Record>> = vec![None; plan.runs()];
    for (number, line) in text[..whole].lines().enumerate() {
        let damaged = |problem: String| RunFailure::Damaged {
            path: path.to_owned(),
            line: number + 1,
            problem,
        };
        let record: Record =
            serde_json::from_str(line).map_err(|error| damaged(error.to_string()))?;
        match records.get_mut(record.run) {
            Some(slot) => *slot = Some(record),
            None => return Err(damaged(format!("there is no run {}", record.run))),
        }
    }
    Ok(records.into_iter().flatten().collect())
}
