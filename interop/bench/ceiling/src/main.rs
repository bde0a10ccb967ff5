//! The upper bound: UDP with segmentation offloads and AES-128-GCM with header protection only. No streams, no copies,
//! and only periodic reports instead of acknowledgments. Packets have the format of QUIC (RFC 9000, section 17.3.1).

mod client;
mod packet;
mod server;

use bench_kit::{Command, Task, cli};

fn main() -> anyhow::Result<()> {
    match cli::parse() {
        Command::Server(args) => server::run(&args),
        Command::Client(args) if args.task == Task::Bulk => client::run(&args),
        Command::Client(_) => anyhow::bail!("only a bulk download has a ceiling"),
    }
}
