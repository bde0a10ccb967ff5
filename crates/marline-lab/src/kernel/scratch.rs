//! The directory that a machine and the process that started it share.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The task.
pub(super) const TASK: &str = "task.json";
/// What the task reads from standard input.
pub(super) const INPUT: &str = "input";
/// What it printed on standard output.
pub(super) const OUTPUT: &str = "output";
/// What it printed on standard error.
pub(super) const ERRORS: &str = "errors";
/// Its exit status; written last.
pub(super) const STATUS: &str = "status";
/// What the kernel printed.
pub(super) const CONSOLE: &str = "console";
/// The program that is the machine's first process.
pub(super) const INIT: &str = "init";

/// What a machine runs, as it is written for the machine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) command: Vec<OsString>,
    pub(super) directory: PathBuf,
    pub(super) environment: Vec<Variable>,
}

/// A variable of the environment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Variable {
    pub(super) name: OsString,
    pub(super) value: OsString,
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
