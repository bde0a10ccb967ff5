//! Errors of machines in virtual time, with what to do about them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason why a machine has no result.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// There is no kernel.
    #[error(
        "there is no kernel for virtual time at {}: build it with `make kernel` in marline's source, or name one in \
         MARLINE_KERNEL",
        looked.display()
    )]
    NotBuilt {
        /// The expected path.
        looked: PathBuf,
    },
    /// Neither of the variables that name the cache directory is set.
    #[error(
        "neither MARLINE_KERNEL, XDG_CACHE_HOME nor HOME is set: name the kernel in MARLINE_KERNEL"
    )]
    NoCache,
    /// The kernel ended before the task did.
    #[error("the kernel in virtual time ended early ({status}){console}")]
    Ended {
        /// Its exit status.
        status: String,
        /// The end of what it printed.
        console: String,
    },
    /// The task took too much real time.
    #[error(
        "not done after {} s of real time: a thread that computes without end keeps virtual time from passing",
        limit.as_secs()
    )]
    TooLong {
        /// The limit.
        limit: Duration,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// A task printed more than is kept.
    #[error("the program printed more than {limit} bytes: write its output to a file")]
    TooMuch {
        /// The limit.
        limit: u64,
    },
    /// This is not the first process of a kernel in virtual time.
    #[error(
        "this verb is the first process of a kernel in virtual time, and does nothing elsewhere"
    )]
    NotGuest,
    /// Any other system call failed.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl KernelError {
    /// Returns a closure for `map_err`: the operation `what` failed.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}
