//! `marline tunnel`.

mod down;
mod peer;
mod run;
mod serve;
mod token;
mod udp;
mod up;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::{in_runtime, on_this_thread};

/// The port of tunnels, that of `marline serve`.
const PORT: u16 = 4433;

/// The network device of a client.
const CLIENT_DEVICE: &str = "marline0";

/// Use several networks as one for all programs: packets go through a server of yours
///
/// They go over QUIC (CONNECT-IP, RFC 9484), on all networks that lead to the server; connections stay open while networks come and
/// go. `up`, `down` and `serve` need root or CAP_NET_ADMIN, `run` needs root.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline tunnel token anna --tokens tokens > anna.token\n  \
    marline tunnel serve --tokens tokens --nat\n  \
    marline tunnel up server.example.org --token-file anna.token --path wlan0 --path wwan0")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Up(Box<up::Arguments>),
    Down(down::Arguments),
    Run(run::Arguments),
    Serve(Box<serve::Arguments>),
    Token(token::Arguments),
    Udp(Box<udp::Arguments>),
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.action {
        Action::Up(arguments) => on_this_thread(up::run(*arguments)),
        Action::Down(arguments) => in_runtime(down::run(arguments)),
        Action::Run(arguments) => run::run(&arguments),
        Action::Serve(arguments) => on_this_thread(serve::run(*arguments)),
        Action::Token(arguments) => token::run(&arguments),
        Action::Udp(arguments) => on_this_thread(udp::run(*arguments)),
    }
}
