//! The arguments of `get` before they are parsed: configuration files, `--next`, and the two meanings of `--json`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::cli::Cli;
use crate::failure::{Failure, print_message};
use crate::get::curl::READ_ERROR;
use crate::get::file;
use crate::usage;

/// Files that name each other, at most.
const MAX_DEPTH: usize = 8;

/// `arguments`, those of the process, with those of configuration files if they are of `get`; each `--next` begins those of
/// another command line, which has the same verb.
///
/// # Errors
/// A configuration file cannot be read, or is malformed.
pub(crate) fn prepared(arguments: Vec<OsString>) -> Result<Vec<Vec<OsString>>, Failure> {
    if arguments.get(1).is_none_or(|verb| verb != "get") {
        return Ok(vec![arguments]);
    }
    let (verb, own) = arguments.split_at(2);
    let is_alone = own
        .first()
        .is_some_and(|first| first == "-q" || first == "--disable");
    let own = if is_alone { &own[1..] } else { own };
    let mut prepared = verb.to_vec();
    if let Some(path) = default_file().filter(|path| !is_alone && path.is_file()) {
        prepared.extend(of_file(&path, 0)?);
    }
    prepared.extend(expanded(own.to_vec(), 0)?);
    let is_next = |argument: &OsString| argument == "--next" || argument == "-:";
    let lines = prepared.split(is_next).enumerate();
    let lines = lines.map(|(number, line)| match number {
        0 => line.to_vec(),
        _ => [verb, line].concat(),
    });
    Ok(lines.collect())
}

/// `$XDG_CONFIG_HOME/marline/get.conf`.
fn default_file() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".config"));
    let base = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
    Some(
        base.map(PathBuf::from)
            .or_else(home)?
            .join("marline/get.conf"),
    )
}

/// Replaces `-K FILE` by what is in the file, and `--json DATA` by the name that the flag has with a value.
fn expanded(arguments: Vec<OsString>, depth: usize) -> Result<Vec<OsString>, Failure> {
    let mut expanded = Vec::new();
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        if text == "--" {
            expanded.push(argument);
            expanded.extend(arguments);
            break;
        }
        let file = match text {
            "-K" | "--config" => Some(arguments.next().ok_or_else(|| {
                Failure::Usage("-K needs the name of a file, or - for standard input".to_owned())
            })?),
            _ => {
                let joined = text.strip_prefix("--config=");
                let joined =
                    joined.or_else(|| text.strip_prefix("-K").filter(|rest| !rest.is_empty()));
                joined.map(OsString::from)
            }
        };
        match (file, text.strip_prefix("--json=")) {
            (Some(file), _) => expanded.extend(of_file(Path::new(&file), depth)?),
            (None, Some(data)) => expanded.push(format!("--data-json={data}").into()),
            (None, None)
                if text == "--json" && arguments.peek().is_some_and(|next| is_data(next)) =>
            {
                expanded.push("--data-json".into());
            }
            (None, None) => expanded.push(argument),
        }
    }
    Ok(expanded)
}

/// Whether the argument after `--json` is content, and not a URL or a flag: valid JSON, or the name of a file after @.
fn is_data(argument: &OsStr) -> bool {
    let text = argument.to_str().unwrap_or_default();
    text.starts_with('@') || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The arguments of a configuration file.
fn of_file(path: &Path, depth: usize) -> Result<Vec<OsString>, Failure> {
    let shown = path.display();
    if depth >= MAX_DEPTH {
        let message =
            format!("{shown}: configuration files name each other more than {MAX_DEPTH} times");
        return Err(Failure::Usage(message));
    }
    let content = file::read_input_text(path, file::MAX_SMALL);
    let content = content.map_err(|error| {
        print_message(&format!("cannot read {shown}: {error}"));
        Failure::Status(READ_ERROR)
    })?;
    let command = Cli::command();
    let get = command.find_subcommand("get").unwrap_or(&command);
    let mut arguments = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let read = arguments_of(line).and_then(|read| {
            let flag = read.first().and_then(|first| first.split('=').next());
            let unknown = flag.and_then(|flag| usage::unknown_flag_of_get(get, flag));
            unknown.map_or(Ok(read), Err)
        });
        let read =
            read.map_err(|reason| Failure::Usage(format!("{shown}:{}: {reason}", number + 1)))?;
        arguments.extend(read.into_iter().map(OsString::from));
    }
    expanded(arguments, depth + 1)
}

/// The arguments of a line: a flag with or without its dashes, and its value after a blank, `=` or `:`.
fn arguments_of(line: &str) -> Result<Vec<String>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(Vec::new());
    }
    let end = line.find(|c: char| c.is_whitespace() || c == '=' || c == ':');
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
    let flag = match name.starts_with('-') {
        true => name.to_owned(),
        false => format!("--{name}"),
    };
    let value = match rest.strip_prefix('"') {
        Some(quoted) => Some(unquoted(quoted)?),
        None => Some(rest.to_owned()).filter(|value| !value.is_empty()),
    };
    Ok(match value {
        None => vec![flag],
        Some(value) if flag.starts_with("--") => vec![format!("{flag}={value}")],
        Some(value) => vec![flag, value],
    })
}

/// The text before the closing quote; `\n` and others stand for what curl takes them for.
fn unquoted(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return Ok(value),
            '\\' => value.push(match characters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('v') => '\u{b}',
                Some(other) => other,
                None => break,
            }),
            other => value.push(other),
        }
    }
    Err("the quote is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(arguments: &[&str]) -> Vec<OsString> {
        expanded(arguments.iter().map(OsString::from).collect(), 0).unwrap()
    }

    #[test]
    fn json_has_a_value_only_where_json_or_a_file_follows() {
        for (given, meant) in [
            (
                &["--json", r#"{"a":1}"#][..],
                &["--data-json", r#"{"a":1}"#][..],
            ),
            (&["--json", "[1]"], &["--data-json", "[1]"]),
            (&["--json", "5"], &["--data-json", "5"]),
            (&["--json", "true"], &["--data-json", "true"]),
            (&["--json", "@file"], &["--data-json", "@file"]),
            (&["--json=1"], &["--data-json=1"]),
            (&["--json", "https://h/"], &["--json", "https://h/"]),
            (&["--json", "[::1]/a"], &["--json", "[::1]/a"]),
            (&["--json", "{a,b}.test"], &["--json", "{a,b}.test"]),
            (&["--json"], &["--json"]),
            (&["--", "--json", "[1]"], &["--", "--json", "[1]"]),
        ] {
            assert_eq!(
                expand(given),
                meant.iter().map(OsString::from).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn lines_of_configuration_files_are_flags() {
        for (line, arguments) in [
            ("# url = x", &[][..]),
            ("silent", &["--silent"]),
            ("url = https://h/", &["--url=https://h/"]),
            (r#"user-agent: "a \"b\"\t""#, &["--user-agent=a \"b\"\t"]),
            ("-o file", &["-o", "file"]),
            ("--max-time 5", &["--max-time=5"]),
        ] {
            assert_eq!(arguments_of(line).unwrap(), arguments, "{line}");
        }
        assert!(arguments_of(r#"url = "https://h"#).is_err());
    }
}
