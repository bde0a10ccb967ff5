//! Background TCP flows of the kernel, by iperf3.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddrV4};
use std::process::{Command, Stdio};
use std::time::Duration;

use marline_sim::fabric::Fabric;
use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::program;
use super::stress::Stressed;
use super::tcp_tap::{self, HostSocket, WatchedFlow};
use super::{EmuError, Emulation, IpPacket, Namespace};
use crate::execution;
use crate::scenario::{Direction, Job, TcpController, TcpRunner, Traffic};
use crate::workload::background::TcpCount;

const IPERF3: &str = "iperf3";
/// The port of the first flow's server, which is iperf3's default.
const FIRST_SERVER_PORT: u16 = 5_201;
/// The port of the first flow's client for its data connection; below the kernel's range of ephemeral ports.
const FIRST_CLIENT_PORT: u16 = 20_000;
/// The longest duration that iperf3 accepts, in seconds.
const MAX_SECONDS: &str = "86400";
/// The time limit for servers to open their listening sockets.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of these checks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The state of listening sockets in /proc.
const LISTEN: &str = "0A";

/// The flows of a job that iperf3 runs.
pub(super) struct Iperf {
    flows: Vec<Flow>,
}

/// A client and a server of iperf3.
struct Flow {
    /// The client's host, and the local address of its data connection.
    client: HostSocket,
    /// The server's host, and the address on which it listens.
    server: HostSocket,
    cc: TcpController,
    direction: Direction,
    /// Bits per second that it sends at most.
    rate: Option<u64>,
    /// When it starts, from the start of the run.
    begins: Duration,
    count: TcpCount,
    /// The processors of both ends, if they are stressed.
    processors: Processors,
}

/// The processors to which the programs of a flow are confined.
#[derive(Clone, Copy)]
struct Processors {
    client: Option<usize>,
    server: Option<usize>,
}

impl Iperf {
    /// The flows that `job` has iperf3 run, on hosts of which some are `stressed`. From now on, `fabric` counts them.
    ///
    /// # Errors
    /// A host has no address, or iperf3 is not installed and is needed.
    pub(super) fn plan(
        job: &Job,
        fabric: &mut Fabric<IpPacket>,
        stressed: &[Stressed],
    ) -> Result<Self, EmuError> {
        let processor = |host: &str| {
            let mut stressed = stressed.iter();
            stressed
                .find(|one| one.host() == host)
                .map(Stressed::processor)
        };
        let mut flows = Vec::new();
        let backgrounds = job.settings.background.iter().zip(0..);
        for (background, number) in backgrounds {
            let Traffic::Tcp(tcp) = &background.traffic else {
                continue;
            };
            if tcp.run_by != TcpRunner::Iperf3 {
                continue;
            }
            let begins = execution::begins(job, number, background, tcp.spread);
            for begins in begins.take(tcp.count) {
                let index = u16::try_from(flows.len()).unwrap_or(u16::MAX);
                let port = |first: u16| first.saturating_add(index);
                flows.push(Flow {
                    client: socket_at(fabric, &background.from, port(FIRST_CLIENT_PORT))?,
                    server: socket_at(fabric, &background.to, port(FIRST_SERVER_PORT))?,
                    cc: tcp.cc,
                    direction: tcp.direction,
                    rate: tcp.rate,
                    begins,
                    count: TcpCount::default(),
                    processors: Processors {
                        client: processor(&background.from),
                        server: processor(&background.to),
                    },
                });
            }
        }
        if !flows.is_empty() {
            check_installed()?;
        }
        tcp_tap::count(fabric, flows.iter().map(Flow::watched).collect());
        Ok(Self { flows })
    }

    /// The counters of each flow, observed on the links.
    pub(super) fn counts(&self) -> Vec<TcpCount> {
        self.flows.iter().map(|flow| flow.count.clone()).collect()
    }

    /// Starts the servers, waits until they listen, and then starts the clients' time. Call it within a tokio
    /// runtime.
    ///
    /// # Errors
    /// A program does not start, or a server does not listen in time.
    pub(super) async fn start(self, emulation: &Emulation) -> Result<Running, EmuError> {
        let mut programs = JoinSet::new();
        let (running, stop) = watch::channel(());
        for flow in &self.flows {
            let namespace = emulation.namespace(flow.server.node);
            let namespace = namespace.map_err(EmuError::system("opening a namespace"))?;
            let child = spawn(&namespace, flow.server_command(), flow.processors.server);
            let child = child.map_err(cannot_start)?;
            programs.spawn(supervise("server", child, stop.clone()));
        }
        let listen = async {
            for flow in &self.flows {
                while !listens(emulation, flow)? {
                    sleep(POLL_INTERVAL).await;
                }
            }
            Ok(())
        };
        let listen = timeout(LISTEN_TIMEOUT, listen).await;
        let too_slow = |_| Err(io::Error::from(io::ErrorKind::TimedOut));
        listen
            .unwrap_or_else(too_slow)
            .map_err(EmuError::system("waiting for servers of iperf3"))?;
        let start = Instant::now();
        for flow in self.flows {
            let namespace = emulation.namespace(flow.client.node);
            let namespace = namespace.map_err(EmuError::system("opening a namespace"))?;
            let mut stop = stop.clone();
            programs.spawn(async move {
                tokio::select! {
                    () = sleep_until(start + flow.begins) => {}
                    _ = stop.changed() => return String::new(),
                }
                match spawn(&namespace, flow.client_command(), flow.processors.client) {
                    Ok(child) => supervise("client", child, stop).await,
                    Err(error) => cannot_start(error).to_string(),
                }
            });
        }
        Ok(Running { programs, running })
    }
}

