//! The `marline` command, with one file for each verb.
//!
//! It is a library for its fuzz target, and for programs that are this command with policies of their own ([`main_with`]).
//! Others use the crate `marline`.

#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::bare_urls,
    reason = "the documentation of arguments is their help on the terminal"
)]

#[macro_use]
mod output;

mod allocator;
mod check;
mod cli;
mod completions;
mod config_file;
#[cfg(target_os = "linux")]
mod demo;
mod duration;
mod failure;
#[cfg(feature = "flow")]
mod flow;
mod gateway;
mod get;
mod history;
mod key_log;
#[cfg(target_os = "linux")]
mod lab;
mod listen;
#[cfg(feature = "tracing")]
mod log;
mod man;
mod pipes;
mod prepare;
mod progress;
mod proxy;
mod qlog;
mod reference;
mod serve;
mod server;
mod signal;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod top;
mod transport;
#[cfg(target_os = "linux")]
mod tunnel;
mod usage;
mod values;
mod workers;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Verb};
use crate::failure::Failure;

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let lines = match prepare::prepared(std::env::args_os().collect()) {
        Ok(lines) => lines,
        Err(failure) => return failure.report(),
    };
    let lines = lines.into_iter().map(Cli::try_parse_from);
    let mut lines = match lines.collect::<Result<VecDeque<_>, _>>() {
        Ok(lines) => lines,
        Err(error) => return usage::of_arguments(&error, &Cli::command()),
    };
    let Some(cli) = lines.pop_front() else {
        return Failure::Usage("there are no arguments".to_owned()).report();
    };
    let done = match cli.verb {
        Verb::Serve(arguments) => {
            server::given::take().and_then(|given| server::run(arguments, given))
        }
        Verb::Proxy(arguments) => {
            server::given::take().and_then(|given| server::run(*arguments, given))
        }
        Verb::Gateway(arguments) => {
            server::given::take().and_then(|given| in_runtime(gateway::run(arguments, given)))
        }
        Verb::Top(arguments) => in_runtime(top::run(arguments)),
        Verb::Check(arguments) => check::run(arguments),
        Verb::Get(first) => {
            let next = lines.into_iter().filter_map(|line| match line.verb {
                Verb::Get(arguments) => Some(*arguments),
                _ => None,
            });
            in_runtime(get::run([*first].into_iter().chain(next).collect()))
        }
        #[cfg(target_os = "linux")]
        Verb::Tunnel(arguments) => tunnel::run(arguments),
        #[cfg(target_os = "linux")]
        Verb::Demo(arguments) => demo::run(&arguments),
        #[cfg(target_os = "linux")]
        Verb::Lab(arguments) => lab::run(arguments),
        #[cfg(feature = "flow")]
        Verb::Flow(arguments) => flow::run(&arguments),
        Verb::Qlog(arguments) => qlog::run(&arguments),
        Verb::Reference(arguments) => reference::run(&arguments),
        Verb::Completions(arguments) => completions::run(&arguments, Cli::command()),
        Verb::Man(arguments) => man::run(&arguments, Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Runs the command, with the arguments of the process, with the policies and models of `registry`: experiments know them,
/// and so do `--cc` and configuration files.
pub fn main_with(registry: marline_lab::Registry) -> ExitCode {
    match registry.install() {
        Ok(()) => main(),
        Err(error) => Failure::Usage(error.to_string()).report(),
    }
}

/// The time to wait at the end for a thread that a disk or a terminal blocks.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs `work` and drops it at the end, which removes partial files.
fn in_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    run_in(tokio::runtime::Builder::new_multi_thread(), work)
}

/// The same on this thread alone, for servers and clients of tunnels. The workers of a server have threads of their own; a single
/// one is this thread, where tasks take turns, so that an endpoint sends what several of them have written at once, and no packet
/// wakes another thread.
fn on_this_thread(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    run_in(tokio::runtime::Builder::new_current_thread(), async {
        tokio::select! {
            done = work => done,
            never = allocator::give_back() => match never {},
        }
    })
}

fn run_in(
    mut builder: tokio::runtime::Builder,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(STOP_TIMEOUT);
    done
}
