//! `marline qlog`.

mod convert;
mod summary;

use std::io::{self, BufReader, ErrorKind, Stdin};
use std::path::Path;

use clap::{Args, Subcommand};
use marline_report::qlog::{Error, Events};

use crate::failure::Failure;

/// Read qlog files of QUIC connections
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Summary(summary::Arguments),
    Convert(convert::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::Summary(arguments) => summary::run(arguments),
        Action::Convert(arguments) => convert::run(arguments),
    }
}

/// The argument that stands for standard input and for standard output.
const STANDARD_STREAM: &str = "-";

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD_STREAM
}

/// Standard input, as errors name it.
fn standard_input() -> &'static Path {
    Path::new("standard input")
}

/// The events on standard input.
fn standard_events() -> Events<BufReader<Stdin>> {
    Events::new(BufReader::new(io::stdin()), standard_input())
}

/// The failure for a file that cannot be read, with what to do about it.
fn unreadable(error: &Error) -> Failure {
    let advice = match error {
        Error::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound => "check the path",
            ErrorKind::IsADirectory => "name the files in it",
            ErrorKind::InvalidInput => "give its content on standard input, as `-`",
            _ => "give a file that can be read",
        },
        Error::Record { .. } | Error::NoEvents { .. } => {
            "give a qlog file, as `marline get --qlog DIR` writes it"
        }
    };
    Failure::Failed(format!("{error}; {advice}"))
}
