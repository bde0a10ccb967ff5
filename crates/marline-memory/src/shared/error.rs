//! Errors of connecting to a shared store.

use std::io;

/// The reason why a shared store could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is invalid. It is not part of the message, because it may contain a password.
    #[error(
        "the store's URL is invalid ({reason}): write redis://host:6379/0 or redis+unix:///path"
    )]
    Url {
        /// The reason.
        reason: String,
    },
    /// The namespace is empty, longer than 64 bytes, or has characters that are not allowed.
    #[error("{0:?} is not a valid namespace: use 1 to 64 letters, digits, and . _ - :")]
    Namespace(String),
    /// The thread could not be started.
    #[error("cannot start the store's thread: {0}")]
    Thread(io::Error),
}
