//! The page of commands, from the definitions that parse them.

use std::collections::BTreeMap;

use clap::{Arg, Command, CommandFactory};

use super::*;
use crate::cli::Cli;

/// A flag that this many commands have with the same meaning is described once.
const SHARED_BY: usize = 2;

/// The help of a flag: all of it where there is more than the summary.
fn about(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let text = help.map(ToString::to_string).unwrap_or_default();
    let paragraphs: Vec<_> = text.split("\n\n").map(cell).collect();
    // A summary has no full stop of its own.
    paragraphs.join(". ")
}

/// `-o`, `--output FILE`; the name of a positional argument.
fn name(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let value = match arg.get_action().takes_values() {
        true => values.iter().map(|value| format!(" <{value}>")).collect(),
        false => String::new(),
    };
    if arg.is_positional() {
        let value = value.trim().trim_matches(['<', '>']).to_owned();
        return code(&cell(&value));
    }
    let short = arg.get_short().map(|short| code(&format!("-{short}")));
    let long = arg
        .get_long()
        .map(|long| code(&cell(&format!("--{long}{value}"))));
    [short, long]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// The default, and the names of the values where they are few.
fn values(arg: &Arg) -> String {
    let mut words = Vec::new();
    let names: Vec<_> = match arg.get_action().takes_values() {
        true => arg.get_possible_values(),
        false => Vec::new(),
    }
    .iter()
    .filter(|value| !value.is_hide_set())
    .map(|value| code(value.get_name()))
    .collect();
    if !names.is_empty() {
        words.push(names.join(", "));
    }
    let defaults = arg.get_default_values();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let defaults: Vec<_> = defaults
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        words.push(format!("by default {}", code(&defaults.join(" "))));
    }
    words.join("; ")
}

fn row(arg: &Arg) -> String {
    let mut row = String::new();
    line(&mut row, &[&name(arg), &about(arg), &values(arg)]);
    row
}

/// The arguments that a page lists: neither help nor version, nor hidden ones.
fn arguments(command: &Command) -> Vec<&Arg> {
    let all = command.get_arguments();
    all.filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
        .collect()
}

/// The commands without commands inside, each with its full name.
fn leaves<'a>(command: &'a Command, name: &str, found: &mut Vec<(String, &'a Command)>) {
    let inner: Vec<_> = command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help" && !inner.is_hide_set())
        .collect();
    for inner in &inner {
        leaves(inner, &format!("{name} {}", inner.get_name()), found);
    }
    if inner.is_empty() {
        found.push((name.to_owned(), command));
    }
}

/// The name by which a page refers to a flag.
fn short_name(arg: &Arg) -> String {
    code(&format!("--{}", arg.get_long().unwrap_or_default()))
}

fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut all = Vec::new();
    leaves(&root, "marline", &mut all);
    let mut users: BTreeMap<String, usize> = BTreeMap::new();
    for (_, command) in &all {
        for arg in arguments(command) {
            *users.entry(row(arg)).or_default() += 1;
        }
    }
    let is_shared = |arg: &Arg| !arg.is_positional() && users[&row(arg)] >= SHARED_BY;
    let mut page = format!(
        "{GENERATED}\n\n# Commands\n\n\
         `marline VERB --help` prints the same on a terminal, with examples; `-h` lists the flags of every day alone. \
         `marline man VERB` is the manual page, and `marline completions SHELL` completes names. \
         [Exit statuses](errors.md) have a page of their own.\n"
    );
    let mut shared = BTreeMap::new();
    for (name, command) in &all {
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let long = command
            .get_long_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let more = long.strip_prefix(about.as_str()).unwrap_or_default().trim();
        let _ = write!(page, "\n## `{name}`\n\n{about}.\n");
        for paragraph in more.split("\n\n").filter(|text| !text.trim().is_empty()) {
            let words: Vec<_> = paragraph.split_whitespace().collect();
            let _ = write!(page, "\n{}\n", words.join(" "));
        }
        let arguments = arguments(command);
        let own: String = arguments
            .iter()
            .filter(|arg| !is_shared(arg))
            .map(|arg| row(arg))
            .collect();
        if !own.is_empty() {
            table(&mut page, &["argument", "description", "values"], &own);
        }
        let others: Vec<_> = arguments
            .iter()
            .copied()
            .filter(|arg| is_shared(arg))
            .collect();
        if !others.is_empty() {
            let names: Vec<_> = others.iter().map(|arg| short_name(arg)).collect();
            let _ = write!(
                page,
                "\nFlags that other commands have, too ([below](#flags-of-several-commands)): {}.\n",
                names.join(", ")
            );
        }
        for arg in others {
            shared.insert((short_name(arg), row(arg)), ());
        }
    }
    let rows: String = shared.into_keys().map(|(_, row)| row).collect();
    section(
        &mut page,
        "Flags of several commands",
        &["argument", "description", "values"],
        &rows,
    );
    page
}

#[cfg(all(
    target_os = "linux",
    feature = "flow",
    feature = "radio",
    feature = "tracing"
))]
#[test]
fn the_page_of_commands_is_current() {
    is_current("commands.md", &page());
}
