//! noq with h3 as an interop peer.

mod client;
mod paths;
mod server;
mod transport;

use std::process::ExitCode;

use peer_kit::Command;

#[tokio::main]
async fn main() -> ExitCode {
    peer_kit::outcome::exit(match peer_kit::cli::parse() {
        Command::Server(args) => server::run(&args).await,
        Command::Client(args) => client::run(&args).await,
    })
}
