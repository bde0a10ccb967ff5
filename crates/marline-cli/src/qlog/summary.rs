//! `marline qlog summary`.

use std::path::PathBuf;

use clap::Args;
use marline_report::Summary;
use marline_report::summary::BundleHistory;

use super::{is_standard, standard_events, standard_input, unreadable};
use crate::failure::Failure;

/// Summarize a qlog file
///
/// Time in each congestion state, losses and spurious losses, round-trip times, windows and
/// throughput, of each connection and path in the file. Logs of other QUIC implementations are supported.
///
/// For connections of a bundle: the decisions of its engine, and at the end the history of the bundle, once for
/// all of its connections.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline get --qlog logs https://example.org/file -o file\n  \
    marline qlog summary logs/*_client.sqlog\n  \
    marline qlog summary --json trace.qlog\n  \
    zstd -dc trace.qlog.zst | marline qlog summary -")]
pub(super) struct Arguments {
    /// qlog files, of one JSON document or of JSON text sequences; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print a JSON array with one object for each file
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let summaries = arguments.files.iter().map(|file| match is_standard(file) {
        true => Summary::complete(standard_input(), standard_events()),
        false => Summary::read(file),
    });
    let summaries = summaries
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unreadable(&error))?;
    if arguments.json {
        let summaries: Vec<_> = summaries.iter().map(Summary::to_json).collect();
        outln!("{}", serde_json::Value::from(summaries));
    } else {
        for summary in &summaries {
            out!("{summary}");
        }
        for history in BundleHistory::all(&summaries) {
            out!("\n{history}");
        }
    }
    Ok(())
}
