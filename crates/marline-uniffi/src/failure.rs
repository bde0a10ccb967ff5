//! Errors.

use marline_ffi::failure::Failure;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum MarlineError {
    /// The call failed, for the reason that the text says.
    #[error("{0}")]
    Failed(String),
}

impl From<Failure> for MarlineError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.reason().to_owned())
    }
}
