//! Counts of packets.

use marline_link::DropReason;

/// Counts of the packets that one station sent over one medium.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets that entered the medium.
    pub entered_packets: u64,
    /// Bytes of IP packets that entered the medium.
    pub entered_bytes: u64,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Bytes of IP packets that arrived.
    pub arrived_bytes: u64,
    /// Packets lost, by reason, in the order in which the reasons first occurred.
    pub dropped: Vec<(DropReason, u64)>,
}

impl Traffic {
    /// Packets lost for any reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().map(|&(_, packets)| packets).sum()
    }

    pub(super) fn on_entered(&mut self, size: u32) {
        self.entered_packets += 1;
        self.entered_bytes += u64::from(size);
    }

    pub(super) fn on_arrived(&mut self, size: u32) {
        self.arrived_packets += 1;
        self.arrived_bytes += u64::from(size);
    }

    pub(super) fn on_dropped(&mut self, reason: DropReason) {
        match self.dropped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, packets)) => *packets += 1,
            None => self.dropped.push((reason, 1)),
        }
    }
}
