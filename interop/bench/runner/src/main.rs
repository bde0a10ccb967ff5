//! Measures QUIC stacks side by side: successively in rounds, so that temporary load affects all of them; server and
//! client each on a core of its own. Reports medians, and ratios taken within each round.

mod args;
mod fetch;
mod fetches;
mod identity;
mod links;
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
use crate::stacks::{CEILING, Stack};
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
    if !args.fetches.is_empty() {
        let measured = fetches::measure(args, &stacks, &identity)?;
        write(args, &measured.table, &measured.json)?;
        return Ok(measured.succeeded);
    }
    if !args.links.is_empty() {
        let able: Vec<_> = stacks
            .into_iter()
            .filter(|stack| stack.able(Task::Bulk) && stack.name != CEILING)
            .collect();
        let measured = links::measure(args, &able, &identity)?;
        write(args, &measured.table, &measured.json)?;
        return Ok(measured.succeeded);
    }
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
    let json = serde_json::to_string_pretty(&results)? + "\n";
    write(args, &table::markdown(&results), &json)?;
    Ok(results.failures.is_empty())
}

/// Writes the table and the measurements to where `args` asks for them.
fn write(args: &Args, table: &str, json: &str) -> anyhow::Result<()> {
    match &args.out {
        Some(file) => fs::write(file, table).with_context(|| file.display().to_string())?,
        None => print!("{table}"),
    }
    if let Some(file) = &args.json {
        fs::write(file, json).with_context(|| file.display().to_string())?;
    }
    Ok(())
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