/// Running clients and servers; they are killed when this is dropped.
pub(super) struct Running {
    programs: JoinSet<String>,
    /// When it is dropped, the tasks that supervise the programs end them.
    running: watch::Sender<()>,
}

impl Running {
    /// Waits until one of the programs ends, which none should, and returns the reason.
    pub(super) async fn ended(&mut self) -> String {
        match self.programs.join_next().await {
            Some(Ok(why)) => why,
            Some(Err(error)) => error.to_string(),
            None => std::future::pending().await,
        }
    }

    /// Ends all programs, and waits until they have ended.
    pub(super) async fn end(self) {
        drop(self.running);
        self.programs.join_all().await;
    }
}

impl Flow {
    fn watched(&self) -> WatchedFlow {
        let [sender, receiver] = match self.direction {
            Direction::Up => [self.client, self.server],
            Direction::Down => [self.server, self.client],
        };
        WatchedFlow {
            sender,
            receiver,
            count: self.count.clone(),
        }
    }

    fn server_command(&self) -> Command {
        let mut command = Command::new(IPERF3);
        command.args(["--server", "--interval", "0"]);
        command.args(["--bind", &self.server.address.ip().to_string()]);
        command.args(["--port", &self.server.address.port().to_string()]);
        command
    }

    fn client_command(&self) -> Command {
        let mut command = Command::new(IPERF3);
        command.args(["--client", &self.server.address.ip().to_string()]);
        command.args(["--port", &self.server.address.port().to_string()]);
        command.args(["--bind", &self.client.address.ip().to_string()]);
        command.args(["--cport", &self.client.address.port().to_string()]);
        command.args(["--congestion", self.cc.name()]);
        command.args(["--interval", "0", "--time", MAX_SECONDS]);
        if let Some(rate) = self.rate {
            command.args(["--bitrate", &rate.to_string()]);
        }
        if self.direction == Direction::Down {
            command.arg("--reverse");
        }
        command
    }
}

/// The socket at `port` of the first address of `host`.
fn socket_at(fabric: &Fabric<IpPacket>, host: &str, port: u16) -> Result<HostSocket, EmuError> {
    let node = fabric.find(host);
    let address = node.and_then(|node| fabric.addresses(node).first());
    match (node, address) {
        (Some(node), Some(IpAddr::V4(address))) => {
            let address = SocketAddrV4::new(*address, port);
            Ok(HostSocket { node, address })
        }
        _ => Err(EmuError::system("background traffic")(io::Error::other(
            format!("{host} has no address"),
        ))),
    }
}

/// Checks that iperf3 is installed.
fn check_installed() -> Result<(), EmuError> {
    let mut version = Command::new(IPERF3);
    version.arg("--version");
    version.stdout(Stdio::null()).stderr(Stdio::null());
    version.status().map(drop).map_err(cannot_start)
}

fn cannot_start(error: io::Error) -> EmuError {
    if error.kind() == io::ErrorKind::NotFound {
        EmuError::NoProgram {
            program: IPERF3,
            purpose: "for background TCP flows",
            package: IPERF3,
        }
    } else {
        EmuError::system("starting iperf3")(error)
    }
}

/// Starts a program in a namespace, and on a processor if one is given.
fn spawn(
    namespace: &Namespace,
    mut command: Command,
    processor: Option<usize>,
) -> io::Result<Child> {
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    program::spawn(namespace, command, processor)
}

/// Waits until a program ends and returns the reason, or ends it when `stop` is closed.
async fn supervise(what: &str, mut child: Child, mut stop: watch::Receiver<()>) -> String {
    let status = tokio::select! {
        status = child.wait() => status,
        _ = stop.changed() => {
            // It may have ended already.
            let _ = child.kill().await;
            return String::new();
        }
    };
    let mut message = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // A message that cannot be read counts as empty.
        let _ = stderr.read_to_string(&mut message).await;
    }
    let last = message.lines().rfind(|line| !line.trim().is_empty());
    let why = match (last, status) {
        (Some(line), _) => line.to_owned(),
        (None, Ok(status)) => status.to_string(),
        (None, Err(error)) => error.to_string(),
    };
    format!("a {what} of a background TCP flow ended: {why}")
}

/// Whether the flow's server listens.
fn listens(emulation: &Emulation, flow: &Flow) -> io::Result<bool> {
    let ports = emulation.inside(flow.server.node, || {
        let table = fs::read_to_string("/proc/thread-self/net/tcp");
        listening(&table.unwrap_or_default())
    })?;
    Ok(ports.contains(&flow.server.address.port()))
}

/// The ports of listening sockets in a table of /proc.
fn listening(table: &str) -> BTreeSet<u16> {
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next()?;
        let state = fields.nth(1)?;
        let (_, port) = local.rsplit_once(':')?;
        (state == LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
    };
    table.lines().skip(1).filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_iperf3_error_names_the_package() {
        let error = cannot_start(io::ErrorKind::NotFound.into());
        assert!(error.is_missing_privilege(), "tests are skipped");
        let text = error.to_string();
        assert!(text.contains("install the package iperf3"), "{text}");
        assert!(!cannot_start(io::ErrorKind::PermissionDenied.into()).is_missing_privilege());
    }

    #[test]
    fn listening_ports_are_read_from_proc() {
        let table = "  sl  local_address rem_address   st tx_queue\n   \
                     0: 01004D0A:1451 00000000:0000 0A 00000000:00000000 00:00000000\n   \
                     1: 01004D0A:1452 02004D0A:4E20 01 00000000:00000000 00:00000000\n";
        assert_eq!(listening(table), BTreeSet::from([5201]));
        assert!(listening("").is_empty());
    }
}
