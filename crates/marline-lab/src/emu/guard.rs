//! Kills all processes in the emulator's namespaces when this process ends.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::in_virtual_time;

/// Waits until its standard input is closed, which happens when this process ends for any reason; then kills
/// the processes in the given namespaces until none is left.
///
/// A parent-death signal would reach only the children of this process, not theirs.
const SCRIPT: &str = r#"read -r _
round=0
while [ "$round" -lt 100 ]; do
    found=$(find /proc/[0-9]*/ns/net -maxdepth 0 "$@" 2>/dev/null | cut -d/ -f3)
    [ -n "$found" ] || exit 0
    kill -9 $found 2>/dev/null
    round=$((round + 1))
    sleep 0.05
done"#;

/// Attempts to kill the processes in the namespaces, and the time between them.
const KILL_ATTEMPTS: u32 = 100;
const KILL_INTERVAL: Duration = Duration::from_millis(10);

/// A helper process that outlives this one and cleans up; this process uses it to clean up as well.
#[derive(Debug)]
pub(super) struct Guard {
    /// Nothing on a kernel in virtual time, which ends with all its processes.
    process: Option<Child>,
    inodes: Vec<u64>,
}

impl Guard {
    /// Guards the namespaces with these inode numbers.
    pub(super) fn start(inodes: Vec<u64>) -> io::Result<Self> {
        if in_virtual_time() {
            return Ok(Self {
                process: None,
                inodes,
            });
        }
        let mut conditions = Vec::new();
        for inode in &inodes {
            conditions.push("-o".to_owned());
            conditions.push("-lname".to_owned());
            conditions.push(format!("net:\\[{inode}\\]"));
        }
        let process = Command::new("sh")
            .args(["-c", SCRIPT, "guard"])
            .args(conditions.iter().skip(1))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A signal to the process group of this process must not end the guard.
            .process_group(0)
            .spawn()?;
        Ok(Self {
            process: Some(process),
            inodes,
        })
    }

    /// Kills all processes that are left in the namespaces.
    pub(super) fn sweep(&self) {
        for _ in 0..KILL_ATTEMPTS {
            let left = processes_in(&self.inodes);
            if left.is_empty() {
                return;
            }
            for process in left {
                // The process may have ended already.
                let _ = kill(process, Signal::SIGKILL);
            }
            std::thread::sleep(KILL_INTERVAL);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.sweep();
        // The namespaces are empty: the helper has nothing left to do.
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The processes in the namespaces with these inode numbers.
fn processes_in(inodes: &[u64]) -> Vec<Pid> {
    let links: Vec<_> = inodes
        .iter()
        .map(|inode| format!("net:[{inode}]"))
        .collect();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let in_namespace = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let link = fs::read_link(entry.path().join("ns/net")).ok()?;
        let ours = links.iter().any(|ours| link.as_os_str() == ours.as_str());
        ours.then(|| Pid::from_raw(pid))
    };
    processes.flatten().filter_map(in_namespace).collect()
}
