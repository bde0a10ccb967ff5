//! What UDP with segmentation offloads and AES-128-GCM with header protection would allow, and nothing else: no streams,
//! no acknowledgements but a count now and then, no copies. Packets look like QUIC's (RFC 9000, section 17.3.1).

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
