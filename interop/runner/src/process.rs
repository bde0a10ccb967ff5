//! Child processes with a log and a time limit.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Polling interval of a child.
const GLANCE: Duration = Duration::from_millis(20);
/// Time limit for a child to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// A child that is stopped when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` by `spawn`; its standard error goes to `log`, its standard output to `log` with `.out`.
    pub(crate) fn start(
        mut command: Command,
        log: &Path,
        spawn: impl FnOnce(&mut Command) -> io::Result<Child>,
    ) -> io::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(File::create(log.with_extension("out"))?)
            .stderr(File::create(log)?);
        Ok(Self {
            child: spawn(&mut command)?,
            log: log.to_owned(),
        })
    }

    /// Waits until the log has a line that starts with `word`; `Ok(Some)` if the child ended first.
    pub(crate) fn wait_for(
        &mut self,
        word: &str,
        limit: Duration,
    ) -> Result<Option<ExitStatus>, String> {
        let deadline = Instant::now() + limit;
        loop {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            if log.lines().any(|line| line.starts_with(word)) {
                return Ok(None);
            }
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Err(format!("not ready after {} s", limit.as_secs()));
            }
            thread::sleep(GLANCE);
        }
    }

    /// Waits for the end; `None` if it does not come within `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            thread::sleep(GLANCE);
        }
        Ok(None)
    }

    /// The last line of the log that is not empty.
    pub(crate) fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let mut lines = log.lines().rev().map(str::trim);
        lines.find(|line| !line.is_empty()).unwrap_or("").to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The child may have ended at each step, which is not an error.
        if let Ok(None) = self.child.try_wait() {
            if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
            if !matches!(self.wait(GRACE), Ok(Some(_))) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}
