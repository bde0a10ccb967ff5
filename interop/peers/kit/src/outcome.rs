//! The outcome of a peer, and its exit status.

use std::process::ExitCode;

/// Exit status of a peer that does not support the case in this role.
pub const UNSUPPORTED: u8 = 127;

/// Why a case did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The stack or its API does not support it. The reason is shown in the table.
    Unsupported(&'static str),
    /// A failure.
    Error(anyhow::Error),
}

/// The result of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// Reports `outcome` on standard error and turns it into an exit status.
#[must_use]
pub fn exit(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Unsupported(reason)) => {
            eprintln!("unsupported: {reason}");
            ExitCode::from(UNSUPPORTED)
        }
        Err(Failure::Error(error)) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
