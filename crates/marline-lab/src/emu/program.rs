//! Programs inside hosts: started, waited for, ended.

use std::fs;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use marline_sim::fabric::Node;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::Emulation;

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether it does.
const GLANCE: Duration = Duration::from_millis(20);

/// A program inside a host.
#[derive(Debug)]
pub struct Program {
    child: Child,
}

impl Program {
    /// Starts `command` inside `host`. Call it within a tokio runtime.
    ///
    /// # Errors
    /// There is no such host, or the program does not start.
    pub fn start(emulation: &Emulation, host: Node, command: Command) -> io::Result<Self> {
        let tokio = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let mut command = tokio::process::Command::from(command);
        let child = emulation.inside(host, || {
            let _context = tokio.enter();
            command.kill_on_drop(true).spawn()
        })??;
        Ok(Self { child })
    }

    /// Waits until it ends. If this process is asked to end meanwhile (SIGINT, SIGTERM, SIGHUP), ends
    /// the program first: passes the wish on, and kills it when it does not comply within 2 s. A
    /// terminal sends SIGINT to both, so that one is not passed on at once.
    ///
    /// # Errors
    /// The system cannot wait.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        tokio::select! {
            status = self.child.wait() => return status,
            _ = interrupt.recv() => {
                if let Ok(status) = timeout(GRACE, self.child.wait()).await {
                    return status;
                }
            }
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        self.end().await
    }

    /// Asks it to end, and kills it when it does not within 2 s.
    ///
    /// # Errors
    /// The system cannot wait.
    pub async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            // It may have ended just now.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        if let Ok(status) = timeout(GRACE, self.child.wait()).await {
            return status;
        }
        self.child.start_kill()?;
        self.child.wait().await
    }

    /// Waits until any program inside `host` listens, at most 10 s; whether one does. Call it for the
    /// only program there that may.
    ///
    /// # Errors
    /// The program has ended instead.
    pub async fn listens(&mut self, emulation: &Emulation, host: Node) -> io::Result<bool> {
        let look = async {
            loop {
                if let Some(status) = self.child.try_wait()? {
                    return Err(io::Error::other(format!("ended at once ({status})")));
                }
                if emulation.inside(host, somebody_listens)? {
                    return Ok(());
                }
                sleep(GLANCE).await;
            }
        };
        match timeout(PATIENCE, look).await {
            Ok(found) => found.map(|()| true),
            Err(_) => Ok(false),
        }
    }
}

/// Whether a socket of this thread's namespace listens, or has a UDP port and waits for anybody.
fn somebody_listens() -> bool {
    /// As /proc writes them: `TCP_LISTEN`, and `TCP_CLOSE` for UDP sockets that are not connected.
    const STATES: [(&str, &str); 4] =
        [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    STATES.into_iter().any(|(protocol, state)| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{protocol}"));
        let table = table.unwrap_or_default();
        let mut sockets = table.lines().skip(1);
        sockets.any(|socket| socket.split_whitespace().nth(3) == Some(state))
    })
}
