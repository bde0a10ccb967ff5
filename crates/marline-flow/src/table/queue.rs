//! Flows approximately in the order of their last packets: an entry is corrected when it comes to the front.

use std::collections::VecDeque;

use super::Phase;
use crate::decode::Transport;

/// A flow, and the time of its last packet as known to its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) slot: u32,
    pub(super) ticket: u32,
    pub(super) seen_ns: u64,
}

/// A queue for each time-out. A flow has an entry for each phase that it was in, of which only the last one is
/// valid.
#[derive(Debug, Default)]
pub(super) struct Queues([VecDeque<Entry>; Self::COUNT]);

impl Queues {
    pub(super) const COUNT: usize = 4;
    /// The number of queues of flows that are not established, which come first.
    pub(super) const UNESTABLISHED: usize = 2;

    pub(super) fn of(&mut self, phase: Phase, transport: Transport) -> &mut VecDeque<Entry> {
        self.at(match (phase, transport) {
            (Phase::Closed, _) => 0,
            (Phase::Opening, _) => 1,
            (Phase::Open, Transport::Tcp) => 2,
            (Phase::Open, Transport::Udp) => 3,
        })
    }

    pub(super) fn at(&mut self, queue: usize) -> &mut VecDeque<Entry> {
        &mut self.0[queue]
    }
}
