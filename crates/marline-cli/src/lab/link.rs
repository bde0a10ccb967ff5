//! `marline lab link`.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use marline_lab::emu::{self, EmuError, Line, Program, Recording, Relay, Report};
use marline_link::Seed;
use marline_link::spec::LinkSpec;

use super::virtual_time::{self, Date};
use crate::failure::{Failure, print_message};

/// The exit status of shells for a program that is not found.
const NOT_FOUND: u8 = 127;
/// The same for one that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Run a program behind an emulated link
///
/// The program runs at the near end of the link, a network namespace with the address 10.77.0.2 and no other
/// interface. At the far end, 10.77.0.1 (in the environment as MARLINE_SERVER), are the server that --server starts
/// and the ports of --forward. When the program ends, the link ends with its exit status; a summary of the link is
/// printed on standard error.
///
/// A link is written as key=value pairs separated by commas, or as the name of a preset: a rate (7mbps), an
/// rtt or a one-way delay (50ms), loss (2%), a buffer (45kB) and more; `up.KEY` and `down.KEY` set one
/// direction, where up is from the program.
///
/// With --backend kernel both ends, and all programs that they start, run on a Linux kernel of its own in virtual time: nothing is late,
/// waiting takes no time, and equal commands give equal results. It sees the files of this machine, but not its network;
/// what it prints is printed when it has ended. `make kernel` builds the kernel.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline lab link --link 'rate=7mbps,rtt=50ms,loss=2%,buffer=45kB' \\\n      \
        --server 'marline serve --listen 10.77.0.1:4433 site' \\\n      \
        -- marline get --insecure https://10.77.0.1:4433/index.html -o page.html\n  \
    marline lab link --link lte-a --forward 8080 -- curl -s http://10.77.0.1:8080/\n  \
    marline lab link --link 'rate=20mbps,rtt=30ms' --pcap capture.pcapng -- bash\n  \
    marline lab link --backend kernel --link wan-100-good --server 'iperf3 -s -1' -- iperf3 -c 10.77.0.1 -t 60")]
pub(crate) struct Arguments {
    /// The link
    #[arg(long, value_name = "SPEC")]
    link: LinkSpec,

    /// In real time, or in virtual time
    #[arg(long, value_enum, default_value_t = Where::Emu)]
    backend: Where,

    /// Run this shell command at the far end first, and wait until it listens
    #[arg(long, value_name = "CMD")]
    server: Option<String>,

    /// Forward 10.77.0.1:PORT to 127.0.0.1:PORT of this machine, over TCP and UDP; repeatable
    #[arg(long, value_name = "PORT")]
    forward: Vec<u16>,

    /// Write delivered packets, and dropped ones with the reason, to a pcapng file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Write logs in Mahimahi's format, to FILE.up and FILE.down
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// The day on which the clock begins with --backend kernel [default: 2026-01-01]; certificates have to be valid then
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<Date>,

    /// The seed of losses and jitter: equal seeds treat equal sequences of packets equally
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Call the run invalid if more than 1 % of the packets are later than this many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1.0, value_parser = milliseconds)]
    bound: f64,

    /// Print the summary of the link as JSON; the program's own output goes to standard error
    #[arg(long)]
    json: bool,

    /// The program and its arguments; if the program is not found, the exit status is 127
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    /// In real time
    Emu,
    /// On a kernel of its own, in virtual time
    Kernel,
}

fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err("give a number of milliseconds, such as 0.5".to_owned()),
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.backend == Where::Kernel && !emu::in_virtual_time() {
        if !arguments.forward.is_empty() {
            let why = "--forward: ports of this machine are not reached in virtual time; start the server with --server";
            return Err(Failure::Usage(why.to_owned()));
        }
        return virtual_time::repeat_inside(arguments.seed, arguments.date.unwrap_or_default());
    }
    // Only a process of a single thread can enter a user namespace.
    emu::become_capable()?;
    crate::in_runtime(run_within(arguments))
}

