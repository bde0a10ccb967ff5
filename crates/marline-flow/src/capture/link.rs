//! What the first bytes of a packet are.

/// The link layers whose packets can be read (numbers of <https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet, with or without VLAN tags.
    Ethernet,
    /// IP without anything before it.
    Raw,
    /// Four bytes with the address family of BSD, in the byte order of the machine or of the network.
    Loopback,
    /// The pseudo-header of Linux for several links, version 1.
    CookedV1,
    /// Its version 2.
    CookedV2,
}

impl LinkType {
    /// The link type with a number, if it is known.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            // 12 and 14 are what some systems wrote for 101; 228 is IPv4 only, 229 IPv6 only.
            12 | 14 | 101 | 228 | 229 => Some(Self::Raw),
            0 | 108 => Some(Self::Loopback),
            113 => Some(Self::CookedV1),
            276 => Some(Self::CookedV2),
            _ => None,
        }
    }
}
