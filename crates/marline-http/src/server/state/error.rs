//! Errors of a state directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::server::IdentityError;

/// The reason why a state directory cannot be used, with advice to the operator.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The operating system reports an error.
    #[error("cannot use {}: {cause}; make it readable and writable for this user, or name another directory", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// Other users can read or replace a secret.
    #[error("{} is open to other users; allow it to its owner only (chmod go= FILE), or remove it", path.display())]
    Exposed {
        /// The file or directory.
        path: PathBuf,
    },
    /// A file has invalid content.
    #[error("{} is not a file of this version of marline ({reason}); remove it to start with a new one", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A secret that the operator wrote cannot be used.
    #[error("cannot use the secret in {}: {reason}", path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The certificate in the directory cannot be used, or none can be made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl StateError {
    pub(super) fn io(path: &Path, cause: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            cause,
        }
    }

    pub(super) fn secret(path: &Path, reason: impl Into<String>) -> Self {
        Self::Secret {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    pub(super) fn malformed(path: &Path, reason: impl Into<String>) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}
