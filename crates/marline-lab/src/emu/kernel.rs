//! The TCP of hosts that are namespaces.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use marline_http::tcp::socket2::Socket;
use marline_http::tcp::{SystemSockets, TcpProtocol, TcpSockets};
use tokio::process::Child;

use super::diagnostics::Diagnostics;
use super::{EmuError, Namespace, program};
use crate::execution::{AcceptedConnections, Kernel};
use crate::scenario::TcpController;

/// The kernel's TCP in a namespace.
#[derive(Debug)]
pub(super) struct HostKernel {
    namespace: Arc<Namespace>,
    /// The one to which programs are confined, if the host is stressed.
    processor: Option<usize>,
}

/// Sockets in a namespace, with a congestion controller.
#[derive(Debug)]
struct HostSockets {
    namespace: Arc<Namespace>,
    controller: TcpController,
}

impl HostKernel {
    pub(super) const fn new(namespace: Arc<Namespace>, processor: Option<usize>) -> Self {
        Self {
            namespace,
            processor,
        }
    }
}

impl Kernel for HostKernel {
    fn sockets(&self, controller: TcpController) -> Arc<dyn TcpSockets> {
        Arc::new(HostSockets {
            namespace: Arc::clone(&self.namespace),
            controller,
        })
    }

    fn use_controller(&self, controller: TcpController) -> io::Result<()> {
        let file = "/proc/sys/net/ipv4/tcp_congestion_control";
        self.namespace
            .inside(|| fs::write(file, controller.name()))?
    }

    fn listens(&self, tcp: bool, port: u16) -> io::Result<bool> {
        let (protocol, port) = (if tcp { "tcp" } else { "udp" }, format!(":{port:04X}"));
        let sockets = self.namespace.inside(program::listening)?;
        let mut sockets = sockets.iter();
        Ok(sockets.any(|socket| socket.starts_with(protocol) && socket.ends_with(&port)))
    }

    fn allow_second_subflow(&self, announced: Option<SocketAddr>) -> io::Result<()> {
        let mut batch = "mptcp limits set subflows 1 add_addr_accepted 1\n".to_owned();
        if let Some(address) = announced {
            let (ip, port) = (address.ip(), address.port());
            batch += &format!("mptcp endpoint add {ip} port {port} signal\n");
        }
        self.namespace
            .inside(|| run_ip(&batch))?
            .map_err(io::Error::other)
    }

    fn counters(&self) -> io::Result<BTreeMap<String, u64>> {
        let table = self
            .namespace
            .inside(|| fs::read_to_string("/proc/thread-self/net/netstat"))??;
        Ok(counters(&table))
    }

    fn accepted(&self, ports: &[u16]) -> io::Result<Box<dyn AcceptedConnections>> {
        let open = || Diagnostics::open(ports.to_vec());
        Ok(Box::new(self.namespace.inside(open)??))
    }

    fn spawn(&self, command: Command) -> io::Result<Child> {
        program::spawn(&self.namespace, command, self.processor)
    }
}

impl TcpSockets for HostSockets {
    fn socket(&self, address: SocketAddr, protocol: TcpProtocol) -> io::Result<Socket> {
        let socket = self
            .namespace
            .inside(|| SystemSockets.socket(address, protocol))??;
        socket.set_tcp_congestion(self.controller.name().as_bytes())?;
        Ok(socket)
    }
}

/// Runs `ip` with a batch of commands.
fn run_ip(batch: &str) -> Result<(), EmuError> {
    let failed = |message: String| EmuError::Tool {
        tool: "ip",
        message,
        package: "iproute2",
    };
    let run = || {
        let mut ip = Command::new("ip")
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = ip.stdin.take() {
            stdin.write_all(batch.as_bytes())?;
        }
        ip.wait_with_output()
    };
    let output = run().map_err(|error: io::Error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(failed(
        message.lines().next().unwrap_or_default().to_owned(),
    ))
}

/// The counters of a table of /proc: a line of names, then one of values, each after a prefix.
fn counters(table: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let lines: Vec<_> = table.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((prefix, names)), Some((_, values))) =
            (pair[0].split_once(':'), pair[1].split_once(':'))
        else {
            continue;
        };
        let all = names.split_whitespace().zip(values.split_whitespace());
        counters.extend(
            all.filter_map(|(name, value)| Some((format!("{prefix}{name}"), value.parse().ok()?))),
        );
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_names_of_nstat() {
        let table = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 3\n\
                     MPTcpExt: MPCapableACKRX MPJoinAckRx\nMPTcpExt: 1 2\nodd\n";
        let counters = counters(table);
        assert_eq!(counters["TcpExtTCPTimeouts"], 3);
        assert_eq!(counters["MPTcpExtMPJoinAckRx"], 2);
        assert_eq!(counters.len(), 4);
    }
}
