//! Keys that become available or are discarded. The keys themselves are not part of the events.

use marline_wire::Side;

/// Which packets keys protect (RFC 9001, section 2.1).
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

/// What caused a change of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyTrigger {
    /// The handshake.
    Tls,
    /// The peer began a key update (RFC 9001, section 6).
    RemoteUpdate,
    /// This end began one.
    LocalUpdate,
}

/// Keys became available.
#[derive(Clone, Copy, Debug)]
pub struct KeyUpdated {
    /// Whose packets they protect.
    pub sender: Side,
    /// Which packets.
    pub kind: KeyKind,
    /// Number of key updates before them; for 1-RTT keys.
    pub key_phase: Option<u64>,
    /// What caused that.
    pub trigger: KeyTrigger,
}

/// Keys were discarded.
#[derive(Clone, Copy, Debug)]
pub struct KeyDiscarded {
    /// Whose packets they protected.
    pub sender: Side,
    /// Which packets.
    pub kind: KeyKind,
    /// Number of key updates before them; for 1-RTT keys.
    pub key_phase: Option<u64>,
    /// What caused that.
    pub trigger: KeyTrigger,
}
