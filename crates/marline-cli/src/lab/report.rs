//! `marline lab report`.

use std::path::{Path, PathBuf};

use clap::Args;
use marline_lab::run;

use super::table;
use crate::failure::Failure;

/// Summarize the runs in directories again, and rebuild their reports
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Directories of results of `marline lab run`
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    for directory in &arguments.directories {
        let results =
            run::rebuild(directory).map_err(|error| Failure::Failed(error.to_string()))?;
        table::warn(&results);
        write(directory)?;
    }
    Ok(())
}

/// Writes the report of the results in `directory`, and prints its path.
pub(crate) fn write(directory: &Path) -> Result<(), Failure> {
    marline_lab::report::write(directory).map_err(|error| Failure::Failed(error.to_string()))?;
    errln!("the report: {}", directory.join("report.html").display());
    Ok(())
}
