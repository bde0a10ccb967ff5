//! `marline man`.

use std::io;

use clap::{Args, Command};

use crate::failure::Failure;

/// Print the manual page, of marline or of a verb
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline man get | man -l -\n  \
    marline man > /usr/local/share/man/man1/marline.1")]
pub(crate) struct Arguments {
    /// A verb; without it, the page of marline
    verb: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, mut root: Command) -> Result<(), Failure> {
    root.build();
    let command = match &arguments.verb {
        None => root,
        Some(verb) => root.find_subcommand(verb).cloned().ok_or_else(|| {
            Failure::Usage(format!("there is no verb `{verb}`; see `marline --help`"))
        })?,
    };
    clap_mangen::Man::new(command)
        .render(&mut io::stdout())
        .map_err(|error| Failure::Failed(format!("cannot print the page: {error}")))
}
