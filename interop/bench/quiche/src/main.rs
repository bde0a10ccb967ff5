//! The benchmark program of quiche. quiche has no event loop of its own: this one uses a thread and batches of datagrams
//! in both directions, and processes only connections that received something.

mod client;
mod config;
mod endpoint;
mod server;

use bench_kit::{Command, cli};

fn main() -> anyhow::Result<()> {
    match cli::parse() {
        Command::Server(args) => server::run(&args),
        Command::Client(args) => client::run(&args),
    }
}
