//! `marline lab merge`.

use std::path::PathBuf;

use clap::Args;
use marline_lab::run::{self, RunFailure};

use super::table;
use crate::failure::Failure;

/// Merge the parts of an experiment that `marline lab run --shard` made
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directories of the parts
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,

    /// The directory for the merged results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let failed = |error: RunFailure| Failure::Failed(error.to_string());
    let results = run::merge(&arguments.parts, &arguments.out).map_err(failed)?;
    if arguments.json {
        super::print_json(&results)?;
    } else {
        table::print(&results);
    }
    table::warn(&results);
    super::report::write(&arguments.out)?;
    results.require_runs().map_err(failed)
}
