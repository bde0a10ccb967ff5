//! Failures of a verb, printed as one line on standard error, with advice.

use std::borrow::Cow;
use std::io;
use std::net::IpAddr;
use std::process::ExitCode;

use http::StatusCode;
use marline_http::client::{CertificateProblem, ClientError, ProxyError};

/// The exit status if output cannot be written, as curl has it.
pub(crate) const WRITE_ERROR: u8 = 23;

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
            Self::Output(_) => WRITE_ERROR,
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
        ClientError::SchemeNotAllowed { .. } => "allow them with --proto or --proto-redir",
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
