//! An emulated network of namespaces.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use marline::Runtime;
use marline_sim::fabric::{EcmpHash, Fabric, Node};

use super::driver::{Driver, HostDevices, Stop};
use super::guard::Guard;
use super::kernel::HostKernel;
use super::runtime::HostRuntime;
use super::tun::{self, Neighbor, Tun};
use super::{EmuError, IpPacket, Namespace, Report};
use crate::execution::Kernel;

/// Hosts that are network namespaces, and the network between them in real time.
///
/// When it is dropped, or this process ends for any reason, all processes inside the hosts are killed, and
/// the namespaces and devices are removed.
pub struct Emulation {
    hosts: Vec<Host>,
    stop: Arc<Stop>,
    driver: Option<JoinHandle<Report>>,
    /// Dropped last: it kills the programs that still run in the hosts.
    _guard: Guard,
}

struct Host {
    node: Node,
    addresses: Vec<Ipv4Addr>,
    namespace: Arc<Namespace>,
}

impl fmt::Debug for Emulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulation")
            .field("hosts", &self.hosts.len())
            .finish_non_exhaustive()
    }
}

impl Emulation {
    /// Makes a namespace of every host of `fabric`, with a device for each of its interfaces, and starts to
    /// move packets. `hash` identifies flows for load balancing.
    ///
    /// # Errors
    /// A privilege or a tool is missing, or a system call failed.
    pub fn start(fabric: Fabric<IpPacket>, hash: EcmpHash) -> Result<Self, EmuError> {
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        let of = |node| fabric.addresses(node).iter().filter_map(v4);
        for node in fabric.nodes().filter(|&node| fabric.is_host(node)) {
            let namespace = Namespace::new()?;
            let addresses: Vec<_> = of(node).collect();
            let others = fabric.nodes().filter(|&other| other != node);
            let nearest = |to: Ipv4Addr| {
                let mut on_link = addresses.iter().filter(|own| on_one_link(**own, to));
                let routed = || fabric.source_for(node, to.into()).as_ref().and_then(v4);
                on_link.next().copied().or_else(routed)
            };
            let neighbor = |address| Neighbor {
                address,
                nearest: nearest(address),
            };
            let neighbors: Vec<_> = others.flat_map(of).map(neighbor).collect();
            let tuns = (0..)
                .zip(&addresses)
                .map(|(index, address)| Tun::open(&namespace, index, *address))
                .collect::<Result<Vec<_>, _>>()?;
            tun::configure(&namespace, &tuns, &neighbors)?;
            ports.push(HostDevices {
                node,
                name: fabric.name(node).to_owned(),
                tuns,
            });
            hosts.push(Host {
                node,
                addresses,
                namespace: Arc::new(namespace),
            });
        }
        let inodes = hosts.iter().map(|host| host.namespace.inode()).collect();
        let guard = Guard::start(inodes).map_err(EmuError::system("starting `sh`"))?;
        let stop = Stop::new().map_err(EmuError::system("creating an event descriptor"))?;
        let driver = Driver::new(fabric, hash, ports, Arc::clone(&stop));
        let driver = thread::Builder::new()
            .name("links".to_owned())
            .spawn(move || driver.run())
            .map_err(EmuError::system("starting a thread"))?;
        Ok(Self {
            hosts,
            stop,
            driver: Some(driver),
            _guard: guard,
        })
    }

    /// The addresses of a host, one for each of its interfaces; empty if `host` is no host.
    pub fn addresses(&self, host: Node) -> &[Ipv4Addr] {
        self.host(host).map_or(&[], |host| &host.addresses)
    }

    /// Runs `work` on a thread inside a host: the sockets and programs that it creates belong to that host.
    ///
    /// # Errors
    /// There is no such host, or the system refuses a thread.
    pub fn inside<T: Send>(&self, host: Node, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.host(host)?.namespace.inside(work)
    }

    /// Starts a program inside a host. The program and its children are killed when the emulation ends.
    ///
    /// # Errors
    /// There is no such host, or the program does not start.
    pub fn spawn(&self, host: Node, program: &mut Command) -> io::Result<Child> {
        self.inside(host, || program.spawn())?
    }

    /// A runtime for endpoints of this process that run inside a host: tokio, with sockets of that host. Call
    /// it within a tokio runtime.
    ///
    /// # Errors
    /// There is no such host, or no tokio runtime.
    pub fn runtime(&self, host: Node) -> io::Result<Arc<dyn Runtime>> {
        Ok(Arc::new(HostRuntime::new(self.namespace(host)?)?))
    }

    /// The kernel inside a host, whose programs are confined to a processor if one is given.
    pub(super) fn kernel(
        &self,
        host: Node,
        processor: Option<usize>,
    ) -> io::Result<Arc<dyn Kernel>> {
        Ok(Arc::new(HostKernel::new(self.namespace(host)?, processor)))
    }

    pub(super) fn namespace(&self, host: Node) -> io::Result<Arc<Namespace>> {
        Ok(Arc::clone(&self.host(host)?.namespace))
    }

    /// Stops the network, kills the programs inside the hosts, and returns the statistics.
    pub fn stop(mut self) -> Report {
        match self.end() {
            Some(Ok(report)) => report,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Report::default(),
        }
    }

    fn end(&mut self) -> Option<thread::Result<Report>> {
        self.stop.stop();
        Some(self.driver.take()?.join())
    }

    fn host(&self, node: Node) -> io::Result<&Host> {
        let host = self.hosts.iter().find(|host| host.node == node);
        host.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such host"))
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        // A panic of the driver has already been reported by the panic handler.
        drop(self.end());
    }
}

/// Whether the plan assigned both addresses to the same medium.
fn on_one_link(a: Ipv4Addr, b: Ipv4Addr) -> bool {
    a.octets()[..3] == b.octets()[..3]
}

fn v4(address: &IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    }
}
