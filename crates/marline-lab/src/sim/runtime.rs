//! A host as a runtime: its endpoints, tasks and timers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use marline::runtime::{Task, Timer, UdpSocket};
use marline::{Endpoint, EndpointConfig, Instant, Runtime, ServerConfig};

use super::host::Host;
use super::socket::SimSocket;
use super::state::Shared;

impl Host {
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
}

impl Runtime for Host {
    fn now(&self) -> Instant {
        self.shared().now()
    }

    fn unix_time(&self) -> Duration {
        self.shared().config.beginning + (self.now() - Instant::EPOCH)
    }

    fn seed(&self) -> io::Result<[u8; 32]> {
        let shared = self.shared();
        let count = &mut shared.lock().seeds[self.node().index()];
        let seed = shared.config.seed.of("host").of(self.name()).nth(*count);
        *count += 1;
        let mut bytes = [0; 32];
        for (part, index) in bytes.chunks_mut(8).zip(0..) {
            part.copy_from_slice(&seed.nth(index).value().to_le_bytes());
        }
        Ok(bytes)
    }

    fn spawn(&self, task: Task) {
        self.shared().executor.spawn(self.node(), task);
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(SimTimer {
            number: self.shared().lock().timers.add(),
            shared: Arc::clone(self.shared()),
            deadline: None,
        })
    }

    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>> {
        Ok(Arc::new(SimSocket::bind(self, addr)?))
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
