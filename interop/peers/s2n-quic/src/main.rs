//! s2n-quic with h3 as an interop peer.

mod client;
mod server;
mod transport;

use std::process::ExitCode;
use std::time::Duration;

use peer_kit::{Command, Failure, Outcome};
use s2n_quic::provider::limits::Limits;

/// Above what a handshake with the losses of any case takes.
const HANDSHAKE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    peer_kit::outcome::exit(run().await)
}

async fn run() -> Outcome {
    match peer_kit::cli::parse() {
        Command::Server(args) => {
            supported(&args.case)?;
            server::run(&args).await
        }
        Command::Client(args) => {
            supported(&args.case)?;
            client::run(&args).await
        }
    }
}

/// Rejects cases that s2n-quic supports in neither role.
fn supported(case: &str) -> Outcome {
    match case {
        "resumption" | "zerortt" => Err(Failure::Unsupported(
            "s2n-quic with rustls neither sends nor keeps session tickets",
        )),
        _ => Ok(()),
    }
}

fn limits() -> anyhow::Result<Limits> {
    Ok(Limits::new().with_max_handshake_duration(HANDSHAKE)?)
}
