//! Whether the server may write what a configuration file names. Nothing is written.

use std::io;
use std::path::{Path, PathBuf};

use marline_http::log::LogOutput;

use crate::config_file::ConfigFile;
use crate::failure::Failure;

/// Tries the files and directories that a server of `file` writes, as the user of this process.
///
/// # Errors
/// One cannot be written, with file, line and key.
pub(super) fn check(file: &ConfigFile) -> Result<(), Failure> {
    let failed = |key: &str, path: &Path, error: io::Error| {
        let (place, path) = (file.place(key), path.display());
        Failure::Failed(format!("{place}: cannot write {path}: {error}"))
    };
    let logs = [
        ("access_log", &file.access_log),
        ("error_log", &file.error_log),
    ];
    for (key, output) in logs {
        let Some(LogOutput::File(path)) = output else {
            continue;
        };
        let rotated = file.log_rotate.is_some().then(|| directory_of(path));
        let tried = try_file(path).and_then(|()| rotated.map_or(Ok(()), try_writing));
        tried.map_err(|error| failed(key, path, error))?;
    }
    if let Some(path) = &file.pid_file {
        try_file(path).map_err(|error| failed("pid_file", path, error))?;
    }
    for (key, directory) in [("state", &file.state), ("qlog", &file.qlog)] {
        if let Some(path) = directory {
            try_directory(path).map_err(|error| failed(key, path, error))?;
        }
    }
    Ok(())
}

/// Tries to write a file, which is created if it is not there.
fn try_file(path: &Path) -> io::Result<()> {
    match path.try_exists()? {
        true => try_writing(path),
        false => try_writing(directory_of(path)),
    }
}

/// Tries to write a directory, which is created, with those that it is in, if it is not there.
fn try_directory(path: &Path) -> io::Result<()> {
    let mut nearest: PathBuf = path.to_owned();
    while !nearest.try_exists()? {
        nearest = directory_of(&nearest).to_owned();
    }
    match nearest.is_dir() {
        true => try_writing(&nearest),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// Whether the effective user of this process may write `path`, and enter it if it is a directory.
fn try_writing(path: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Access, AtFlags, CWD, accessat};

        let mut wanted = Access::WRITE_OK;
        if path.is_dir() {
            wanted |= Access::EXEC_OK;
        }
        match accessat(CWD, path, wanted, AtFlags::EACCESS) {
            // Before Linux 5.8.
            Err(rustix::io::Errno::NOSYS) => Ok(()),
            tried => Ok(tried?),
        }
    }
    #[cfg(not(target_os = "linux"))]
    path.metadata().map(drop)
}
