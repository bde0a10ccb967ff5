//! Maximum packet size.

use crate::{DropReason, Filter, Packet, Time};

/// Drops packets above a size limit silently, without ICMP messages to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// Maximum size of an IP packet, in bytes.
    pub bytes: u32,
}

impl Filter for Mtu {
    fn inspect<B>(&mut self, _now: Time, packet: &mut Packet<B>) -> Option<DropReason> {
        (packet.size > self.bytes).then_some(DropReason::TooLarge)
    }
}
