//! Errors in link specifications.

use std::fmt;

/// An error in a link specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SpecError {
    /// The key as written, or the word found in its place.
    pub key: String,
    /// The problem and its remedy.
    pub problem: String,
}

impl SpecError {
    pub(super) fn new(key: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self {
            key: key.into(),
            problem: problem.to_string(),
        }
    }

    pub(super) fn conflict(key: &str, with: &str) -> Self {
        Self::new(key, format_args!("cannot be combined with `{with}`"))
    }

    pub(super) fn out_of_range(key: &str, value: &str, range: &str) -> Self {
        Self::new(key, format_args!("{value} is out of range: {range}"))
    }

    /// `key` requires `other`, which is present if the condition `holds`.
    pub(super) fn unless(holds: bool, key: &str, other: &str) -> Result<(), Self> {
        match holds {
            true => Ok(()),
            false => Err(Self::new(key, format_args!("requires `{other}`"))),
        }
    }
}
