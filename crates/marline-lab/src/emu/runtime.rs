//! The runtime of endpoints of this process that run inside a host.

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::Arc;
use std::time::Duration;

use marline::runtime::{Task, Timer, UdpSocket};
use marline::{Instant, Runtime, TokioRuntime};

use super::Namespace;

/// tokio, with sockets that belong to a host.
pub(super) struct HostRuntime {
    tokio: TokioRuntime,
    namespace: Arc<Namespace>,
}

impl HostRuntime {
    pub(super) fn new(namespace: Arc<Namespace>) -> io::Result<Self> {
        Ok(Self {
            tokio: TokioRuntime::current()?,
            namespace,
        })
    }
}

impl fmt::Debug for HostRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostRuntime")
            .field("namespace", &self.namespace.inode())
            .finish_non_exhaustive()
    }
}

impl Runtime for HostRuntime {
    fn now(&self) -> Instant {
        self.tokio.now()
    }

    fn unix_time(&self) -> Duration {
        self.tokio.unix_time()
    }

    fn seed(&self) -> io::Result<[u8; 32]> {
        self.tokio.seed()
    }

    fn spawn(&self, task: Task) {
        self.tokio.spawn(task);
    }

    fn timer(&self) -> Box<dyn Timer> {
        self.tokio.timer()
    }

    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>> {
        self.wrap(self.namespace.inside(|| StdSocket::bind(addr))??)
    }

    fn wrap(&self, socket: StdSocket) -> io::Result<Arc<dyn UdpSocket>> {
        self.tokio.wrap(socket)
    }
}
