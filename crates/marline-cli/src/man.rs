//! `marline man`.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;
use crate::output;

/// Print the manual page, of marline or of a verb
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline man get | man -l -\n  \
    marline man lab run | man -l -\n  \
    marline man --dir /usr/local/share/man/man1")]
pub(crate) struct Arguments {
    /// A verb, with the verb inside it if there is one, as `lab run` or `lab-run`; without it, the page of marline
    #[arg(value_name = "VERB")]
    verbs: Vec<String>,

    /// Write the pages of all verbs into this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "verbs")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, mut root: Command) -> Result<(), Failure> {
    if let Some(dir) = &arguments.dir {
        return clap_mangen::generate_to(root, dir).map_err(|error| {
            Failure::Failed(format!(
                "cannot write pages into {}: {error}",
                dir.display()
            ))
        });
    }
    root.build();
    let verbs = arguments.verbs.join("-");
    let command = match verbs.as_str() {
        "" => root,
        verbs => find(&root, &format!("marline-{verbs}"))
            .cloned()
            .ok_or_else(|| {
                let verbs = arguments.verbs.join(" ");
                Failure::Usage(format!("there is no verb `{verbs}`; see `marline --help`"))
            })?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .source(concat!("marline ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(|error| Failure::Failed(format!("cannot make the page: {error}")))?;
    output::write(&page)
}

/// The command inside `command` whose page has this name.
fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Command> {
    command.get_subcommands().find_map(|inner| {
        if inner.get_display_name() == Some(name) {
            return Some(inner);
        }
        find(inner, name)
    })
}
