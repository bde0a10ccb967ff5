//! Measures QUIC stacks side by side: successively in rounds, so that temporary load affects all of them; server and
//! client each on a core of its own. Reports medians, and ratios taken within each round.

mod args;
mod identity;
mod process;
mod results;
mod stacks;
mod statistics;
mod table;
mod task;
mod trial;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Parser as _;

use crate::args::Args;
use crate::identity::Identity;
use crate::results::Results;
use crate::stacks::Stack;
use crate::task::Task;
use crate::trial::Trial;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every measurement succeeded.
fn run(args: &Args) -> anyhow::Result<bool> {
    let stacks: Vec<_> = stacks::ALL
        .iter()
        .filter(|stack| args.stacks.is_empty() || args.stacks.iter().any(|name| name == stack.name))
        .filter(|stack| built(stack, args))
        .collect();
    ensure!(!stacks.is_empty(), "no stack to measure");
    let identity = Identity::create()?;
    let mut results = Results::new(args);
    for round in 0..args.rounds {
        for task in args.tasks() {
            let able: Vec<_> = stacks.iter().filter(|stack| stack.able(task)).collect();
            for turn in 0..able.len() {
                // The order is rotated in each round.
                let stack = able[(turn + round) % able.len()];
                measure(stack, task, round, args, &identity, &mut results);
            }
        }
    }
    let table = table::markdown(&results);
    match &args.out {
        Some(file) => fs::write(file, table).with_context(|| file.display().to_string())?,
        None => print!("{table}"),
    }
    if let Some(file) = &args.json {
        let json = serde_json::to_string_pretty(&results)?;
        fs::write(file, json + "\n").with_context(|| file.display().to_string())?;
    }
    Ok(results.failures.is_empty())
}

fn built(stack: &Stack, args: &Args) -> bool {
    let built = stack.program(&args.programs).is_some();
    if !built {
        eprintln!("skipped: {} is not built", stack.name);
    }
    built
}

fn measure(
    stack: &Stack,
    task: Task,
    round: usize,
    args: &Args,
    identity: &Identity,
    results: &mut Results,
) {
    let label = format!("round {} {} {}", round + 1, task.name(), stack.name);
    let trial = Trial {
        stack,
        task,
        args,
        identity,
    };
    match trial.run() {
        Ok(values) => {
            let shown: Vec<_> = values
                .iter()
                .map(|(metric, value)| format!("{} {value:.3}", metric.key()))
                .collect();
            eprintln!("{label}: {}", shown.join(", "));
            results.add(stack.name, round, values);
        }
        Err(error) => {
            eprintln!("{label}: failed: {error:#}");
            results.failures.push(format!("{label}: {error:#}"));
        }
    }
}
