//! An emulated network of namespaces.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use marline::Runtime;
use marline_sim::fabric::{EcmpHash, Fabric, Node};

use super::driver::{Driver, Port, Stop};
use super::guard::Guard;
use super::runtime::HostRuntime;
use super::tun::{self, Tun};
use super::{EmuError, IpPacket, Namespace, Report};

/// Hosts that are network namespaces, and the network between them in real time.
///
/// When it is dropped, or this process ends in whatever way, everything that runs inside the hosts is
/// killed, and namespaces and devices are gone.
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
    /// Makes a namespace of every host of `fabric`, with a device for each of its interfaces, and
    /// starts to move packets. `hash` tells flows apart.
    ///
    /// # Errors
    /// What this machine or user lacks, or what failed.
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
            let neighbors: Vec<_> = others.flat_map(of).map(|to| (to, nearest(to))).collect();
            let tuns = (0..)
                .zip(&addresses)
                .map(|(index, address)| Tun::open(&namespace, index, *address))
                .collect::<Result<Vec<_>, _>>()?;
            tun::configure(&namespace, &tuns, &neighbors)?;
            ports.push(Port {
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
        let stop = Stop::new().map_err(EmuError::system("an event descriptor"))?;
        let driver = Driver::new(fabric, hash, ports, Arc::clone(&stop));
        let driver = thread::Builder::new()
            .name("links".to_owned())
            .spawn(move || driver.run())
            .map_err(EmuError::system("a thread"))?;
        Ok(Self {
            hosts,
            stop,
            driver: Some(driver),
            _guard: guard,
        })
    }

    /// The addresses of a host, one for each of its interfaces; none if it is not one.
    pub fn addresses(&self, host: Node) -> &[Ipv4Addr] {
        self.host(host).map_or(&[], |host| &host.addresses)
    }

    /// Runs `work` on a thread inside a host: sockets it makes and programs it starts belong there.
    ///
    /// # Errors
    /// There is no such host, or the system refuses a thread.
    pub fn inside<T: Send>(&self, host: Node, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.host(host)?.namespace.inside(work)
    }

    /// Starts a program inside a host. It ends with the emulation, and so does whatever it starts.
    ///
    /// # Errors
    /// There is no such host, or the program does not start.
    pub fn spawn(&self, host: Node, program: &mut Command) -> io::Result<Child> {
        self.inside(host, || program.spawn())?
    }

    /// The world as endpoints of this process see it that shall live inside a host: tokio, with sockets
    /// of that host. Call it within a tokio runtime.
    ///
    /// # Errors
    /// There is no such host, or no tokio runtime.
    pub fn runtime(&self, host: Node) -> io::Result<Arc<dyn Runtime>> {
        Ok(Arc::new(HostRuntime::new(self.namespace(host)?)?))
    }

    pub(super) fn namespace(&self, host: Node) -> io::Result<Arc<Namespace>> {
        Ok(Arc::clone(&self.host(host)?.namespace))
    }

    /// Ends the network, and says what it did. Programs inside the hosts are killed.
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
        // If the driver panicked, it has said so itself.
        drop(self.end());
    }
}

/// Whether the plan gave both addresses to one medium.
fn on_one_link(a: Ipv4Addr, b: Ipv4Addr) -> bool {
    a.octets()[..3] == b.octets()[..3]
}

fn v4(address: &IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    }
}
