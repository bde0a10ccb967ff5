//! Starting a browser.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::process::{ChildStdin, ChildStdout};

use crate::execution::program::Program;
use crate::execution::{Kernel, failed};
use crate::scenario::RunError;

/// The variable that names another program.
const VARIABLE: &str = "CHROMIUM";
const PROGRAM: &str = "/usr/bin/chromium";

/// Chromium's pipes have the numbers 3 and 4. The shell renumbers them, and becomes the browser.
const RENUMBER: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

/// Switches of every load: without a window, and without requests of the browser's own.
const SWITCHES: [&str; 14] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    // A page of HTTP without TLS stays one.
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
];

/// The pipes to a browser.
pub(super) struct Pipes {
    pub(super) commands: ChildStdin,
    pub(super) messages: ChildStdout,
}

/// Starts the browser on the host of `kernel` with `switches`, and a profile in its directory.
///
/// # Errors
/// It is not installed, or does not start.
pub(super) fn start(
    kernel: &dyn Kernel,
    switches: &[String],
) -> Result<(Program, Pipes), RunError> {
    let cannot = |error: io::Error| failed(format_args!("cannot start Chromium: {error}"));
    let program = program()?;
    let profile = Program::directory("chromium").map_err(cannot)?;
    let mut command = Command::new("sh");
    command.args(["-c", RENUMBER]).arg(program);
    command.args(SWITCHES).args(switches);
    let mut directory = std::ffi::OsString::from("--user-data-dir=");
    directory.push(profile.path());
    command.arg(directory).arg("about:blank");
    // Other files that it writes are removed with the profile.
    for variable in ["HOME", "TMPDIR"] {
        command.env(variable, profile.path());
    }
    command.env_remove("XDG_CONFIG_HOME");
    command.env_remove("XDG_CACHE_HOME");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Program::start(kernel, command, profile).map_err(cannot)?;
    let pipes = process.take_pipes();
    let (commands, messages) = pipes.ok_or_else(|| failed("Chromium has no pipes"))?;
    Ok((process, Pipes { commands, messages }))
}

/// The browser's program.
fn program() -> Result<PathBuf, RunError> {
    let program = std::env::var_os(VARIABLE).map_or_else(|| PROGRAM.into(), PathBuf::from);
    match Path::new(&program).is_file() {
        true => Ok(program),
        false => Err(RunError::Unsupported(format!(
            "there is no {}, which loads the page: install the package chromium, or name the program in {VARIABLE}",
            program.display()
        ))),
    }
}
