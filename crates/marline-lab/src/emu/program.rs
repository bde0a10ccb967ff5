//! Programs inside hosts: starting them, waiting for them, ending them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use marline_sim::fabric::Node;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::stress::confine;
use super::{Emulation, Namespace};

/// The time limit for a program to end after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for a program to open a listening socket.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of these checks.
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

/// Starts a program in a namespace, and on a processor if one is given, in a process group of its own: an interrupt
/// from the terminal does not reach it. It is killed when it is dropped. Call this within a tokio runtime.
pub(super) fn spawn(
    namespace: &Namespace,
    command: Command,
    processor: Option<usize>,
) -> io::Result<Child> {
    let tokio = Handle::try_current().map_err(io::Error::other)?;
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true).process_group(0);
    namespace.inside(|| {
        let _context = tokio.enter();
        processor.map(confine).transpose()?;
        command.spawn()
    })?
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

    /// Waits at most 10 s until any program inside `host` listens and opens no further sockets for 20 ms, and returns
    /// whether one does. No other program inside `host` may listen.
    ///
    /// # Errors
    /// The program ended before it listened.
    pub async fn listens(&mut self, emulation: &Emulation, host: Node) -> io::Result<bool> {
        let look = async {
            let mut listeners = Listeners::default();
            loop {
                if let Some(status) = self.child.try_wait()? {
                    return Err(io::Error::other(format!("ended at once ({status})")));
                }
                if listeners.are_complete(emulation.inside(host, listening)?) {
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

/// The sockets that listen, at the last check. A server may open one for TCP before the one for UDP.
#[derive(Debug, Default)]
struct Listeners {
    last: BTreeSet<String>,
}

impl Listeners {
    /// Whether there are sockets, the same as at the last check.
    fn are_complete(&mut self, now: BTreeSet<String>) -> bool {
        let complete = !now.is_empty() && now == self.last;
        self.last = now;
        complete
    }
}

/// The protocols and addresses of sockets of this thread's namespace that listen for TCP, or are unconnected UDP sockets.
pub(super) fn listening() -> BTreeSet<String> {
    /// The states in /proc: `TCP_LISTEN`, and `TCP_CLOSE` for UDP sockets that are not connected.
    const STATES: [(&str, &str); 4] =
        [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    let mut found = BTreeSet::new();
    for (protocol, state) in STATES {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{protocol}"));
        for socket in table.unwrap_or_default().lines().skip(1) {
            let mut fields = socket.split_whitespace().skip(1);
            if let (Some(local), Some(is)) = (fields.next(), fields.nth(1))
                && is == state
            {
                found.insert(format!("{protocol} {local}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_waited_for_until_it_opens_no_further_sockets() {
        let sockets = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let mut listeners = Listeners::default();
        assert!(!listeners.are_complete(sockets(&[])));
        assert!(!listeners.are_complete(sockets(&[])), "nothing listens");
        assert!(!listeners.are_complete(sockets(&["tcp 443"])));
        assert!(!listeners.are_complete(sockets(&["tcp 443", "udp 443"])));
        assert!(listeners.are_complete(sockets(&["tcp 443", "udp 443"])));
    }
}
