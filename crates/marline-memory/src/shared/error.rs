//! Why there is no shared store.

use std::io;

/// What was given cannot name a shared store.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is none. It is not repeated, since it may have a password.
    #[error(
        "the store's URL is not understood ({reason}): write redis://host:6379/0 or redis+unix:///path"
    )]
    Url {
        /// What is wrong with it.
        reason: String,
    },
    /// The namespace is empty, longer than 64 bytes, or has other characters than allowed.
    #[error("{0:?} is no namespace: use 1 to 64 letters, digits, and . _ - :")]
    Namespace(String),
    /// The system gives no thread.
    #[error("cannot start the store's thread: {0}")]
    Thread(io::Error),
}
