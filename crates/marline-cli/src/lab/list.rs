//! `marline lab list`.

use std::path::PathBuf;

use clap::Args;
use marline_lab::scenario::Experiment;
use serde::Serialize;

use super::experiments;
use crate::failure::{Failure, print_message};

/// List the experiments
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory of experiments [default: `experiments` in this directory or above, else those that this
    /// program contains]
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// An experiment of the list.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Listed {
    /// Its ID.
    id: String,
    /// Its title.
    title: String,
    /// The paper it repeats, by number.
    paper: Option<String>,
    /// The backend that it runs on, or several joined by `and`.
    backend: String,
    /// Names of the variants.
    variants: Vec<String>,
    /// Points of the sweep.
    points: usize,
    /// Repeats of each variant at each point.
    repeats: u32,
}

impl Listed {
    pub(super) fn of(experiment: Experiment) -> Self {
        Self {
            backend: experiment.backends(),
            id: experiment.id,
            title: experiment.title,
            paper: experiment.paper,
            variants: experiment.variants.iter().map(|v| v.to_string()).collect(),
            points: experiment.points.len(),
            repeats: experiment.repeats,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut broken = false;
    let mut listed = Vec::new();
    for entry in experiments::list(arguments.experiments.as_deref())? {
        match entry.load(&[]) {
            Ok(experiment) => listed.push(Listed::of(experiment)),
            Err(error) => {
                print_message(&error.to_string());
                broken = true;
            }
        }
    }
    if arguments.json {
        super::print_json(&listed)?;
    } else {
        let widest = listed.iter().map(|entry| entry.id.len()).max().unwrap_or(0);
        for entry in &listed {
            let runs = entry.points * entry.variants.len() * entry.repeats as usize;
            outln!(
                "{:widest$}  {:>5} runs  {:7}  {}",
                entry.id,
                runs,
                entry.backend,
                entry.title
            );
        }
    }
    if broken {
        Err(Failure::Reported)
    } else {
        Ok(())
    }
}
