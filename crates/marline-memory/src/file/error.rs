//! Errors of opening a store's file.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a file cannot be used, with advice to the operator. The file is not modified.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is not a store of this crate.
    #[error("{} is not a store of learned paths: name another file", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The path is a directory, a named pipe, a socket or a device.
    #[error("{} is not a regular file: name another file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "{} is of format {format}, newer than this version can read: update, or name another file",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format version in the file.
        format: u64,
    },
    /// The file is damaged.
    #[error("{} is damaged ({reason}): move it away to start with an empty store", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Kind of the damage.
        reason: String,
    },
    /// Another process has the file open.
    #[error(
        "{} is in use by another process: name another file, or let both share a server",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The operating system reported an error.
    #[error("cannot open {}: {source}: make sure that its directory exists and that both can be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    pub(super) fn unknown_format(path: &Path) -> Self {
        Self::UnknownFormat { path: path.into() }
    }

    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.into(),
            reason: reason.into(),
        }
    }

    pub(super) fn redb(path: &Path, Failure(error): Failure) -> Self {
        match *error {
            redb::Error::Io(source) if source.kind() != io::ErrorKind::InvalidData => {
                Self::io(path, source)
            }
            redb::Error::DatabaseAlreadyOpen => Self::InUse { path: path.into() },
            redb::Error::TableDoesNotExist(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::UpgradeRequired(_) => Self::unknown_format(path),
            other => Self::damaged(path, other.to_string()),
        }
    }
}

/// Any error of redb; redb has one error type per operation.
#[derive(Debug)]
pub(super) struct Failure(Box<redb::Error>);

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}
