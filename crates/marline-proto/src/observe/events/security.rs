//! Keys that become available or are discarded. The events do not contain the keys.

use marline_wire::Side;

/// The packets that a key protects (RFC 9001, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT packets.
    ZeroRtt,
    /// 1-RTT packets.
    OneRtt,
}

/// The cause of a change of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyTrigger {
    /// The handshake.
    Tls,
    /// A key update initiated by the peer (RFC 9001, section 6).
    RemoteUpdate,
    /// A key update initiated by this end.
    LocalUpdate,
}

/// Keys became available.
#[derive(Clone, Copy, Debug)]
pub struct KeyUpdated {
    /// End whose packets they protect.
    pub sender: Side,
    /// Kind of the packets.
    pub kind: KeyKind,
    /// Number of previous key updates, for 1-RTT keys.
    pub key_phase: Option<u64>,
    /// Cause of the change.
    pub trigger: KeyTrigger,
}

/// Keys were discarded.
#[derive(Clone, Copy, Debug)]
pub struct KeyDiscarded {
    /// End whose packets they protected.
    pub sender: Side,
    /// Kind of the packets.
    pub kind: KeyKind,
    /// Number of previous key updates, for 1-RTT keys.
    pub key_phase: Option<u64>,
    /// Cause of the change.
    pub trigger: KeyTrigger,
}
