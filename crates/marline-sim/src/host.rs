//! A host of a simulation: the runtime of its endpoints and tasks.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use marline::runtime::{InterfaceAddress, Task, Timer, UdpSocket};
use marline::{Endpoint, EndpointConfig, Instant, Runtime, ServerConfig};

use crate::datagram::Datagram;
use crate::fabric::{Fabric, Node};
use crate::host_info::HostInfo;
use crate::socket::SimSocket;
use crate::state::Shared;
use crate::timer::SimTimer;

/// A host: a runtime for endpoints and tasks. Clones are the same host.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
    info: Arc<HostInfo>,
}

impl Host {
    pub(crate) fn new(
        shared: Arc<Shared>,
        node: Node,
        name: &str,
        addresses: impl Iterator<Item = Ipv4Addr>,
    ) -> Self {
        let info = HostInfo {
            node,
            name: name.to_owned(),
            addresses: addresses.collect(),
        };
        Self {
            shared,
            info: Arc::new(info),
        }
    }

    /// The host's node in the fabric.
    pub fn node(&self) -> Node {
        self.info.node
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The host's addresses, one for each interface, including detached ones.
    pub fn addresses(&self) -> &[Ipv4Addr] {
        &self.info.addresses
    }

    /// `port` at its first address.
    pub fn at(&self, port: u16) -> SocketAddr {
        let first = self.addresses().first().copied();
        SocketAddrV4::new(first.unwrap_or(Ipv4Addr::UNSPECIFIED), port).into()
    }

    /// Detaches an address, as when an interface loses it: no packets are sent from it, and none arrive.
    pub fn detach(&self, address: Ipv4Addr) {
        self.shared.lock().fabric.detach(address.into());
    }

    /// Attaches an address that was [detached](Self::detach).
    pub fn attach(&self, address: Ipv4Addr) {
        self.shared.lock().fabric.attach(address.into());
    }

    /// Reads the state of the network.
    pub fn fabric<T>(&self, read: impl FnOnce(&Fabric<Datagram>) -> T) -> T {
        read(&self.shared.lock().fabric)
    }

    /// Creates an endpoint of this host at `addr`: port 0 for any, `0.0.0.0` for all its addresses.
    ///
    /// # Errors
    /// If the address is in use, or does not belong to this host.
    pub fn endpoint(&self, addr: SocketAddr, server: Option<ServerConfig>) -> io::Result<Endpoint> {
        let config = EndpointConfig::from_seed(self.seed()?);
        Endpoint::new(config, server, self.bind(addr)?, Arc::new(self.clone()))
    }

    /// Runs a task on this host.
    pub fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(Box::pin(task));
    }

    /// Waits until `deadline`.
    pub async fn sleep_until(&self, deadline: Instant) {
        let mut timer = self.timer();
        timer.set(deadline);
        std::future::poll_fn(|cx| timer.poll(cx)).await;
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now() + duration).await;
    }
}

impl Runtime for Host {
    fn now(&self) -> Instant {
        self.shared.now()
    }

    fn unix_time(&self) -> Duration {
        self.shared.config.beginning + (self.now() - Instant::EPOCH)
    }

    fn seed(&self) -> io::Result<[u8; 32]> {
        let count = &mut self.shared.lock().seeds[self.node().index()];
        let seed = self.shared.config.seed.of("host").of(self.name());
        let seed = seed.nth(*count);
        *count += 1;
        let mut bytes = [0; 32];
        for (part, index) in bytes.chunks_mut(8).zip(0..) {
            part.copy_from_slice(&seed.nth(index).value().to_le_bytes());
        }
        Ok(bytes)
    }

    fn spawn(&self, task: Task) {
        self.shared.executor.spawn(self.node(), task);
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(SimTimer::new(&self.shared))
    }

    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>> {
        Ok(Arc::new(SimSocket::bind(&self.shared, &self.info, addr)?))
    }

    /// Each interface has the name of its medium.
    fn interfaces(&self) -> io::Result<Vec<InterfaceAddress>> {
        let fabric = &self.shared.lock().fabric;
        let own = fabric.addresses(self.node()).iter();
        let attached = own.filter(|&&address| fabric.is_attached(address));
        let list = attached.filter_map(|&address| {
            Some(InterfaceAddress {
                name: fabric.medium_name(fabric.medium_of(address)?).to_owned(),
                address,
                index: None,
                is_up: true,
            })
        });
        Ok(list.collect())
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({})", self.name())
    }
}
