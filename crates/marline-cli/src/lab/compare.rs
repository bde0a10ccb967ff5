//! `marline lab compare`.

use std::path::PathBuf;

use clap::Args;
use marline_lab::run;

use crate::failure::Failure;

/// Compare two runs of an experiment
///
/// Reports which settings differ and which medians changed so much that their 95 % confidence intervals do not overlap.
/// Results with equal digests (a hash of all metrics of all runs) are the same in every run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The earlier results
    #[arg(value_name = "DIR_A")]
    a: PathBuf,

    /// The later results
    #[arg(value_name = "DIR_B")]
    b: PathBuf,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let changes = run::compare(&arguments.a, &arguments.b)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    if arguments.json {
        return super::print_json(&changes);
    }
    out!("{changes}");
    Ok(())
}
