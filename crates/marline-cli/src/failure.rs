//! Failures of a verb, printed as one line on standard error, with advice.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use marline_http::client::ClientError;

/// Why a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage: exit status 2.
    Usage(String),
    /// Any other error: exit status 1.
    Failed(String),
    /// An error that has been printed already: exit status 1.
    Reported,
    /// A program that was run ended with this status.
    Status(u8),
}

impl Failure {
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                print_message(&message);
                ExitCode::from(2)
            }
            Self::Failed(message) => {
                print_message(&message);
                ExitCode::FAILURE
            }
            Self::Reported => ExitCode::FAILURE,
            Self::Status(code) => ExitCode::from(code),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) => f.write_str(message),
            Self::Reported => f.write_str("it failed, as printed above"),
            Self::Status(code) => write!(f, "a program ended with status {code}"),
        }
    }
}

/// Prints a message on standard error.
pub(crate) fn print_message(message: &str) {
    eprintln!("marline: {message}");
}

/// Prints the help or the version, or an error of usage in one line.
pub(crate) fn of_arguments(error: &clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        // Fails if the reader has closed the pipe.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return Failure::Usage("a verb is missing; see `marline --help`".to_owned()).report();
    }
    if let Some(message) = unknown_flag(error) {
        return Failure::Usage(format!("{message}; see `marline VERB --help`")).report();
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
    Failure::Usage(format!(
        "{message}; see `marline --help` and `marline VERB --help`"
    ))
    .report()
}

/// A message about an unknown flag for which the most similar known one must not be suggested: it does something else, or
/// switches the verification of certificates off.
fn unknown_flag(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let flag = text(ContextKind::InvalidArg)?;
    if flag == "--interface" {
        return Some(format!(
            "there is no {flag}; name an interface with --path IFACE"
        ));
    }
    let suggested = text(ContextKind::SuggestedArg)?;
    (suggested == "--insecure").then(|| format!("there is no {flag}"))
}

/// Advice for the user about an error.
pub(crate) fn advice(error: &ClientError) -> &'static str {
    match error {
        ClientError::Certificate { .. } => {
            "give the certificate to trust with --cacert FILE, or for a test use --insecure"
        }
        ClientError::Header { .. } => "change it in --header",
        ClientError::Resolve { .. } => "check the host's name and this machine's network",
        ClientError::Connect { .. } | ClientError::ConnectTimeout { .. } => {
            "check host and port, or try another version with --http"
        }
        ClientError::NoPath { .. } => {
            "give --path an interface or address that `ip address` shows, of the host's address family"
        }
        ClientError::WrongProtocol { .. } => "try another version with --http",
        ClientError::NoResponse { .. } => "try again, or another version with --http",
        ClientError::Truncated { .. } => {
            "fetch it again, with --resume to continue after an interruption"
        }
        ClientError::WrongRange(_) => "fetch it again without --resume and --split",
        ClientError::File { cause, .. } => match cause.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                "free some space and fetch it again"
            }
            std::io::ErrorKind::NotFound => "create the directory first",
            _ => "choose another file or directory with -o",
        },
        ClientError::Trust { .. } => "give a PEM file with --cacert FILE",
        _ => "see `marline get --help`",
    }
}
