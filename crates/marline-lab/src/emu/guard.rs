//! Who lives in our namespaces ends with us.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Waits until its input ends, which it does when this process ends, however that comes about; then
/// kills whoever is in one of the namespaces it was given, until nobody is.
///
/// A death signal set for a child would not reach the children of that child.
const SCRIPT: &str = r#"read -r _
round=0
while [ "$round" -lt 100 ]; do
    found=$(find /proc/[0-9]*/ns/net -maxdepth 0 "$@" 2>/dev/null | cut -d/ -f3)
    [ -n "$found" ] || exit 0
    kill -9 $found 2>/dev/null
    round=$((round + 1))
    sleep 0.05
done"#;

/// How long the killed may take to be gone.
const ROUNDS: u32 = 100;
const ROUND: Duration = Duration::from_millis(10);

/// A small process that outlives this one by a moment, and this process's own broom.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    inodes: Vec<u64>,
}

impl Guard {
    /// Guards the namespaces with these numbers.
    pub(super) fn start(inodes: Vec<u64>) -> io::Result<Self> {
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
            // What ends the group of this process must not end the guard.
            .process_group(0)
            .spawn()?;
        Ok(Self { process, inodes })
    }

    /// Kills whoever is left in the namespaces.
    pub(super) fn sweep(&self) {
        for _ in 0..ROUNDS {
            let left = inhabitants(&self.inodes);
            if left.is_empty() {
                return;
            }
            for process in left {
                // It may have ended by itself.
                let _ = kill(process, Signal::SIGKILL);
            }
            std::thread::sleep(ROUND);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.sweep();
        // It watches over nobody now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The processes in the namespaces with these numbers.
fn inhabitants(inodes: &[u64]) -> Vec<Pid> {
    let links: Vec<_> = inodes
        .iter()
        .map(|inode| format!("net:[{inode}]"))
        .collect();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let lives_here = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let link = fs::read_link(entry.path().join("ns/net")).ok()?;
        let ours = links.iter().any(|ours| link.as_os_str() == ours.as_str());
        ours.then(|| Pid::from_raw(pid))
    };
    processes.flatten().filter_map(lives_here).collect()
}
