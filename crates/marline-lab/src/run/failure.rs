//! Errors of runs and results.

use std::io;
use std::path::{Path, PathBuf};

use super::Plan;

/// The reason why there are no results. The messages include what to do.
#[derive(Debug, thiserror::Error)]
pub enum RunFailure {
    /// The directory has results of another experiment.
    #[error(
        "{} has runs of the experiment {found}; choose another --out, or discard them with --fresh",
        directory.display()
    )]
    OtherExperiment {
        /// The directory.
        directory: PathBuf,
        /// The experiment whose runs it has.
        found: String,
    },
    /// Another start writes to the directory.
    #[error(
        "another `marline lab run` writes to {}; wait for its end, or choose another --out",
        directory.display()
    )]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory has results with other settings.
    #[error(
        "{} has runs with other settings ({differing}); choose another --out, or start over with --fresh",
        directory.display()
    )]
    OtherSettings {
        /// The directory.
        directory: PathBuf,
        /// The first settings that differ.
        differing: String,
    },
    /// The directory has results of other inputs.
    #[error(
        "{} has runs with another content of {differing}; choose another --out, or start over with --fresh",
        directory.display()
    )]
    OtherInputs {
        /// The directory.
        directory: PathBuf,
        /// The inputs that differ.
        differing: String,
    },
    /// A file that runs need is missing or unusable.
    #[error("{problem}; nothing was run")]
    Input {
        /// The file and its problem.
        problem: String,
    },
    /// There are more runs than results can hold.
    #[error(
        "these are {runs} runs, and at most {} are possible; lower repeats, or leave points out",
        Plan::MAX_RUNS
    )]
    TooManyRuns {
        /// Runs in all.
        runs: usize,
    },
    /// No run of a variant counts.
    #[error("no run of variant {variant} counts: {reason}")]
    NothingCounts {
        /// The variant.
        variant: String,
        /// The most frequent reason.
        reason: String,
    },
    /// No run of a variant has the main metric.
    #[error("no run of variant {variant} has {metric}; name a metric that its workload has first")]
    NotMeasured {
        /// The variant.
        variant: String,
        /// The metric.
        metric: String,
    },
    /// No run of some variants counts at some points.
    #[error("these have no results: {points}; {reason}")]
    NothingCountsAt {
        /// The variants and their points.
        points: String,
        /// The most frequent reason.
        reason: String,
    },
    /// The directory has results of another program.
    #[error(
        "{} has runs of another build of this program ({found}; this is {own}); choose another --out, or start over with --fresh",
        directory.display()
    )]
    OtherProgram {
        /// The directory.
        directory: PathBuf,
        /// The build whose runs it has.
        found: String,
        /// This build, or that of the other parts.
        own: String,
    },
    /// A file of results is damaged.
    #[error(
        "{}:{line}: {problem}; run the experiment again with --fresh, or give another directory",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// There are no results in a directory.
    #[error(
        "{}: there are no results here: {problem}; give a directory of `marline lab run`",
        directory.display()
    )]
    NoResults {
        /// The directory.
        directory: PathBuf,
        /// The missing part.
        problem: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {cause}; check the path and its permissions", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {cause}; check the path and the free space", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// Stopped by the user; finished runs are kept.
    #[error("stopped after {done} of {total} runs; the same command continues")]
    Interrupted {
        /// Runs that are done.
        done: usize,
        /// Runs in all.
        total: usize,
    },
    /// The backend does not support a variant.
    #[error("variant {variant}: {reason}")]
    Unsupported {
        /// The variant.
        variant: String,
        /// The reason.
        reason: String,
    },
    /// Directories to merge are of different experiments or settings.
    #[error(
        "{} and {} have other settings ({differing}); merge parts of one run",
        first.display(),
        second.display()
    )]
    Unlike {
        /// One directory.
        first: PathBuf,
        /// Another.
        second: PathBuf,
        /// The first settings that differ.
        differing: String,
    },
    /// Results to compare are of different experiments.
    #[error(
        "these are results of different experiments: {first} and {second}; they have no median in common, \
         so give two directories of one experiment"
    )]
    NothingInCommon {
        /// One experiment.
        first: String,
        /// The other.
        second: String,
    },
    /// Some runs are missing.
    #[error("{missing} of {total} runs are missing; finish them first")]
    Incomplete {
        /// The number of missing runs.
        missing: usize,
        /// Runs in all.
        total: usize,
    },
}

impl RunFailure {
    /// Whether the directory has runs that these do not continue.
    pub const fn is_of_other_runs(&self) -> bool {
        matches!(
            self,
            Self::OtherExperiment { .. }
                | Self::OtherSettings { .. }
                | Self::OtherInputs { .. }
                | Self::OtherProgram { .. }
                | Self::Damaged { .. }
        )
    }

    /// The file `name` is not in `directory`, or `directory` does not exist.
    pub(super) fn no_results(directory: &Path, name: &str) -> Self {
        let problem = if directory.is_dir() {
            format!("it has no {name}")
        } else if directory.exists() {
            "it is not a directory".to_owned()
        } else {
            "it does not exist".to_owned()
        };
        Self::NoResults {
            directory: directory.to_owned(),
            problem,
        }
    }

    /// `path` cannot be read because of `cause`.
    pub(super) fn unreadable(path: &Path, cause: io::Error) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            cause,
        }
    }

    /// `path` cannot be written because of `cause`.
    pub(super) fn file(path: &Path, cause: impl Into<io::Error>) -> Self {
        Self::File {
            path: path.to_owned(),
            cause: cause.into(),
        }
    }
}
