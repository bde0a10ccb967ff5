//! The command line.

use std::env;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::ensure;
use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::fetch::Fetch;
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
    /// Measure downloads over this emulated link instead of the tasks on loopback, such as `wifi=wifi-11n` or
    /// `far=rate=20mbps,rtt=100ms`; repeatable. Others are compared with the first.
    #[arg(long = "link", value_name = "NAME=SPEC")]
    pub(crate) links: Vec<NamedLink>,
    /// Instead, fetch an object of this size over the links so many times, each with a new client over a new connection,
    /// and stacks with their own settings: `5MB`, `10kBx30`, or `wifi:10kBx30` for one link; repeatable.
    #[arg(long = "fetch", value_name = "[LINK:]SIZE[xCOUNT]")]
    pub(crate) fetches: Vec<Fetch>,
    /// Bytes of a download over a link.
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) link_bytes: u64,
    /// The program `marline`, whose `lab link` emulates links; default: in the directory of the programs.
    #[arg(long)]
    pub(crate) marline: Option<PathBuf>,
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
    /// The program that emulates links.
    pub(crate) fn emulator(&self) -> anyhow::Result<PathBuf> {
        let beside = || self.programs.join("marline");
        let emulator = self.marline.clone().unwrap_or_else(beside);
        ensure!(
            emulator.is_file(),
            "{} emulates links and is not built: --marline PATH",
            emulator.display()
        );
        Ok(emulator)
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = Task> {
        Task::ALL
            .into_iter()
            .filter(|task| self.only.is_empty() || self.only.contains(task))
    }
}

/// A link with a name for the table.
#[derive(Clone, Debug)]
pub(crate) struct NamedLink {
    pub(crate) name: String,
    /// As `marline lab link --link` takes it.
    pub(crate) spec: String,
}

impl FromStr for NamedLink {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, spec) = text.split_once('=').ok_or("expected NAME=SPEC")?;
        Ok(Self {
            name: name.to_owned(),
            spec: spec.to_owned(),
        })
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
