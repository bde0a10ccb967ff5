//! `marline qlog convert`.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use marline_report::qlog;
use marline_report::qvis::{self, Document};
use marline_report::units;

use super::{is_standard, standard_events, standard_input, unreadable};
use crate::failure::{Failure, print_message};

/// Convert a qlog file for a viewer that cannot open it
///
/// qvis supports qlog version 0.3 only, and neither the files of the current schema nor its events. Events that it has
/// no diagram for keep their present names. It shows the packets of several paths as those of one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline qlog convert --for qvis logs/0a1b2c_client.sqlog client.qlog\n  \
    marline qlog convert --for qvis - - < trace.sqlog > trace.qlog\n\n\
    Then open https://qvis.quictools.info and load the file there.")]
pub(super) struct Arguments {
    /// The viewer
    #[arg(long = "for", value_name = "VIEWER")]
    viewer: Viewer,

    /// A qlog file, in any version; `-` is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The file to write, which is replaced if it exists; its name must end in `.qlog` or `.json`, because qvis derives
    /// the format from that; `-` is standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Viewer {
    /// https://qvis.quictools.info
    Qvis,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Viewer::Qvis = arguments.viewer;
    let output = &arguments.output;
    let extension = output.extension().and_then(|extension| extension.to_str());
    if !is_standard(output) && !matches!(extension, Some("qlog" | "json")) {
        let message = format!(
            "{}: qvis derives the format of a file from its name; end it in `.qlog`",
            output.display()
        );
        return Err(Failure::Usage(message));
    }
    let document = read(&arguments.input).map_err(|error| match error {
        qvis::Error::Log(error) => unreadable(&error),
        error @ qvis::Error::TooLong { .. } => Failure::Failed(format!(
            "{error}; give the log of a shorter time, or see `marline qlog summary`"
        )),
    })?;
    if let (skipped @ 1.., Some(error)) = (document.skipped(), document.first_error()) {
        let skipped = units::counted(skipped as u64, "malformed record");
        print_message(&format!("{skipped} skipped: {error}"));
    }
    write(&document, output)
}

fn read(path: &Path) -> Result<Document, qvis::Error> {
    if is_standard(path) {
        return Document::of(standard_input(), standard_events());
    }
    Document::of(path, qlog::read(path)?)
}

fn write(document: &Document, path: &Path) -> Result<(), Failure> {
    if is_standard(path) {
        return write_to(document, io::stdout().lock()).map_err(Failure::Output);
    }
    let written = File::create(path).and_then(|file| write_to(document, file));
    written.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::NotFound => "; make its directory first",
            _ => "",
        };
        Failure::Failed(format!("cannot write {}: {error}{advice}", path.display()))
    })
}

fn write_to(document: &Document, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    document.write(&mut out)?;
    out.flush()
}
