//! Why a file cannot be used, and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// A file cannot be used. It was left as it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Something else is in it.
    #[error("{} is not a file of learnt paths: name another file", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A newer version wrote it.
    #[error(
        "{} is of format {format}, newer than this version can read: update, or name another file",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format that it says it has.
        format: u64,
    },
    /// Something happened to it.
    #[error("{} is damaged ({reason}): move it away, and learning begins anew", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process has it open.
    #[error(
        "{} is in use by another process: name another file, or let both share a server",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The system does not let us.
    #[error("cannot open {}: {source}: make sure that its directory exists and that both can be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
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

    pub(super) fn not_ours(path: &Path) -> Self {
        Self::NotOurs { path: path.into() }
    }

    pub(super) fn broken(path: &Path, reason: impl Into<String>) -> Self {
        Self::Broken {
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
            | redb::Error::UpgradeRequired(_) => Self::not_ours(path),
            other => Self::broken(path, other.to_string()),
        }
    }
}

/// Any error of redb; it has one type for each operation.
#[derive(Debug)]
pub(super) struct Failure(Box<redb::Error>);

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}
