//! The directory that a machine and the process that started it share.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The task.
pub(super) const TASK: &str = "task.json";
/// A program's standard input, or the job.
pub(super) const INPUT: &str = "input";
/// A program's standard output, or the answer to a job.
pub(super) const OUTPUT: &str = "output";
/// A program's standard error, or the reason why a job has no answer.
pub(super) const ERRORS: &str = "errors";
/// The exit status; written last.
pub(super) const STATUS: &str = "status";
/// The kernel's output.
pub(super) const CONSOLE: &str = "console";
/// The program that is the machine's first process.
pub(super) const INIT: &str = "init";

/// A task, as it is written for the machine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RawValue {
    pub(super) directory: PathBuf,
    pub(super) work: WrittenWork,
}

/// The work of a machine, as it is written for it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenWork {
    Program(Program),
    /// The input is the job.
    Job,
}

/// A program to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) command: Vec<OsString>,
    pub(super) environment: Vec<Variable>,
}

/// A variable of the environment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Variable {
    pub(super) name: OsString,
    pub(super) value: OsString,
}

impl From<&(OsString, OsString)> for Variable {
    fn from((name, value): &(OsString, OsString)) -> Self {
        Self {
            name: name.clone(),
            value: value.clone(),
        }
    }
}

/// The content of a file of at most `limit` bytes; `None` if it has more.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    let read = File::open(path)?
        .take(limit + 1)
        .read_to_end(&mut content)?;
    Ok((read as u64 <= limit).then_some(content))
}

/// The last `most` bytes of a file, as text; empty if there are none.
pub(super) fn tail(path: &Path, most: usize) -> String {
    let content = fs::read(path).unwrap_or_default();
    let from = content.len().saturating_sub(most);
    String::from_utf8_lossy(&content[from..]).trim().to_owned()
}
