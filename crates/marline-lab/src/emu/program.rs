//! Programs inside hosts: starting them, waiting for them, ending them.

use std::fs;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use marline_sim::fabric::Node;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::Emulation;

/// How long a program may take to end after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a program may take to open a listening socket.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which that is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A program inside a host.
#[derive(Debug)]
pub struct Program {
    child: Child,
    requests: StopRequests,
}

/// Signals by which this process is asked to end. They are handled from before a program starts, so that none
/// is missed that arrives as soon as the program runs.
#[derive(Debug)]
struct StopRequests {
    interrupt: SignalStream,
    terminate: SignalStream,
    hang_up: SignalStream,
}

impl StopRequests {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }
}

impl Program {
    /// Starts `command` inside `host`. Call it within a tokio runtime.
    ///
    /// # Errors
    /// There is no such host, or the program does not start.
    pub fn start(emulation: &Emulation, host: Node, command: Command) -> io::Result<Self> {
        let tokio = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let requests = {
            let _context = tokio.enter();
            StopRequests::listen()?
        };
        let mut command = tokio::process::Command::from(command);
        let child = emulation.inside(host, || {
            let _context = tokio.enter();
            command.kill_on_drop(true).spawn()
        })??;
        Ok(Self { child, requests })
    }

    /// Waits until the program ends. If this process receives SIGINT, SIGTERM or SIGHUP meanwhile, sends
    /// SIGTERM to the program, and kills it if it has not ended within 2 s. A terminal sends SIGINT to both
    /// processes, so the program first gets 2 s to end on its own.
    ///
    /// # Errors
    /// The system call to wait failed.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let StopRequests {
            interrupt,
            terminate,
            hang_up,
        } = &mut self.requests;
        tokio::select! {
            status = self.child.wait() => return status,
            _ = interrupt.recv() => {
                if let Ok(status) = timeout(EXIT_TIMEOUT, self.child.wait()).await {
                    return status;
                }
            }
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        self.end().await
    }

    /// Sends SIGTERM to the program, and kills it if it has not ended within 2 s.
    ///
    /// # Errors
    /// The system call to wait failed.
    pub async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            // It may have ended already.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        if let Ok(status) = timeout(EXIT_TIMEOUT, self.child.wait()).await {
            return status;
        }
        self.child.start_kill()?;
        self.child.wait().await
    }

    /// Waits at most 10 s until any program inside `host` listens, and returns whether one does. No other
    /// program inside `host` may listen.
    ///
    /// # Errors
    /// The program ended before it listened.
    pub async fn listens(&mut self, emulation: &Emulation, host: Node) -> io::Result<bool> {
        let look = async {
            loop {
                if let Some(status) = self.child.try_wait()? {
                    return Err(io::Error::other(format!("ended at once ({status})")));
                }
                if emulation.inside(host, has_listener)? {
                    return Ok(());
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        match timeout(LISTEN_TIMEOUT, look).await {
            Ok(found) => found.map(|()| true),
            Err(_) => Ok(false),
        }
    }
}

/// Whether a socket of this thread's namespace listens for TCP, or is an unconnected UDP socket.
fn has_listener() -> bool {
    /// The states in /proc: `TCP_LISTEN`, and `TCP_CLOSE` for UDP sockets that are not connected.
    const STATES: [(&str, &str); 4] =
        [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    STATES.into_iter().any(|(protocol, state)| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{protocol}"));
        let table = table.unwrap_or_default();
        let mut sockets = table.lines().skip(1);
        sockets.any(|socket| socket.split_whitespace().nth(3) == Some(state))
    })
}
