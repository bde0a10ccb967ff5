//! The common command line of all peers.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The role of the peer.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the files of a directory.
    Server(ServerArgs),
    /// Download files.
    Client(ClientArgs),
}

/// Arguments of `server`.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Address and port to listen on.
    #[arg(long)]
    pub listen: SocketAddr,
    /// Directory whose files are served.
    #[arg(long)]
    pub www: PathBuf,
    /// Certificate chain in PEM.
    #[arg(long)]
    pub cert: PathBuf,
    /// Private key in PEM (PKCS #8).
    #[arg(long)]
    pub key: PathBuf,
    /// Name of the case, as in the QUIC interop runner.
    #[arg(long)]
    pub case: String,
}

/// Arguments of `client`.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// Name of the case, as in the QUIC interop runner.
    #[arg(long)]
    pub case: String,
    /// Address of the server, or of the relay in front of it.
    #[arg(long)]
    pub server: SocketAddr,
    /// Name of the server, in SNI and `:authority`.
    #[arg(long)]
    pub name: String,
    /// Directory the files are written to.
    #[arg(long)]
    pub out: PathBuf,
    /// An address of this host for a separate path; repeatable. The connection starts on the first.
    #[arg(long)]
    pub address: Vec<IpAddr>,
    /// A file that lists more paths, one a line.
    #[arg(long)]
    pub paths_from: Option<PathBuf>,
    /// Paths to download, each with a leading slash.
    pub paths: Vec<String>,
}

impl ClientArgs {
    /// All paths: those of the command line, then those of `--paths-from`.
    ///
    /// # Errors
    /// If the list cannot be read or there is nothing to download.
    pub fn all_paths(&self) -> anyhow::Result<Vec<String>> {
        let mut paths = self.paths.clone();
        if let Some(list) = &self.paths_from {
            paths.extend(std::fs::read_to_string(list)?.lines().map(str::to_owned));
        }
        anyhow::ensure!(!paths.is_empty(), "no paths to download");
        Ok(paths)
    }
}

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Parses the process's arguments; exits with status 2 on bad usage.
#[must_use]
pub fn parse() -> Command {
    Cli::parse().command
}

/// Parses `arguments`, the program's name first; exits with status 2 on bad usage.
#[must_use]
pub fn parse_from(arguments: impl IntoIterator<Item = OsString>) -> Command {
    Cli::parse_from(arguments).command
}
