//! What a link carries.

/// A packet on its way.
///
/// Links look at its size, flow and mark; `body` is the caller's, and is never looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<B = ()> {
    /// Bytes of the IP packet, its header included; links add their own framing to that.
    pub size: u32,
    /// A hash of the 5-tuple, equal for all packets of a flow: for fair queues and equal-cost paths.
    pub flow: u64,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// Set when a bit was flipped on the way: which one, modulo the number of bits.
    pub corrupted: Option<u64>,
    /// What the caller wants back.
    pub body: B,
}

impl<B> Packet<B> {
    /// A packet that is not marked, of flow 0.
    pub const fn new(size: u32, body: B) -> Self {
        Self {
            size,
            flow: 0,
            ecn: Ecn::NotEct,
            corrupted: None,
            body,
        }
    }
}

/// The ECN field (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable: congestion can only be told by loss.
    #[default]
    NotEct,
    /// ECN-capable; ECT(1).
    Ect1,
    /// ECN-capable; ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}
