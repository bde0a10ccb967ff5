//! The services that an endpoint needs from its runtime: a clock, timers, tasks and UDP sockets.
//!
//! Nothing else in this crate reads a clock or opens a socket, so an endpoint runs unchanged on another
//! async runtime, or in a simulator with virtual time and simulated sockets.

#[cfg_attr(not(target_os = "linux"), path = "no_reuse_port.rs")]
pub mod reuse_port;
#[cfg(not(target_family = "wasm"))]
mod tokio;

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use marline_proto::{EcnCodepoint, Instant, Transmit, Unreachable};

#[cfg(not(target_family = "wasm"))]
pub use self::tokio::TokioRuntime;

/// A task for [`Runtime::spawn`].
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Clock, timers, tasks and sockets.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// The present moment; never goes back.
    fn now(&self) -> Instant;

    /// Time since 1970-01-01 UTC; dates address validation tokens and session tickets.
    fn unix_time(&self) -> Duration;

    /// 32 bytes from a cryptographic random number generator, or fixed ones where runs have to be
    /// reproducible: the keys and the randomness of an endpoint derive from them.
    ///
    /// # Errors
    /// The system's random number generator failed.
    fn seed(&self) -> io::Result<[u8; 32]>;

    /// Runs `task` until it ends.
    fn spawn(&self, task: Task);

    /// A timer that is not set.
    fn timer(&self) -> Box<dyn Timer>;

    /// A UDP socket at `addr`.
    ///
    /// # Errors
    /// The system's error, such as an address that is in use or not this host's.
    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>>;

    /// The addresses of this host's interfaces.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::Unsupported`] where interfaces cannot be listed.
    fn interfaces(&self) -> io::Result<Vec<InterfaceAddress>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The address from which the system sends to `remote`: by its routes, or through `interface`, which then may lack a
    /// route all the same.
    ///
    /// # Errors
    /// There is no route; [`io::ErrorKind::Unsupported`] where the system does not tell, or does not bind to interfaces.
    fn source_for(
        &self,
        remote: SocketAddr,
        interface: Option<&InterfaceAddress>,
    ) -> io::Result<IpAddr> {
        let _ = (remote, interface);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reports of changes of the host's interfaces, addresses and routes; `None` where there are none, so that they are
    /// read at intervals.
    fn network_changes(&self) -> Option<Box<dyn NetworkChanges>> {
        None
    }

    /// Takes over a socket that the caller bound.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where sockets are not those of the system.
    fn wrap(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn UdpSocket>> {
        drop(socket);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Changes of the host's interfaces, addresses and routes.
pub trait NetworkChanges: Send {
    /// Ready after a change. Several in a row may be reported as one.
    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// An address of a network interface of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface's name.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// The interface's index in the system, if it has one; an interface that is removed and added again gets
    /// another.
    pub index: Option<u32>,
    /// Whether the interface is operational: up, and with a carrier or an association.
    pub is_up: bool,
}

/// A timer with one deadline. Pacing needs a resolution much finer than a millisecond.
pub trait Timer: Send {
    /// Sets the deadline, which replaces the one before.
    fn set(&mut self, deadline: Instant);

    /// Ready once when the deadline has passed; pending while none is set.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// A UDP socket that reports the destination address and the ECN codepoint of each datagram.
///
/// One task polls it at a time; the last registered waker is woken.
pub trait UdpSocket: fmt::Debug + Send + Sync {
    /// Sends `payload`: one datagram, or datagrams of `transmit.segment_size` bytes each (GSO).
    ///
    /// `transmit.tuple.local` names the source address unless its IP is unspecified.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if nothing was sent: try again after
    /// [`poll_send_ready`](Self::poll_send_ready). Any other error means that this payload is lost; after the system's EMSGSIZE,
    /// which says that a datagram exceeds the MTU of the interface, smaller datagrams follow.
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()>;

    /// Ready when [`try_send`](Self::try_send) may succeed.
    fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Fills buffers with received datagrams; ready with the number of buffers (and `meta`) filled.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>>;

    /// The address that the socket is bound to; the IP may be unspecified.
    ///
    /// # Errors
    /// The system's error.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Sends datagrams with this source address through its interface, and receives the answers there. Other
    /// addresses are not affected. Without it, the system's routes select the interface of a datagram,
    /// regardless of its source address.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::Unsupported`] where sockets cannot be bound to interfaces.
    fn bind_interface(&self, interface: &InterfaceAddress) -> io::Result<()> {
        let _ = interface;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether [`poll_unreachable`](Self::poll_unreachable) is to report unreachable destinations; it does not at first.
    fn report_unreachable(&self, enabled: bool) {
        let _ = enabled;
    }

    /// The next destination that an ICMP message reports as unreachable. Always pending where the system reports none.
    fn poll_unreachable(&self, cx: &mut Context<'_>) -> Poll<UnreachableReport> {
        let _ = cx;
        Poll::Pending
    }

    /// Another handle of the same socket, for another process.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::Unsupported`] where sockets are not those of the system.
    fn duplicate(&self) -> io::Result<std::net::UdpSocket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Most datagrams that one [`try_send`](Self::try_send) may carry. May fall to 1 when the
    /// network card turns out not to support segmentation.
    fn max_gso_segments(&self) -> usize {
        1
    }

    /// Most datagrams that one receive buffer may be filled with.
    fn max_gro_segments(&self) -> usize {
        1
    }

    /// The time for which packets are gathered where pacing holds them back: with timers of a few microseconds, each would leave by
    /// itself, at the cost of a call. Zero where a call sends one datagram, or where time is simulated.
    fn send_gather(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether routers or this host may fragment what is sent, so that MTU discovery does not work.
    fn may_fragment(&self) -> bool {
        false
    }
}

/// A report that the destination of a datagram is unreachable: from an ICMP message, whose sender is not authenticated,
/// or from this host, which has no route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachableReport {
    /// The part of the destination that is unreachable: network, host or port.
    pub what: Unreachable,
    /// The address that the datagram was sent to.
    pub remote: SocketAddr,
    /// The beginning of its payload, as far as it is quoted.
    pub quote: Vec<u8>,
}

/// Bytes of a datagram that a report quotes at most: a long header whose connection IDs have 20 bytes, the most that
/// QUIC version 1 allows, fits in (RFC 9000, section 17.2).
pub(crate) const QUOTE: usize = 64;

/// A socket and the address it is bound to.
#[derive(Clone)]
pub(crate) struct BoundSocket {
    pub(crate) socket: Arc<dyn UdpSocket>,
    pub(crate) local: SocketAddr,
}

/// Metadata of the datagrams in one receive buffer.
#[derive(Clone, Copy, Debug)]
pub struct RecvMeta {
    /// The address they were sent from.
    pub remote: SocketAddr,
    /// The local address they were sent to, if the system reports it.
    pub local_ip: Option<IpAddr>,
    /// Bytes in the buffer.
    pub len: usize,
    /// Bytes in each datagram but the last, which may be shorter (GRO).
    pub stride: usize,
    /// The ECN codepoint of their IP headers.
    pub ecn: Option<EcnCodepoint>,
}

impl Default for RecvMeta {
    fn default() -> Self {
        Self {
            remote: SocketAddr::from(([0; 4], 0)),
            local_ip: None,
            len: 0,
            stride: 0,
            ecn: None,
        }
    }
}
