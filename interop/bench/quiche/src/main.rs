//! quiche in the bench. quiche brings no loop: this one has a thread, batches of datagrams in both directions and
//! touches only connections that received something.

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
