//! marline as an interop peer.

mod client;
mod paths;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;

use peer_kit::{Command, multipath};

#[tokio::main]
async fn main() -> ExitCode {
    peer_kit::outcome::exit(match peer_kit::cli::parse() {
        Command::Server(args) if multipath::is_wanted(&args.case, true) => {
            paths::serve(&args).await
        }
        Command::Server(args) => server::run(&args).await,
        Command::Client(args) => client::run(&args).await,
    })
}

/// The directory for qlog files in `QLOGDIR`, created if needed.
fn qlog_directory() -> std::io::Result<Option<PathBuf>> {
    let directory = std::env::var_os("QLOGDIR").map(PathBuf::from);
    if let Some(directory) = &directory {
        std::fs::create_dir_all(directory)?;
    }
    Ok(directory)
}
