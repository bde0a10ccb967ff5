//! Programs that are part of a run: browsers and third-party servers.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::Kernel;

/// The file in its directory for a program's standard error.
const PRINTED: &str = "printed";
/// Bytes of it that an error may repeat.
const MAX_PRINTED: u64 = 4096;

/// The interval of checks whether killed processes have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const POLLS: u32 = 500;

/// A program with a directory of its own. When it is dropped, its processes are killed, and the directory is removed.
pub(super) struct Program {
    child: Child,
    group: Option<Pid>,
    directory: TempDir,
}

impl Program {
    /// An empty directory for a program of this name.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn directory(name: &str) -> io::Result<TempDir> {
        tempfile::Builder::new()
            .prefix(&format!("marline-{name}-{}-", std::process::id()))
            .tempdir()
    }

    /// Starts `command` on the host of `kernel`. Its standard error goes to a file in its
    /// directory.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start(
        kernel: &dyn Kernel,
        mut command: Command,
        directory: TempDir,
    ) -> io::Result<Self> {
        command.stderr(File::create(directory.path().join(PRINTED))?);
        let child = kernel.spawn(command)?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self {
            child,
            group: group.map(Pid::from_raw),
            directory,
        })
    }

    /// Its standard input and output, if they are pipes and not taken yet.
    pub(super) fn take_pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.child.stdin.take().zip(self.child.stdout.take())
    }

    /// Its exit status, if it has ended.
    pub(super) fn has_ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The last line of its standard error.
    pub(super) fn last_line(&self) -> Option<String> {
        last_line(&self.directory.path().join(PRINTED))
    }

    /// Whether a process of its group is left.
    fn is_left(&mut self) -> bool {
        // The first one stays until it is waited for.
        let waited = self.child.try_wait();
        let others = self.group.is_some_and(|group| {
            reap(group);
            killpg(group, None) != Err(Errno::ESRCH)
        });
        matches!(waited, Ok(None)) || others
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        for _ in 0..POLLS {
            if !self.is_left() {
                break;
            }
            if let Some(group) = self.group {
                // It may have ended already.
                let _ = killpg(group, Signal::SIGKILL);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Waits for orphans of a group that have ended, if this is the first process of a machine.
fn reap(group: Pid) {
    let of_group = Pid::from_raw(-group.as_raw());
    while let Ok(status) = waitpid(of_group, Some(WaitPidFlag::WNOHANG))
        && status != WaitStatus::StillAlive
    {}
}

fn last_line(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let len = file.seek(SeekFrom::End(0)).ok()?;
    file.seek(SeekFrom::Start(len.saturating_sub(MAX_PRINTED)))
        .ok()?;
    let mut text = Vec::new();
    file.take(MAX_PRINTED).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rfind(|line| !line.trim().is_empty())?;
    Some(line.to_owned())
}
