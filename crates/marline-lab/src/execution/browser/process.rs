//! The process of a browser, and its profile.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::{Child, ChildStdin, ChildStdout};

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

/// The file in the profile that gets what the browser prints.
const PRINTED: &str = "printed";
/// Bytes of it that an error may repeat.
const MAX_PRINTED: u64 = 4096;

/// Looks at processes that are killed until they are gone, and how often.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
const LOOKS: u32 = 500;

/// A browser with a profile of its own. When it is dropped, its processes are killed, and the profile is removed.
pub(super) struct Process {
    child: Child,
    group: Option<Pid>,
    profile: TempDir,
}

/// The pipes to a browser.
pub(super) struct Pipes {
    pub(super) commands: ChildStdin,
    pub(super) messages: ChildStdout,
}

impl Process {
    /// Starts the browser on the host of `kernel` with `switches`.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub(super) fn start(
        kernel: &dyn Kernel,
        switches: &[String],
    ) -> Result<(Self, Pipes), RunError> {
        let cannot = |error: io::Error| failed(format_args!("cannot start Chromium: {error}"));
        let program = program()?;
        let profile = tempfile::Builder::new()
            .prefix("marline-chromium-")
            .tempdir()
            .map_err(cannot)?;
        let mut command = Command::new("sh");
        command.args(["-c", RENUMBER]).arg(program);
        command.args(SWITCHES).args(switches);
        let mut directory = std::ffi::OsString::from("--user-data-dir=");
        directory.push(profile.path());
        command.arg(directory).arg("about:blank");
        // What it writes elsewhere goes with the profile.
        for variable in ["HOME", "TMPDIR"] {
            command.env(variable, profile.path());
        }
        command.env_remove("XDG_CONFIG_HOME");
        command.env_remove("XDG_CACHE_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(profile.path().join(PRINTED)).map_err(cannot)?);
        let child = kernel.spawn(command).map_err(cannot)?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        let mut process = Self {
            child,
            group: group.map(Pid::from_raw),
            profile,
        };
        let pipes = process.child.stdin.take().zip(process.child.stdout.take());
        let (commands, messages) = pipes.ok_or_else(|| failed("Chromium has no pipes"))?;
        Ok((process, Pipes { commands, messages }))
    }

    /// The last line that it has printed.
    pub(super) fn last_line(&self) -> Option<String> {
        let mut file = File::open(self.profile.path().join(PRINTED)).ok()?;
        let len = file.seek(SeekFrom::End(0)).ok()?;
        file.seek(SeekFrom::Start(len.saturating_sub(MAX_PRINTED)))
            .ok()?;
        let mut text = Vec::new();
        file.take(MAX_PRINTED).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().rfind(|line| !line.trim().is_empty())?;
        Some(line.to_owned())
    }

    /// Whether a process of its group is left.
    fn is_left(&mut self) -> bool {
        // The first one stays until it is waited for.
        let waited = self.child.try_wait();
        let others = self
            .group
            .is_some_and(|group| killpg(group, None) != Err(Errno::ESRCH));
        matches!(waited, Ok(None)) || others
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        for _ in 0..LOOKS {
            if !self.is_left() {
                break;
            }
            if let Some(group) = self.group {
                // It may have ended already.
                let _ = killpg(group, Signal::SIGKILL);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// The browser's program.
fn program() -> Result<PathBuf, RunError> {
    let program = std::env::var_os(VARIABLE).map_or_else(|| PROGRAM.into(), PathBuf::from);
    match Path::new(&program).is_file() {
        true => Ok(program),
        false => Err(RunError::Unsupported(format!(
            "there is no {}, which is to load the page: install the package chromium, or name the program in {VARIABLE}",
            program.display()
        ))),
    }
}
