//! The command line of every program of the bench.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The role of the program.
#[derive(Subcommand)]
pub enum Command {
    /// Answers requests until standard input ends.
    Server(ServerArgs),
    /// Runs one task and prints its measurement as JSON.
    Client(ClientArgs),
}

/// A server.
#[derive(Args)]
pub struct ServerArgs {
    /// Address and port to listen on.
    #[arg(long)]
    pub listen: SocketAddr,
    /// Certificate, PEM.
    #[arg(long)]
    pub cert: PathBuf,
    /// Private key, PEM.
    #[arg(long)]
    pub key: PathBuf,
    /// Keep the stack's own windows, limits and congestion controller.
    #[arg(long)]
    pub defaults: bool,
    /// The congestion controller, for programs that take a name: marline's and the kernel's.
    #[arg(long)]
    pub congestion: Option<String>,
    /// Threads that serve connections, for programs that may have several: marline's.
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
}

/// A client.
#[derive(Args)]
pub struct ClientArgs {
    /// The server's address and port.
    #[arg(long)]
    pub server: SocketAddr,
    /// The task.
    #[arg(long)]
    pub task: Task,
    /// Bytes to request: for a bulk download, or for each request.
    #[arg(long, default_value_t = 1 << 30)]
    pub bytes: u64,
    /// Number of concurrent requests.
    #[arg(long, default_value_t = 1)]
    pub concurrency: usize,
    /// Duration of requests or handshakes.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Connections to hold idle.
    #[arg(long, default_value_t = 2000)]
    pub connections: usize,
    /// Downloads of the task `fetch`.
    #[arg(long, default_value_t = 1)]
    pub count: u64,
    /// Keep the stack's own windows and limits.
    #[arg(long)]
    pub defaults: bool,
}

/// A client's task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Task {
    /// One download on one stream.
    Bulk,
    /// Small downloads, each on a stream of its own, on one connection.
    Requests,
    /// Successive connections, each closed when its handshake is complete.
    Handshakes,
    /// Opens connections and holds them until standard input ends.
    Idle,
    /// Successive downloads, each by a new client over a new connection, whose handshake counts.
    Fetch,
}

/// Parses the command line, or explains it and exits.
#[must_use]
pub fn parse() -> Command {
    Cli::parse().command
}
