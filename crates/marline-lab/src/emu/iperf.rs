//! TCP of the kernel beside the workload, by iperf3.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddrV4};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use marline_sim::fabric::{Fabric, Node};
use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::tcp_tap::{self, Watched};
use super::{EmuError, Emulation, IpPacket, Namespace};
use crate::play;
use crate::scenario::{Direction, Job, TcpController, TcpRunner, Traffic};
use crate::workload::background::TcpCount;

const IPERF3: &str = "iperf3";
/// The port of the first flow's server, which is iperf3's own.
const SERVERS: u16 = 5_201;
/// The port from which the first flow's client has its bytes sent, or receives them. The kernel gives
/// these to nobody on its own account.
const CLIENTS: u16 = 20_000;
/// Seconds, the most that iperf3 knows.
const FOR_EVER: &str = "86400";
/// How long servers may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether they do.
const GLANCE: Duration = Duration::from_millis(20);
/// Servers that listen, as /proc writes it.
const LISTEN: &str = "0A";

/// The flows of a job that iperf3 runs.
pub(super) struct Iperf {
    flows: Vec<Flow>,
}

/// A client and a server of iperf3.
struct Flow {
    /// Where the client runs, and the port it uses for bytes.
    client: (Node, SocketAddrV4),
    /// Where the server runs and listens.
    server: (Node, SocketAddrV4),
    cc: TcpController,
    direction: Direction,
    /// From the start of the run.
    begins: Duration,
    count: TcpCount,
}

impl Iperf {
    /// What `job` asks for in `fabric`, which counts it from now on.
    ///
    /// # Errors
    /// A host has no address, or iperf3 is not installed and is needed.
    pub(super) fn plan(job: &Job, fabric: &mut Fabric<IpPacket>) -> Result<Self, EmuError> {
        let mut flows = Vec::new();
        let backgrounds = job.settings.background.iter().zip(0..);
        for (background, number) in backgrounds {
            let Traffic::Tcp(tcp) = &background.traffic else {
                continue;
            };
            if tcp.run_by != TcpRunner::Iperf3 {
                continue;
            }
            let begins = play::begins(job, number, background, tcp.spread);
            for begins in begins.take(tcp.count) {
                let index = u16::try_from(flows.len()).unwrap_or(u16::MAX);
                let port = |first: u16| first.saturating_add(index);
                flows.push(Flow {
                    client: place(fabric, &background.from, port(CLIENTS))?,
                    server: place(fabric, &background.to, port(SERVERS))?,
                    cc: tcp.cc,
                    direction: tcp.direction,
                    begins,
                    count: TcpCount::default(),
                });
            }
        }
        if !flows.is_empty() {
            look_for_it()?;
        }
        tcp_tap::count(fabric, flows.iter().map(Flow::watched).collect());
        Ok(Self { flows })
    }

    /// What links see of each flow.
    pub(super) fn counts(&self) -> Vec<TcpCount> {
        self.flows.iter().map(|flow| flow.count.clone()).collect()
    }

    /// Starts the servers, and as soon as they listen the time that the clients count from. Call it
    /// within a tokio runtime.
    ///
    /// # Errors
    /// A program does not start, or servers do not listen.
    pub(super) async fn start(self, emulation: &Emulation) -> Result<Running, EmuError> {
        let mut programs = JoinSet::new();
        let (running, stop) = watch::channel(());
        for flow in &self.flows {
            let namespace = emulation.namespace(flow.server.0);
            let namespace = namespace.map_err(EmuError::system("a namespace"))?;
            let child = spawn(&namespace, flow.server_command());
            let child = child.map_err(cannot_start)?;
            programs.spawn(attend("server", child, stop.clone()));
        }
        let listen = async {
            for flow in &self.flows {
                while !listens(emulation, flow)? {
                    sleep(GLANCE).await;
                }
            }
            Ok(())
        };
        let listen = timeout(PATIENCE, listen).await;
        let too_slow = |_| Err(io::Error::from(io::ErrorKind::TimedOut));
        listen
            .unwrap_or_else(too_slow)
            .map_err(EmuError::system("servers of iperf3"))?;
        let start = Instant::now();
        for flow in self.flows {
            let namespace = emulation.namespace(flow.client.0);
            let namespace = namespace.map_err(EmuError::system("a namespace"))?;
            let mut stop = stop.clone();
            programs.spawn(async move {
                tokio::select! {
                    () = sleep_until(start + flow.begins) => {}
                    _ = stop.changed() => return String::new(),
                }
                match spawn(&namespace, flow.client_command()) {
                    Ok(child) => attend("client", child, stop).await,
                    Err(error) => cannot_start(error).to_string(),
                }
            });
        }
        Ok(Running { programs, running })
    }
}

/// Clients and servers at work; killed when it is dropped.
pub(super) struct Running {
    programs: JoinSet<String>,
    /// Who attends to a program ends it when this is gone.
    running: watch::Sender<()>,
}

