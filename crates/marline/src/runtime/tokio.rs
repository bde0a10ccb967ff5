//! The runtime on tokio.

#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    path = "tokio/no_network_changes.rs"
)]
mod network_changes;
mod socket;
mod timer;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use marline_proto::Instant;
use tokio::runtime::Handle;

use super::{InterfaceAddress, NetworkChanges, Runtime, Task, Timer, UdpSocket};

/// The epoch of every [`Instant`] in this process, so that those of several endpoints can be compared.
static EPOCH: LazyLock<std::time::Instant> = LazyLock::new(monotonic_now);

#[expect(
    clippy::disallowed_methods,
    reason = "a runtime is where the clock is read"
)]
fn monotonic_now() -> std::time::Instant {
    std::time::Instant::now()
}

/// [`Runtime`] on tokio: its I/O driver, its tasks, and timers finer than its own.
#[derive(Clone, Debug)]
pub struct TokioRuntime {
    handle: Handle,
}

impl TokioRuntime {
    /// The tokio runtime of the caller; it needs I/O and time enabled.
    ///
    /// # Errors
    /// The caller does not run in a tokio runtime.
    pub fn current() -> io::Result<Self> {
        let handle = Handle::try_current().map_err(io::Error::other)?;
        Ok(Self::of(handle))
    }

    /// The tokio runtime of `handle`; it needs I/O and time enabled.
    pub fn of(handle: Handle) -> Self {
        LazyLock::force(&EPOCH);
        Self { handle }
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Instant {
        Instant::EPOCH + monotonic_now().duration_since(*EPOCH)
    }

    fn unix_time(&self) -> Duration {
        #[expect(
            clippy::disallowed_methods,
            reason = "a runtime is where the clock is read"
        )]
        let now = SystemTime::now();
        now.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
    }

    fn seed(&self) -> io::Result<[u8; 32]> {
        let mut seed = [0; 32];
        crate::default_crypto_provider()
            .secure_random
            .fill(&mut seed)
            .map_err(|_| io::Error::other("the system's random number generator failed"))?;
        Ok(seed)
    }

    fn spawn(&self, task: Task) {
        self.handle.spawn(task);
    }

    fn timer(&self) -> Box<dyn Timer> {
        let _context = self.handle.enter();
        timer::new(*EPOCH)
    }

    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>> {
        self.wrap(std::net::UdpSocket::bind(addr)?)
    }

    fn interfaces(&self) -> io::Result<Vec<InterfaceAddress>> {
        let list = if_addrs::get_if_addrs()?.into_iter();
        let entry = |one: if_addrs::Interface| InterfaceAddress {
            address: one.ip(),
            index: one.index,
            is_up: one.is_oper_up(),
            name: one.name,
        };
        Ok(list.map(entry).collect())
    }

    fn source_for(
        &self,
        remote: SocketAddr,
        interface: Option<&InterfaceAddress>,
    ) -> io::Result<IpAddr> {
        socket::source_for(remote, interface)
    }

    fn network_changes(&self) -> Option<Box<dyn NetworkChanges>> {
        let _context = self.handle.enter();
        network_changes::watch().ok()
    }

    fn wrap(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn UdpSocket>> {
        let _context = self.handle.enter();
        Ok(Arc::new(socket::TokioSocket::new(socket)?))
    }
}
