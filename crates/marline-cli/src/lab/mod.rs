//! `marline lab`.

pub(crate) mod backends;
mod compare;
mod experiments;
mod link;
mod list;
mod merge;
mod presets;
pub(crate) mod progress;
pub(crate) mod report;
mod run;
#[cfg(test)]
mod schemas;
pub(crate) mod table;
mod verify;
mod virtual_time;
mod worst;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::failure::Failure;
use crate::server::{interrupted, once_caught};

/// Test programs and transports on reproducible emulated links
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Arguments),
    Run(Box<run::Arguments>),
    Report(report::Arguments),
    Compare(compare::Arguments),
    Merge(merge::Arguments),
    Presets(presets::Arguments),
    Verify(verify::Arguments),
    Link(Box<link::Arguments>),
    #[command(hide = true)]
    VirtualMachine(virtual_time::Launch),
    #[command(hide = true)]
    VirtualInit(virtual_time::Init),
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.action {
        Action::List(arguments) => list::run(&arguments),
        Action::Run(arguments) => run::run(&arguments),
        Action::Report(arguments) => report::run(&arguments),
        Action::Compare(arguments) => compare::run(&arguments),
        Action::Merge(arguments) => merge::run(&arguments),
        Action::Presets(arguments) => presets::run(&arguments),
        Action::Verify(arguments) => verify::run(&arguments),
        Action::Link(arguments) => link::run(*arguments),
        Action::VirtualMachine(arguments) => Err(virtual_time::launch(&arguments)),
        Action::VirtualInit(_) => virtual_time::init(),
    }
}

/// Prints `value` as one document.
fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Failed(format!("cannot write JSON: {error}")))?;
    outln!("{text}");
    Ok(())
}

/// A flag that is set when this process gets SIGINT or SIGTERM, from the return on.
pub(crate) fn stop_switch() -> Result<Arc<AtomicBool>, Failure> {
    let switch = Arc::new(AtomicBool::new(false));
    let on = Arc::clone(&switch);
    let (caught, catching) = mpsc::channel();
    let waiting = std::thread::Builder::new().spawn(move || {
        let wait = async move {
            once_caught(interrupted(), caught).await;
            on.store(true, Ordering::Relaxed);
            Ok(())
        };
        // Without a runtime, Ctrl-C ends the process at once; finished runs are kept in any case.
        let _ = crate::in_runtime(wait);
    });
    waiting.map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
    // An error means that the sender was dropped: the signals are caught, or cannot be.
    let _ = catching.recv();
    Ok(switch)
}
