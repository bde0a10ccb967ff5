//! Background traffic of experiments.
//!
//! All of it runs as tasks of a runtime: of a [simulated host](marline_sim::Host), or of a real one.

mod flow;
mod source;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use marline::{Instant, Runtime};

pub use self::flow::LongFlow;
pub(crate) use self::flow::{fill, read};
pub use self::source::{Pattern, Sink, UdpSource};

/// An address of a host, on whose runtime a socket is bound; port 0 is any free port.
#[derive(Clone)]
pub struct HostAddress {
    /// The runtime of the host.
    pub runtime: Arc<dyn Runtime>,
    /// The address.
    pub address: SocketAddr,
}

/// Bytes of payload received so far. Clones share their counter.
#[derive(Clone, Debug, Default)]
pub struct Received(Arc<AtomicU64>);

impl Received {
    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A TCP flow as observed on the links. Clones share their counters.
#[derive(Clone, Debug, Default)]
pub struct TcpCount {
    /// In-order bytes that an application could have read by now.
    pub received: Received,
    /// Data packets of its sender.
    pub packets: Packets,
}

/// Counts of packets that entered links, and that links lost. Clones share their counters.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    sent: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

impl Packets {
    /// The number of packets sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The number of them that were lost.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn on_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn on_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

async fn sleep_until(runtime: &dyn Runtime, deadline: Instant) {
    let mut timer = runtime.timer();
    timer.set(deadline);
    std::future::poll_fn(|cx| timer.poll(cx)).await;
}
