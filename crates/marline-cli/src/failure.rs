//! Failures of a verb, printed as one line on standard error, with advice.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::IpAddr;
use std::process::ExitCode;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use http::StatusCode;
use marline::settings;
use marline_http::client::{CertificateProblem, ClientError, ProxyError};

use crate::get::{curl, hints};

/// Why a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage: exit status 2.
    Usage(String),
    /// Any other error: exit status 1.
    Failed(String),
    /// An error that has been printed already: exit status 1.
    Reported,
    /// Standard output cannot be written: exit status 23, as curl's.
    Output(io::Error),
    /// This exit status, of a program that was run, or for an error that has been printed already.
    Status(u8),
}

impl Failure {
    pub(crate) fn report(self) -> ExitCode {
        self.report_status().into()
    }

    /// Prints the message, and returns the exit status.
    pub(crate) fn report_status(self) -> u8 {
        if !matches!(self, Self::Reported | Self::Status(_)) {
            print_message(&self.to_string());
        }
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) | Self::Reported => 1,
            Self::Output(_) => curl::WRITE_ERROR,
            Self::Status(status) => status,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) => f.write_str(message),
            Self::Reported => f.write_str("it failed, as printed above"),
            Self::Output(error) => f.write_str(&unwritten(error)),
            Self::Status(code) => write!(f, "a program ended with status {code}"),
        }
    }
}

/// A message about standard output, which cannot be written.
pub(crate) fn unwritten(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::BrokenPipe => {
            "cannot write to standard output: its reader has closed it".to_owned()
        }
        _ => format!("cannot write to standard output: {error}"),
    }
}

/// Prints a message on standard error.
pub(crate) fn print_message(message: &str) {
    errln!("marline: {message}");
}

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

/// A message about an unknown flag or verb of `command`, with the nearest known ones.
fn unknown_name(error: &clap::Error, command: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let written = text(ContextKind::InvalidArg)?;
            let flag = written.strip_prefix("--")?;
            let flags = command.get_arguments().filter(|one| !one.is_hide_set());
            let flags = flags.filter_map(|one| one.get_long());
            let flags: Vec<_> = flags
                .map(|name| format!("--{name}"))
                .filter(|name| name != RISKY)
                .collect();
            let advice = settings::advice(&format!("--{flag}"), flags.iter().map(String::as_str));
            let flag = settings::quote(flag);
            Some(format!("there is no --{flag}; {advice}"))
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

/// Advice for the user about an error.
pub(crate) fn advice(error: &ClientError) -> Cow<'static, str> {
    let text = match error {
        ClientError::Certificate { host, problem, .. } => {
            return certificate_advice(host, *problem);
        }
        ClientError::Header { .. } => "change it in --header",
        ClientError::Resolve { .. } => "check the host's name and this machine's network",
        ClientError::Connect { .. } | ClientError::ConnectTimeout { .. } => {
            "check host and port, or try another version with --http"
        }
        ClientError::Tls { .. } => {
            "update the server; if --tls-max or --tlsv1.3 is given, leave it out"
        }
        ClientError::Proxy {
            cause: ProxyError::Refused(StatusCode::PROXY_AUTHENTICATION_REQUIRED),
            ..
        } => "give it as http://NAME:PASSWORD@HOST:PORT",
        ClientError::Proxy { .. } => "check the proxy, or use none with --noproxy '*'",
        ClientError::NoMultipathTcp { .. } => "leave --mptcp out",
        ClientError::NoPath { .. } => {
            "give --path an interface or address that `ip address` shows, of the host's address family"
        }
        ClientError::WrongProtocol { .. } => "try another version with --http",
        ClientError::NoResponse { .. } => "try again, or another version with --http",
        ClientError::Truncated { .. } => {
            "fetch it again, with -C - to continue after an interruption"
        }
        ClientError::TimeLimit { .. } => "allow more with --max-time",
        ClientError::Scheme { .. } => "other schemes are for curl",
        ClientError::TooManyRedirects { .. } => "allow more with --max-redirs",
        ClientError::TooSlow { .. } => "allow more with --speed-time, or less with --speed-limit",
        ClientError::NotRepeatable { .. } => "give the content in a file instead of standard input",
        ClientError::Upload { .. } => "check the file that is to be sent",
        ClientError::Identity { .. } => {
            "give the certificate with --cert, and its private key with --key"
        }
        ClientError::Local { .. } => {
            "give --interface a name or an address that `ip address` shows, of the host's address family"
        }
        ClientError::Encoding { .. } => "leave --compressed out to get it as it is",
        ClientError::Expansion { .. } => {
            "it may be an attack; leave --compressed out to get it as it is"
        }
        ClientError::TooLarge { .. } => "allow more with --max-filesize",
        ClientError::WrongRange(_) => "fetch it again without --resume and --split",
        ClientError::File { cause, .. } => match cause.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                "free some space and fetch it again"
            }
            std::io::ErrorKind::NotFound => "create the directory first",
            _ => "choose another file or directory with -o",
        },
        ClientError::Trust { .. } => "name a PEM file with --cacert FILE",
        _ => "see `marline get --help`",
    };
    text.into()
}

fn certificate_advice(host: &str, problem: CertificateProblem) -> Cow<'static, str> {
    match problem {
        CertificateProblem::NotTrusted => {
            "give that of the server or of its signer with --cacert FILE, or for a test use --insecure"
                .into()
        }
        CertificateProblem::NoName => {
            let kind = match host.parse::<IpAddr>() {
                Ok(_) => "IP",
                Err(_) => "DNS",
            };
            format!(
                "`openssl req -x509 ... -addext subjectAltName={kind}:{host}` makes one with a name; \
                 for a test use --insecure"
            )
            .into()
        }
        _ => "the server needs another one; for a test use --insecure".into(),
    }
}
