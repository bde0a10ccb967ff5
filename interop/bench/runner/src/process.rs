//! Programs under measurement, each on a core of its own.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;

/// Where and how a program runs.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) core: usize,
    pub(crate) realtime: bool,
}

/// A running program. It ends when dropped.
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Process {
    pub(crate) fn start<S: AsRef<OsStr>>(
        program: &Path,
        arguments: &[S],
        place: Place,
    ) -> anyhow::Result<Self> {
        let mut command = if place.realtime {
            let mut command = Command::new("chrt");
            command.args(["--fifo", "10"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = pinned(place.core, || command.spawn().context("start"))?;
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: lines(child.stdout.take().context("no output")?),
            stderr: lines(child.stderr.take().context("no error output")?),
            child,
        })
    }

    /// Waits for a line on standard error that starts with `start`.
    pub(crate) fn wait_for(&self, start: &str, limit: Duration) -> anyhow::Result<()> {
        let mut last = String::new();
        loop {
            match self.stderr.recv_timeout(limit) {
                Ok(line) if line.starts_with(start) => return Ok(()),
                Ok(line) => last = line,
                Err(_) => bail!("no line `{start}` ({last})"),
            }
        }
    }

    /// Reads a line of JSON from standard output.
    pub(crate) fn read<T: DeserializeOwned>(&self, limit: Duration) -> anyhow::Result<T> {
        match self.stdout.recv_timeout(limit) {
            Ok(line) => serde_json::from_str(&line).context(line),
            Err(RecvTimeoutError::Timeout) => bail!("no answer within {limit:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                let wait = Duration::from_millis(100);
                let why = self.stderr.recv_timeout(wait).unwrap_or_default();
                bail!("ended without an answer: {why}")
            }
        }
    }

    /// Writes an empty line and reads a line of JSON.
    pub(crate) fn ask<T: DeserializeOwned>(&mut self, limit: Duration) -> anyhow::Result<T> {
        let stdin = self.stdin.as_mut().context("closed")?;
        stdin.write_all(b"\n").context("it has ended")?;
        self.read(limit)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `start` on `core`: its child processes inherit the affinity.
fn pinned<T>(core: usize, start: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let own = Pid::from_raw(0);
    let before = sched_getaffinity(own)?;
    let mut only = CpuSet::new();
    only.set(core).with_context(|| format!("core {core}"))?;
    sched_setaffinity(own, &only).with_context(|| format!("core {core}"))?;
    let started = start();
    sched_setaffinity(own, &before)?;
    started
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
