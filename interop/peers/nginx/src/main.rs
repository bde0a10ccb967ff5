//! nginx as an interop peer: writes its configuration, starts it, and passes signals on.
//!
//! The first argument is the program `nginx`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use anyhow::Context as _;
use peer_kit::{Failure, Outcome, ServerArgs};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

/// The message that nginx logs when its sockets are bound.
const READY: &str = "start worker processes";

fn main() -> ExitCode {
    peer_kit::outcome::exit(run())
}

fn run() -> Outcome {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() < 2 {
        return Err(anyhow::anyhow!("no program is named").into());
    }
    let program = arguments.remove(1);
    match peer_kit::cli::parse_from(arguments) {
        peer_kit::Command::Client(_) => Err(Failure::Unsupported("nginx is not a client")),
        peer_kit::Command::Server(args) => {
            supported(&args.case)?;
            Ok(serve(&program, &args)?)
        }
    }
}

fn supported(case: &str) -> Outcome {
    match case {
        "zerortt" => Err(Failure::Unsupported(
            "nginx with OpenSSL 3.0 has no 0-RTT for QUIC",
        )),
        "ecn" => Err(Failure::Unsupported(
            "nginx neither sets nor counts ECN marks",
        )),
        _ => Ok(()),
    }
}

fn serve(program: &OsStr, args: &ServerArgs) -> anyhow::Result<()> {
    let directory = std::env::temp_dir().join(format!("peer-nginx-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let file = directory.join("nginx.conf");
    fs::write(&file, configuration(args, &directory))?;
    let served = supervise(Command::new(program).arg("-c").arg(&file));
    fs::remove_dir_all(&directory)?;
    served
}

/// Runs nginx until it ends, or this program is terminated.
fn supervise(command: &mut Command) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGTERM])?;
    let mut nginx = command.stderr(Stdio::piped()).spawn()?;
    let pid = Pid::from_child(&nginx);
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    });
    let log = nginx.stderr.take().context("no log")?;
    for line in BufReader::new(log).lines() {
        let line = line?;
        eprintln!("{line}");
        if line.contains(READY) {
            eprintln!("listening");
        }
    }
    let status = nginx.wait()?;
    anyhow::ensure!(status.success(), "nginx: {status}");
    Ok(())
}

fn configuration(args: &ServerArgs, directory: &Path) -> String {
    let ServerArgs {
        listen,
        www,
        cert,
        key,
        case,
    } = args;
    let [www, cert, key] = [www, cert, key].map(|path| absolute(path));
    let retry = if case == "retry" { "on" } else { "off" };
    let directory = directory.display();
    // As root, so that it can read files that only their owner can. One connection carries all requests of a case, more
    // than nginx's default allows; and each change of the client's address takes one of its connection IDs, of which nginx
    // keeps two by default.
    format!(
        "daemon off;
user root;
worker_processes 1;
pid {directory}/pid;
error_log stderr notice;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen {listen} quic;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
        quic_retry {retry};
        keepalive_requests 1000000;
        quic_active_connection_id_limit 8;
        root {www};
    }}
}}
"
    )
}

/// nginx takes other paths as relative to its prefix.
fn absolute(path: &Path) -> String {
    let found = std::path::absolute(path);
    found
        .unwrap_or_else(|_| path.to_owned())
        .display()
        .to_string()
}
