//! The relay as a program: runs until SIGTERM or SIGINT, then prints its report as JSON.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use interop_relay::{Config, Relay};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Relays UDP between a QUIC client and server, with configurable delay, loss, corruption and rebinding.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    config: Config,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let relay = Relay::bind(cli.config)?;
    eprintln!("listening on {}", relay.local_addr()?);
    let report = relay.run(&stop)?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
