//! Errors of the command line, printed as one line with what was probably meant.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use marline::settings;

use crate::failure::Failure;
use crate::get::hints;

/// Prints the help or the version, or an error of usage of `root` in one line.
pub(crate) fn of_arguments(error: &clap::Error, root: &Command) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        let printed = error.print().and_then(|()| io::stdout().flush());
        return match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => Failure::Output(error).report(),
        };
    }
    let called = called(root, std::env::args_os().skip(1));
    if matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return Failure::Usage(format!("a verb is missing; see `{called} --help`")).report();
    }
    if let Some(message) = unknown_flag(error, &called) {
        return Failure::Usage(format!("{message}; see `{called} --help`")).report();
    }
    if let Some(message) = unknown_name(error, command(root, &called)) {
        return see_help(&message, &called).report();
    }
    let text = error.to_string();
    let mut words = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        if !line.is_empty() {
            words.push(line.trim_start_matches("error: ").replace("tip: ", "("));
        }
    }
    let mut message = String::new();
    for word in words {
        if !message.is_empty() {
            message.push(' ');
        }
        message.push_str(&word);
        if word.starts_with('(') {
            message.push(')');
        }
    }
    see_help(&message, &called).report()
}

/// `message`, and where the help is.
fn see_help(message: &str, called: &str) -> Failure {
    let see = if message.ends_with('?') {
        " See"
    } else {
        "; see"
    };
    Failure::Usage(format!("{message}{see} `{called} --help`"))
}

/// The command that is `called`.
fn command<'a>(root: &'a Command, called: &str) -> &'a Command {
    let verbs = called.split(' ').skip(1);
    verbs.fold(root, |command, verb| {
        command.find_subcommand(verb).unwrap_or(command)
    })
}

/// The command that `arguments` name, as `marline lab run`: before its verb, it has no flag with a value.
fn called(root: &Command, arguments: impl Iterator<Item = OsString>) -> String {
    let mut name = root.get_name().to_owned();
    let mut command = root;
    for argument in arguments {
        let Some(verb) = command.find_subcommand(&argument) else {
            break;
        };
        name = format!("{name} {}", verb.get_name());
        command = verb;
    }
    name
}

/// A flag that messages never suggest, because it disables the verification of certificates.
const RISKY: &str = "--insecure";

/// A message about an unknown flag for which the most similar known one must not be suggested: it does something else,
/// or disables the verification of certificates.
fn unknown_flag(error: &clap::Error, called: &str) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let flag = text(ContextKind::InvalidArg)?;
    if called == "marline get"
        && let Some(instead) = hints::instead_of(flag)
    {
        return Some(format!("there is no {flag}; {instead}"));
    }
    if called == "marline serve" && flag == "--to" {
        let message = "there is no --to; `marline serve` serves a directory, and `marline proxy --to URL` is what passes requests on";
        return Some(message.to_owned());
    }
    let suggested = text(ContextKind::SuggestedArg)?;
    (suggested == RISKY).then(|| format!("there is no {flag}"))
}

/// A message that `command` has no flag `name`, which is without its dashes, and which ones are nearest.
fn no_flag(command: &Command, name: &str) -> String {
    let flags = command.get_arguments().filter(|one| !one.is_hide_set());
    let flags = flags.filter_map(|one| one.get_long());
    let flags: Vec<_> = flags
        .map(|name| format!("--{name}"))
        .filter(|name| name != RISKY)
        .collect();
    let advice = settings::advice(&format!("--{name}"), flags.iter().map(String::as_str));
    format!("there is no --{}; {advice}", settings::quote(name))
}

/// A message about the long flag `written` of `get`, if there is none of that name.
pub(crate) fn unknown_flag_of_get(get: &Command, written: &str) -> Option<String> {
    let name = written.strip_prefix("--")?;
    let is_it = |one: &clap::Arg| {
        let others = one.get_all_aliases().unwrap_or_default();
        one.get_long() == Some(name) || others.contains(&name)
    };
    if get.get_arguments().any(is_it) {
        return None;
    }
    Some(match hints::instead_of(written) {
        Some(instead) => format!("there is no {written}; {instead}"),
        None => no_flag(get, name),
    })
}

/// A message about an unknown flag or verb of `command`, with the nearest known ones.
fn unknown_name(error: &clap::Error, command: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let written = text(ContextKind::InvalidArg)?;
            Some(no_flag(command, written.strip_prefix("--")?))
        }
        ErrorKind::InvalidSubcommand => {
            let verb = text(ContextKind::InvalidSubcommand)?;
            let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
            let verbs = verbs.map(Command::get_name);
            Some(settings::unknown("verb", verb, verbs))
        }
        _ => None,
    }
}
