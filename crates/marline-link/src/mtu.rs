//! The largest packet that fits.

use crate::{DropReason, Guard, Packet, Time};

/// Drops packets that are larger than a limit, silently: no ICMP message tells the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// The largest IP packet that passes, in bytes.
    pub bytes: u32,
}

impl Guard for Mtu {
    fn inspect<B>(&mut self, _now: Time, packet: &mut Packet<B>) -> Option<DropReason> {
        (packet.size > self.bytes).then_some(DropReason::TooLarge)
    }
}
