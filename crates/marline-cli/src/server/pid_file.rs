//! The file with the process ID of a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::failure::Failure;

/// A file with the ID of this process, which is removed at the end unless another process has replaced its content.
#[derive(Debug)]
pub(crate) struct PidFile(PathBuf);

impl PidFile {
    /// Writes it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(path: &Path) -> Result<Self, Failure> {
        let written = fs::write(path, format!("{}\n", process::id()));
        written.map_err(|error| {
            Failure::Failed(format!(
                "cannot write pid_file {}: {error}; choose another",
                path.display()
            ))
        })?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let content = fs::read_to_string(&self.0).unwrap_or_default();
        if content.trim() == process::id().to_string() {
            // Whoever reads it finds that there is no such process.
            let _ = fs::remove_file(&self.0);
        }
    }
}
