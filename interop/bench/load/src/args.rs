//! The command line.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Requests one file of a server, again and again, and prints a measurement as JSON.
#[derive(Parser, Clone)]
pub(crate) struct Args {
    /// The server's address and port.
    #[arg(long)]
    pub(crate) server: SocketAddr,
    /// The server's name, for TLS and as the authority of requests.
    #[arg(long, default_value = "localhost")]
    pub(crate) name: String,
    /// The path of the file.
    #[arg(long)]
    pub(crate) path: String,
    /// Bytes of the file: a response of another length is an error.
    #[arg(long)]
    pub(crate) bytes: u64,
    /// The version of HTTP.
    #[arg(long)]
    pub(crate) http: Version,
    /// Connections at once.
    #[arg(long, default_value_t = 1)]
    pub(crate) connections: usize,
    /// Requests at once on each connection, of HTTP/2 and HTTP/3.
    #[arg(long, default_value_t = 1)]
    pub(crate) streams: usize,
    /// How long connections are used.
    #[arg(long, default_value = "keep")]
    pub(crate) reuse: Reuse,
    /// Seconds in which requests begin.
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// Threads, over which connections are distributed.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
}

/// A version of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Version {
    /// HTTP/1.1 over TLS 1.3 over TCP.
    #[value(name = "1.1")]
    One,
    /// HTTP/2 over TLS 1.3 over TCP.
    #[value(name = "2")]
    Two,
    /// HTTP/3 over QUIC.
    #[value(name = "3")]
    Three,
}

impl Version {
    /// The name of the protocol for ALPN.
    pub(crate) fn alpn(self) -> &'static [u8] {
        match self {
            Self::One => b"http/1.1",
            Self::Two => b"h2",
            Self::Three => b"h3",
        }
    }
}

/// How long connections are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Reuse {
    /// Connections stay open.
    Keep,
    /// A connection for each request, with a full handshake.
    Full,
    /// A connection for each request, which resumes the session of the one before.
    Resume,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration <= Duration::from_secs(600) => Ok(seconds),
        _ => Err("not from 0 to 600".into()),
    }
}
