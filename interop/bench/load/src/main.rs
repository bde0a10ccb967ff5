//! Load for HTTP servers: the same requests over HTTP/1.1, 2 and 3, by hyper, and by h3 with quinn.
//!
//! Requests follow one another without a pause, so many at once, and all that have begun in time are counted. The report
//! is one line of JSON.

mod args;
mod connection;
mod load;
mod report;
mod tls;

use std::sync::Arc;

use bench_kit::meter::cpu_seconds;
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    let args = args::Args::parse();
    let verifier = Arc::new(tls::Trusting::new());
    let (counts, seconds) = load::run_all(&args, &verifier)?;
    let report = counts.report(seconds, cpu_seconds(), verifier.seen());
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
