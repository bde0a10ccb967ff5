//! `marline tunnel run`.

use std::ffi::{CString, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use marline_tunnel::restore::{Found, RestoreError};
use nix::unistd::{User, initgroups, setgid, setuid};

use super::CLIENT_DEVICE;
use crate::failure::Failure;
use crate::server::device_name;

/// The variable with the user who called sudo.
const SUDO_USER: &str = "SUDO_USER";

/// Start a command whose packets go through the tunnel
///
/// The tunnel is one with `--split programs`. It takes the packets of what the command starts as well, unless another program starts
/// it: snaps, flatpaks, containers and services of D-Bus have control groups of their own. Queries of DNS to a resolver on a local
/// network, and those of systemd-resolved, are sent outside of the tunnel.
///
/// Needs root; the command is run as the user who called sudo.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    sudo marline tunnel run -- curl https://example.org/\n  \
    sudo marline tunnel run --user backup -- restic backup /srv")]
pub(crate) struct Arguments {
    /// Become this user [default: the one who called sudo]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The name of the network device of the tunnel [default: marline0]
    #[arg(long, value_name = "NAME", value_parser = device_name)]
    device: Option<String>,

    /// The command
    #[arg(value_name = "COMMAND")]
    program: OsString,

    /// Its arguments
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let failed = |error: RestoreError| Failure::Failed(error.to_string());
    let device = arguments.device.as_deref().unwrap_or(CLIENT_DEVICE);
    let found = Found::of(device).map_err(failed)?;
    let running = found.filter(|found| found.process().is_some());
    let running = running.ok_or_else(|| {
        Failure::Failed(format!(
            "there is no tunnel of {device}; start one with `marline tunnel up --split programs`"
        ))
    })?;
    let group = running.programs().ok_or_else(|| {
        Failure::Failed(format!(
            "the tunnel of {device} takes no programs; start it with --split programs"
        ))
    })?;
    let user = arguments
        .user
        .clone()
        .or_else(|| std::env::var(SUDO_USER).ok());
    let user = user.as_deref().map(account).transpose()?;
    let processes = group.join("cgroup.procs");
    let joined = std::fs::write(&processes, std::process::id().to_string());
    joined.map_err(|error| {
        let path = processes.display();
        Failure::Failed(format!("cannot write {path}: {error}; run as root"))
    })?;
    if !running.has_marks() {
        return Err(Failure::Failed(format!(
            "the tunnel of {device} is not up yet; try again"
        )));
    }
    let mut command = Command::new(&arguments.program);
    command.args(&arguments.arguments);
    if let Some(user) = user {
        become_user(&user)
            .map_err(|error| Failure::Failed(format!("cannot become {}: {error}", user.name)))?;
        command.env("USER", &user.name).env("LOGNAME", &user.name);
        command.env("HOME", &user.dir);
    }
    let error = command.exec();
    let program = arguments.program.display();
    Err(Failure::Failed(format!("cannot run {program}: {error}")))
}

/// The account with this name.
fn account(name: &str) -> Result<User, Failure> {
    let found = User::from_name(name);
    let found = found.map_err(|error| format!("cannot look up the user {name}: {error}"));
    let found = found.map_err(Failure::Failed)?;
    found.ok_or_else(|| Failure::Usage(format!("there is no user {name} on this machine")))
}

/// Gives up the rights of root. Groups first: whoever is no longer root cannot change them.
fn become_user(user: &User) -> Result<(), String> {
    let text = |error: nix::Error| error.to_string();
    let name = CString::new(user.name.as_str()).map_err(|error| error.to_string())?;
    initgroups(&name, user.gid).map_err(text)?;
    setgid(user.gid).map_err(text)?;
    setuid(user.uid).map_err(text)
}
