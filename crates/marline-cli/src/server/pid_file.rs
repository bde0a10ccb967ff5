//! The file with the process ID of a server.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;

use marline_http::log::{Level, Subject, emit};

use crate::failure::Failure;

/// Bytes of a file that are read.
const MOST_BYTES: u64 = 32;

/// A file with the ID of this process, which is removed at the end unless another process has replaced its content.
#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
    file: File,
}

impl PidFile {
    /// Opens it, with what a process before has written.
    ///
    /// # Errors
    /// It cannot be written, or is something else than such a file: the file of another program, a link, a pipe.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            path: path.to_owned(),
            file: open(path)?,
        })
    }

    /// Writes the ID of this process. A failure is logged: the server works without.
    pub(crate) fn write(&mut self) {
        if let Err(error) = replace(&mut self.file) {
            let text = format!("cannot write pid_file {}: {error}", self.path.display());
            emit(Level::Warning, Subject::Server, &text);
        }
    }
}

/// Writes the ID of this process to the file at `path`, which another process may have replaced or removed.
///
/// # Errors
/// See [`PidFile::open`]; the system's error.
pub(crate) fn restore(path: &Path) -> Result<(), Failure> {
    let replaced = replace(&mut open(path)?);
    replaced.map_err(|error| {
        let path = path.display();
        Failure::Failed(format!("cannot write pid_file {path}: {error}"))
    })
}

fn open(path: &Path) -> Result<File, Failure> {
    let failed = |reason: String| {
        Failure::Failed(format!(
            "cannot write pid_file {}: {reason}; choose another",
            path.display()
        ))
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;

        // A pipe would wait for whoever reads it.
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        options.mode(0o644).custom_flags(flags);
    }
    let mut file = options
        .open(path)
        .map_err(|error| failed(error.to_string()))?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut content = Vec::new();
    let read = is_file
        && (&mut file)
            .take(MOST_BYTES)
            .read_to_end(&mut content)
            .is_ok();
    let content = content.trim_ascii();
    match read && content.iter().all(u8::is_ascii_digit) {
        true => Ok(file),
        false => Err(failed("it has something else than a process ID".to_owned())),
    }
}

fn replace(file: &mut File) -> io::Result<()> {
    let text = format!("{}\n", process::id());
    // Whoever reads it meanwhile finds this ID, and nothing of a longer one.
    let before = file.metadata()?.len().min(MOST_BYTES) as usize;
    let covering = "\n".repeat(before.saturating_sub(text.len()));
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("{text}{covering}").as_bytes())?;
    file.set_len(text.len() as u64)
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let content = fs::read_to_string(&self.path).unwrap_or_default();
        // An empty one was opened by a server that did not start.
        if content.is_empty() || content.trim() == process::id().to_string() {
            // Whoever reads it finds that there is no such process.
            let _ = fs::remove_file(&self.path);
        }
    }
}
