//! Files that only their owner can read.

use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, Read, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::StateError;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

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

/// The content of a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, StateError> {
    let failed = |error| StateError::io(path, error);
    // Before the file is opened: opening a named pipe waits for its writer.
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(failed)?,
    };
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(StateError::malformed(
            path,
            "not a regular file of its size",
        ));
    }
    refuse_exposed(path, &metadata)?;
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    match file.take(MAX_BYTES).read_to_string(&mut text) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(StateError::malformed(path, "not text"))
        }
        read => read.map(|_| Some(text)).map_err(failed),
    }
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
