//! Names of files, and writing them atomically.

use std::io;
use std::path::Path;

use marline_report::input;

use super::RunFailure;

/// Largest size of a file of results in bytes: that of a million runs.
pub(super) const MAX_FILE: u64 = 1 << 30;

pub(super) const PLAN: &str = "plan.json";
pub(super) const RUNS: &str = "runs.jsonl";
pub(super) const TABLE: &str = "runs.csv";
pub(super) const RESULTS: &str = "results.json";

/// Whether `directory` holds the runs of an experiment.
pub(crate) fn is_results(directory: &Path) -> bool {
    [PLAN, RUNS]
        .iter()
        .all(|name| directory.join(name).is_file())
}

/// Replaces the file `name` in `directory`.
pub(crate) fn write(directory: &Path, name: &str, content: &[u8]) -> Result<(), RunFailure> {
    let path = directory.join(name);
    let temporary = directory.join(format!(".{name}.part"));
    std::fs::write(&temporary, content)
        .and_then(|()| std::fs::rename(&temporary, &path))
        .map_err(|cause| RunFailure::file(&path, cause))
}

/// Replaces the file `name` in `directory` by `value` in JSON, for people to read.
pub(super) fn write_json(
    directory: &Path,
    name: &str,
    value: &impl serde::Serialize,
) -> Result<(), RunFailure> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| RunFailure::file(&directory.join(name), error))?;
    text.push(b'\n');
    write(directory, name, &text)
}

/// Reads the file `name` in `directory`; `None` if it does not exist.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(
    directory: &Path,
    name: &str,
) -> Result<Option<T>, RunFailure> {
    let path = directory.join(name);
    let text = match input::read_text(&path, MAX_FILE) {
        Ok(text) => text,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => return Ok(None),
            _ => return Err(RunFailure::unreadable(&path, error)),
        },
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| RunFailure::Damaged {
            line: error.line().max(1),
            problem: error.to_string(),
            path,
        })
}
