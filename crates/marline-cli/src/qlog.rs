//! `marline qlog`.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use marline_report::Summary;
use marline_report::qlog::Error;
use marline_report::summary::BundleHistory;

use crate::failure::Failure;

/// Read qlog files of QUIC connections
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Summary(SummaryArguments),
}

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
    marline qlog summary --json trace.qlog")]
struct SummaryArguments {
    /// qlog files, of one JSON document or of JSON text sequences
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print a JSON array with one object for each file
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Action::Summary(arguments) = &arguments.action;
    let summaries = arguments.files.iter().map(Summary::read);
    let summaries = summaries
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::Failed(format!("{error}; {}", advice(&error))))?;
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

/// What to do about a file that cannot be summarized.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound => "check the path",
            ErrorKind::IsADirectory => "name the files in it",
            _ => "give a file that can be read",
        },
        Error::Record { .. } | Error::NoEvents { .. } => {
            "give a qlog file, as `marline get --qlog DIR` writes it"
        }
    }
}
