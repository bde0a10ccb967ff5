//! 4-tuples of network paths, the ECN bits of datagrams, and what the outcome of packets shows of a 4-tuple: the largest
//! datagram (`mtu`), and whether ECN works (`ecn`).

mod ecn;
mod mtu;

pub(crate) use ecn::{EcnLedger, EcnValidation, EcnValidationState};
pub(crate) use mtu::{MAX_CEILING, MtuDiscovery};

use std::fmt;
use std::net::SocketAddr;

/// Local and remote address of a datagram: a 4-tuple of IP addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FourTuple {
    /// Local address; its IP address is unspecified if the socket does not report it.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl FourTuple {
    /// Whether both are the same path, where an unspecified local IP address matches any.
    pub fn matches(&self, other: &Self) -> bool {
        self.remote == other.remote
            && self.local.port() == other.local.port()
            && (self.local.ip() == other.local.ip()
                || self.local.ip().is_unspecified()
                || other.local.ip().is_unspecified())
    }
}

impl fmt::Display for FourTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.local, self.remote)
    }
}

/// The two ECN bits of an IP header that carries ECN (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// ECN-capable transport, codepoint 1 (L4S).
    Ect1 = 0b01,
    /// ECN-capable transport, codepoint 0.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

/// A datagram, or several of one size for one path, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Source and destination addresses.
    pub tuple: FourTuple,
    /// ECN codepoint of the datagrams.
    pub ecn: Option<EcnCodepoint>,
    /// Number of bytes appended to the buffer.
    pub size: usize,
    /// Size in bytes of every datagram but the last, if there are several (generic segmentation offload).
    pub segment_size: Option<usize>,
}

/// Source of a packet and its datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) tuple: FourTuple,
    pub(crate) ecn: Option<EcnCodepoint>,
    /// Length of the whole datagram, in bytes.
    pub(crate) datagram: usize,
}
