//! `marline tunnel token`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use marline_tunnel::tokens::{Token, Tokens};

use crate::failure::Failure;

/// Bytes of a file of tokens.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Make a token for a user of a server
///
/// Prints the token, and appends its hash to the file that `tunnel serve --tokens` reads.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  marline tunnel token anna --tokens tokens > anna.token")]
pub(crate) struct Arguments {
    /// The user
    #[arg(value_name = "NAME", value_parser = user_name)]
    name: String,

    /// The server's file of tokens
    #[arg(long, value_name = "FILE")]
    tokens: PathBuf,
}

fn user_name(text: &str) -> Result<String, String> {
    let is_word = text.chars().all(|c| c.is_ascii_graphic()) && !text.starts_with('#');
    match is_word && !text.is_empty() && text.len() <= 64 {
        true => Ok(text.to_owned()),
        false => Err("write at most 64 letters, digits and signs, without spaces".to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if Tokens::read(&arguments.tokens).is_ok_and(|tokens| tokens.has_name(&arguments.name)) {
        let (name, path) = (&arguments.name, arguments.tokens.display());
        return Err(Failure::Failed(format!(
            "{path} has a token of {name}; remove its line first, or choose another name, as {name}-phone"
        )));
    }
    let token = Token::random().map_err(|error| Failure::Failed(error.to_string()))?;
    append(arguments, &token.line(&arguments.name)).map_err(|error| {
        let path = arguments.tokens.display();
        Failure::Failed(format!("cannot write {path}: {error}"))
    })?;
    outln!("{}", token.as_str());
    Ok(())
}

fn append(arguments: &Arguments, line: &str) -> io::Result<()> {
    let before = match marline_http::read_regular_file(&arguments.tokens, MAX_FILE_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    // An editor may have left the last line without an end.
    let end = if before.last().is_some_and(|last| *last != b'\n') {
        "\n"
    } else {
        ""
    };
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(&arguments.tokens)?;
    file.write_all(format!("{end}{line}\n").as_bytes())
}