async fn run_within(arguments: Arguments) -> Result<(), Failure> {
    let media = arguments
        .link
        .build(Seed::new(arguments.seed))
        .map_err(|error| Failure::Usage(format!("--link: {error}")))?;
    let recording = Recording {
        capture: arguments.pcap.clone(),
        log: arguments.log.clone(),
    };
    let line = Line::start(media, &recording)?;
    let status = supervise(&line, &arguments).await;
    let report = line.stop()?;
    let status = status?;
    print_report(&arguments, &report, status);
    match exit_code(status) {
        0 => Ok(()),
        code => Err(Failure::Status(code)),
    }
}

/// Runs the server, and then the program until it ends.
async fn supervise(line: &Line, arguments: &Arguments) -> Result<ExitStatus, Failure> {
    let emulation = line.emulation();
    let server = match &arguments.server {
        Some(command) => Some(start_server(line, command).await?),
        None => None,
    };
    let mut relays = Vec::new();
    for &port in &arguments.forward {
        let relay = Relay::start(emulation, line.far(), port);
        relays.push(relay.map_err(|error| {
            Failure::Failed(format!("port {port} is not free at the far end: {error}"))
        })?);
    }
    print_message(&format!(
        "the near end, where the program runs, is {}; the far end is {}",
        Line::NEAR_ADDRESS,
        Line::FAR_ADDRESS
    ));
    let name = &arguments.command[0];
    let mut command = Command::new(name);
    command.args(&arguments.command[1..]);
    command.env("MARLINE_SERVER", Line::FAR_ADDRESS.to_string());
    if arguments.json {
        command.stdout(io::stderr());
    }
    let ran = match Program::start(emulation, line.near(), command) {
        Ok(mut program) => program.wait().await,
        Err(error) => Err(error),
    };
    let status = match ran {
        Ok(status) => status,
        Err(error) => {
            let name = name.to_string_lossy();
            print_message(&format!("cannot run {name}: {error}; check its name"));
            return Err(match error.kind() {
                io::ErrorKind::NotFound => Failure::Status(NOT_FOUND),
                io::ErrorKind::PermissionDenied => Failure::Status(NOT_EXECUTABLE),
                _ => Failure::Reported,
            });
        }
    };
    if let Some(mut server) = server {
        // The server's exit status is ignored.
        let _ = server.end().await;
    }
    Ok(status)
}

async fn start_server(line: &Line, text: &str) -> Result<Program, Failure> {
    let mut command = Command::new("sh");
    command.args(["-c", text]);
    // Standard output is reserved for the program.
    command.stdin(Stdio::null()).stdout(io::stderr());
    let failed = |error| Failure::Failed(format!("the server `{text}`: {error}"));
    let (emulation, far) = (line.emulation(), line.far());
    let mut server = Program::start(emulation, far, command).map_err(failed)?;
    if !server.listens(emulation, far).await.map_err(failed)? {
        print_message("the server does not listen yet; continuing without it");
    }
    Ok(server)
}

fn print_report(arguments: &Arguments, report: &Report, status: ExitStatus) {
    let bound = Duration::from_secs_f64(arguments.bound / 1_000.0);
    let valid = report.is_valid(bound);
    if arguments.json {
        let mut document = report.to_json();
        document["link"] = arguments.link.to_string().into();
        document["seed"] = arguments.seed.into();
        document["bound_s"] = bound.as_secs_f64().into();
        document["valid"] = valid.into();
        document["exit_status"] = exit_code(status).into();
        outln!("{document:#}");
    } else {
        for line in report.to_string().lines() {
            print_message(line);
        }
    }
    if !valid {
        let advice = if report.realtime {
            "end other work on this machine, or raise --bound"
        } else {
            "run as root for real-time priority, or raise --bound"
        };
        print_message(&format!(
            "this run is invalid: more than 1 % of the packets were over {} ms late; {advice}",
            arguments.bound
        ));
    }
}

/// The exit status as in shells: that of the program, or 128 plus the number of the signal that ended it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code();
    let code = code.or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}

impl From<EmuError> for Failure {
    fn from(error: EmuError) -> Self {
        Self::Failed(error.to_string())
    }
}
