//! Files that only their owner can read.

use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::StateError;
use crate::file::{open_regular_file, read_open_file};

/// The largest file that is read: larger than a journal of the largest sessions.
const MAX_BYTES: u64 = 128 << 20;

/// Creates `path` for its owner only, unless it exists.
pub(super) fn make_directory(path: &Path) -> Result<(), StateError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .and_then(|()| fs::metadata(path))
        .map_err(|error| StateError::io(path, error))
        .and_then(|metadata| refuse_writable_by_others(path, &metadata))
}

/// Whether the directory `path` is there. Only its owner may write it.
pub(super) fn check_directory(path: &Path) -> Result<bool, StateError> {
    match fs::metadata(path) {
        Ok(metadata) => refuse_writable_by_others(path, &metadata).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StateError::io(path, error)),
    }
}

/// The content of a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, StateError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::Other => StateError::malformed(path, error.to_string()),
        _ => StateError::io(path, error),
    };
    let file = match open_regular_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    refuse_exposed(path, &file.metadata().map_err(failed)?)?;
    let content = read_open_file(file, MAX_BYTES).map_err(failed)?;
    let text = String::from_utf8(content);
    text.map(Some)
        .map_err(|_| StateError::malformed(path, "not text"))
}

/// Whether a file that exists already is replaced.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Existing {
    Keep,
    Replace,
}

/// Writes a file in one step.
pub(super) fn write(path: &Path, content: &[u8], existing: Existing) -> Result<(), StateError> {
    let failed = |error| StateError::io(path, error);
    // Created exclusively, with mode 0600.
    let mut file =
        NamedTempFile::new_in(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    file.write_all(content).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    match existing {
        Existing::Replace => file.persist(path).map(drop),
        Existing::Keep => match file.persist_noclobber(path) {
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            written => written.map(drop),
        },
    }
    .map_err(|error| failed(error.error))
}

#[cfg(unix)]
fn refuse_exposed(path: &Path, metadata: &Metadata) -> Result<(), StateError> {
    refuse_mode(path, metadata, 0o077)
}

#[cfg(unix)]
fn refuse_writable_by_others(path: &Path, metadata: &Metadata) -> Result<(), StateError> {
    refuse_mode(path, metadata, 0o022)
}

#[cfg(unix)]
fn refuse_mode(path: &Path, metadata: &Metadata, bits: u32) -> Result<(), StateError> {
    match std::os::unix::fs::MetadataExt::mode(metadata) & bits {
        0 => Ok(()),
        _ => Err(StateError::Exposed {
            path: path.to_owned(),
        }),
    }
}

#[cfg(not(unix))]
fn refuse_exposed(_path: &Path, _metadata: &Metadata) -> Result<(), StateError> {
    Ok(())
}

#[cfg(not(unix))]
fn refuse_writable_by_others(_path: &Path, _metadata: &Metadata) -> Result<(), StateError> {
    Ok(())
}
