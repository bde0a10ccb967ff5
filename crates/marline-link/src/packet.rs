//! The packet type of links.

/// A packet in transit.
///
/// Links use its size, flow and ECN field; `body` is opaque to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<B = ()> {
    /// Size of the IP packet in bytes, including its header; links add their own framing.
    pub size: u32,
    /// Hash of the 5-tuple, for fair queueing and equal-cost multipath routing.
    pub flow: u64,
    /// Hashes of the source address and the destination address, for fairness among hosts.
    pub hosts: [u32; 2],
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// Set if a bit error occurred: the index of the bit, modulo the number of bits.
    pub corrupted: Option<u64>,
    /// The caller's data.
    pub body: B,
}

impl<B> Packet<B> {
    /// A packet of flow 0 that is not ECN-capable.
    pub const fn new(size: u32, body: B) -> Self {
        Self {
            size,
            flow: 0,
            hosts: [0; 2],
            ecn: Ecn::NotEct,
            corrupted: None,
            body,
        }
    }

    /// The same packet with another body.
    pub fn map<C>(self, body: impl FnOnce(B) -> C) -> Packet<C> {
        Packet {
            size: self.size,
            flow: self.flow,
            hosts: self.hosts,
            ecn: self.ecn,
            corrupted: self.corrupted,
            body: body(self.body),
        }
    }
}

/// The ECN field (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable: congestion can only be signalled by loss.
    #[default]
    NotEct,
    /// ECN-capable; ECT(1).
    Ect1,
    /// ECN-capable; ECT(0).
    Ect0,
    /// Congestion Experienced (CE).
    Ce,
}

impl Ecn {
    /// Whether a queue may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}
