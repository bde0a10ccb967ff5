//! quiche as an interop peer.

mod client;
mod config;
mod server;
mod session;

use std::process::ExitCode;

use peer_kit::{Command, Failure, Outcome};

fn main() -> ExitCode {
    peer_kit::outcome::exit(run())
}

fn run() -> Outcome {
    match peer_kit::cli::parse() {
        Command::Server(args) => {
            supported(&args.case)?;
            server::run(&args)
        }
        Command::Client(args) => {
            supported(&args.case)?;
            client::run(&args)
        }
    }
}

/// Rejects cases that quiche supports in neither role.
fn supported(case: &str) -> Outcome {
    match case {
        "ecn" => Err(Failure::Unsupported(
            "quiche neither sets nor counts ECN marks",
        )),
        _ => Ok(()),
    }
}
