//! The world as one host sees it.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use marline::runtime::{Task, Timer, UdpSocket};
use marline::{Endpoint, EndpointConfig, Instant, Runtime, ServerConfig};

use super::datagram::Datagram;
use super::socket::SimSocket;
use super::world::Shared;
use crate::fabric::{Fabric, Node};

/// A host: a runtime for endpoints and tasks. Clones are the same host.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
    node: Node,
    name: Arc<str>,
    addresses: Arc<[Ipv4Addr]>,
}

impl Host {
    pub(super) fn new(
        shared: Arc<Shared>,
        node: Node,
        name: &str,
        addresses: impl Iterator<Item = Ipv4Addr>,
    ) -> Self {
        Self {
            shared,
            node,
            name: name.into(),
            addresses: addresses.collect(),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Which node of the fabric it is.
    pub fn node(&self) -> Node {
        self.node
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its addresses, one for each interface.
    pub fn addresses(&self) -> &[Ipv4Addr] {
        &self.addresses
    }

    /// `port` at its first address.
    pub fn at(&self, port: u16) -> SocketAddr {
        let first = self.addresses.first().copied();
        SocketAddrV4::new(first.unwrap_or(Ipv4Addr::UNSPECIFIED), port).into()
    }

    /// An endpoint of this host at `addr`: port 0 for any, `0.0.0.0` for all its addresses.
    ///
    /// # Errors
    /// The address is taken, or not this host's.
    pub fn endpoint(&self, addr: SocketAddr, server: Option<ServerConfig>) -> io::Result<Endpoint> {
        let config = EndpointConfig::from_seed(self.seed()?);
        Endpoint::new(config, server, self.bind(addr)?, Arc::new(self.clone()))
    }

    /// Runs a task on this host.
    pub fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(Box::pin(task));
    }

    /// Waits until the clock says `deadline`.
    pub async fn sleep_until(&self, deadline: Instant) {
        let mut timer = self.timer();
        timer.set(deadline);
        std::future::poll_fn(|cx| timer.poll(cx)).await;
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now() + duration).await;
    }

    /// Looks at the network.
    pub fn fabric<T>(&self, look: impl FnOnce(&Fabric<Datagram>) -> T) -> T {
        look(&self.shared.lock().fabric)
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
        let count = &mut self.shared.lock().seeds[self.node.index()];
        let seed = self
            .shared
            .config
            .seed
            .of("host")
            .of(&self.name)
            .nth(*count);
        *count += 1;
        let mut bytes = [0; 32];
        for (part, index) in bytes.chunks_mut(8).zip(0..) {
            part.copy_from_slice(&seed.nth(index).value().to_le_bytes());
        }
        Ok(bytes)
    }

    fn spawn(&self, task: Task) {
        self.shared.executor.spawn(self.node, task);
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(SimTimer {
            number: self.shared.lock().timers.add(),
            shared: Arc::clone(&self.shared),
            deadline: None,
        })
    }

    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>> {
        Ok(Arc::new(SimSocket::bind(self, addr)?))
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({})", self.name)
    }
}

struct SimTimer {
    shared: Arc<Shared>,
    number: usize,
    deadline: Option<Instant>,
}

impl Timer for SimTimer {
    fn set(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else {
            return Poll::Pending;
        };
        let timers = &mut self.shared.lock().timers;
        if self.shared.now() >= deadline {
            self.deadline = None;
            timers.unset(self.number);
            return Poll::Ready(());
        }
        timers.set(self.number, deadline, cx.waker());
        Poll::Pending
    }
}

impl Drop for SimTimer {
    fn drop(&mut self) {
        let waker = self.shared.lock().timers.remove(self.number);
        // Dropping a waker may drop a task, and that another timer: the lock is free again.
        drop(waker);
    }
}