impl Running {
    /// Waits until one of them ends, which none should; why it did.
    pub(super) async fn ended(&mut self) -> String {
        match self.programs.join_next().await {
            Some(Ok(why)) => why,
            Some(Err(error)) => error.to_string(),
            None => std::future::pending().await,
        }
    }

    /// Ends all of them, and waits until they are gone.
    pub(super) async fn end(self) {
        drop(self.running);
        self.programs.join_all().await;
    }
}

impl Flow {
    fn watched(&self) -> Watched {
        let [sender, receiver] = match self.direction {
            Direction::Up => [self.client, self.server],
            Direction::Down => [self.server, self.client],
        };
        Watched {
            sender,
            receiver,
            count: self.count.clone(),
        }
    }

    fn server_command(&self) -> Command {
        let mut command = Command::new(IPERF3);
        command.args(["--server", "--interval", "0"]);
        command.args(["--bind", &self.server.1.ip().to_string()]);
        command.args(["--port", &self.server.1.port().to_string()]);
        command
    }

    fn client_command(&self) -> Command {
        let mut command = Command::new(IPERF3);
        command.args(["--client", &self.server.1.ip().to_string()]);
        command.args(["--port", &self.server.1.port().to_string()]);
        command.args(["--bind", &self.client.1.ip().to_string()]);
        command.args(["--cport", &self.client.1.port().to_string()]);
        command.args(["--congestion", self.cc.name()]);
        command.args(["--interval", "0", "--time", FOR_EVER]);
        if self.direction == Direction::Down {
            command.arg("--reverse");
        }
        command
    }
}

fn place(
    fabric: &Fabric<IpPacket>,
    host: &str,
    port: u16,
) -> Result<(Node, SocketAddrV4), EmuError> {
    let node = fabric.find(host);
    let address = node.and_then(|node| fabric.addresses(node).first());
    match (node, address) {
        (Some(node), Some(IpAddr::V4(address))) => Ok((node, SocketAddrV4::new(*address, port))),
        _ => Err(EmuError::system("a host of background traffic")(
            io::Error::other(format!("{host} has no address")),
        )),
    }
}

/// An error unless iperf3 is installed.
fn look_for_it() -> Result<(), EmuError> {
    let mut version = Command::new(IPERF3);
    version.arg("--version");
    version.stdout(Stdio::null()).stderr(Stdio::null());
    version.status().map(drop).map_err(cannot_start)
}

fn cannot_start(error: io::Error) -> EmuError {
    if error.kind() == io::ErrorKind::NotFound {
        EmuError::NoProgram {
            program: IPERF3,
            purpose: "for TCP in the background",
            package: IPERF3,
        }
    } else {
        EmuError::system("starting iperf3")(error)
    }
}

/// Starts a program in a namespace. What is meant for this process alone, as an interrupt from the
/// terminal, does not reach it.
fn spawn(namespace: &Arc<Namespace>, command: Command) -> io::Result<Child> {
    let tokio = Handle::try_current().map_err(io::Error::other)?;
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true).process_group(0);
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    namespace.inside(|| {
        let _context = tokio.enter();
        command.spawn()
    })?
}

/// Waits until a program ends, and says why it did; or ends it when told to stop.
async fn attend(what: &str, mut child: Child, mut stop: watch::Receiver<()>) -> String {
    let status = tokio::select! {
        status = child.wait() => status,
        _ = stop.changed() => {
            // It may have ended just now.
            let _ = child.kill().await;
            return String::new();
        }
    };
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // What cannot be read was not said.
        let _ = stderr.read_to_string(&mut said).await;
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    let why = match (last, status) {
        (Some(line), _) => line.to_owned(),
        (None, Ok(status)) => status.to_string(),
        (None, Err(error)) => error.to_string(),
    };
    format!("a {what} of TCP in the background ended: {why}")
}

/// Whether the flow's server does.
fn listens(emulation: &Emulation, flow: &Flow) -> io::Result<bool> {
    let ports = emulation.inside(flow.server.0, || {
        let table = fs::read_to_string("/proc/thread-self/net/tcp");
        listening(&table.unwrap_or_default())
    })?;
    Ok(ports.contains(&flow.server.1.port()))
}

/// The ports on which sockets of a table listen.
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
        assert!(error.is_missing_privilege(), "work to be skipped");
        let text = error.to_string();
        assert!(text.contains("install the package iperf3"), "{text}");
        assert!(!cannot_start(io::ErrorKind::PermissionDenied.into()).is_missing_privilege());
    }

    #[test]
    fn listeners_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue\n   \
                     0: 01004D0A:1451 00000000:0000 0A 00000000:00000000 00:00000000\n   \
                     1: 01004D0A:1452 02004D0A:4E20 01 00000000:00000000 00:00000000\n";
        assert_eq!(listening(table), BTreeSet::from([5201]));
        assert!(listening("").is_empty());
    }
}
