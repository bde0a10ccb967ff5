//! The command line of peers, translated to `marline serve` and `marline get`.
//!
//! The first argument is the program `marline`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{self, ExitCode};

use anyhow::Context as _;
use peer_kit::{Command, Outcome};

fn main() -> ExitCode {
    peer_kit::outcome::exit(run())
}

fn run() -> Outcome {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() < 2 {
        return Err(anyhow::anyhow!("no program is named").into());
    }
    let program = arguments.remove(1);
    let mut command = process::Command::new(&program);
    match peer_kit::cli::parse_from(arguments) {
        Command::Server(args) => {
            command.arg("serve").arg(&args.www);
            command.arg("--listen").arg(args.listen.to_string());
            command.arg("--cert").arg(&args.cert);
            command.arg("--key").arg(&args.key);
        }
        Command::Client(args) => {
            let server = args.server;
            let paths = args.all_paths()?;
            command.args(["get", "--insecure", "--json"]);
            match args.case.as_str() {
                "pipes-rr" => drop(command.args(["--pipes", "rr(pipes=4)"])),
                "pipes-cba" => drop(command.args(["--pipes", "cba", "--max-pipes", "3"])),
                _ => {}
            }
            command.args(paths.iter().map(|path| format!("https://{server}{path}")));
            // The slash makes it a directory, however many files there are.
            command.arg("-o").arg(args.out.join(""));
        }
    }
    let error = command.exec();
    Err(error).with_context(|| program.display().to_string())?
}
