//! The command line.

use std::env;
use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::stacks;
use crate::task::Task;

/// Measures QUIC stacks side by side and prints a table.
#[derive(Parser)]
pub(crate) struct Args {
    /// Stacks to measure; default: all that are built.
    #[arg(long, value_delimiter = ',', value_parser = stack_names())]
    pub(crate) stacks: Vec<String>,
    /// Tasks to measure; default: all.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Task>,
    /// Number of rounds.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Smaller tasks, for a quick overview.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run servers and clients with real-time priority (SCHED_FIFO; requires `chrt` and its privilege).
    #[arg(long)]
    pub(crate) realtime: bool,
    /// The server's core.
    #[arg(long, default_value_t = 0)]
    pub(crate) server_core: usize,
    /// The client's core.
    #[arg(long, default_value_t = 1)]
    pub(crate) client_core: usize,
    /// Port that servers listen on.
    #[arg(long, default_value_t = 14_440)]
    pub(crate) port: u16,
    /// Directory of the programs.
    #[arg(long, default_value_os_t = own_directory())]
    pub(crate) programs: PathBuf,
    /// Write the table to a file instead of printing it.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Write every single measurement to a file.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

impl Args {
    pub(crate) fn tasks(&self) -> impl Iterator<Item = Task> {
        Task::ALL
            .into_iter()
            .filter(|task| self.only.is_empty() || self.only.contains(task))
    }
}

fn stack_names() -> PossibleValuesParser {
    PossibleValuesParser::new(stacks::ALL.iter().map(|stack| stack.name))
}

fn own_directory() -> PathBuf {
    let own = env::current_exe().ok();
    own.and_then(|path| path.parent().map(PathBuf::from))
        .unwrap_or_default()
}
