//! A view of two stations of a medium.

use crate::{Carried, Medium, Packet, Station, Time};

/// A medium restricted to two of its stations; the others only forward packets.
pub struct StationPair<M> {
    medium: M,
    ends: [Station; 2],
}

impl<M> StationPair<M> {
    /// Maps the stations `ends` of `medium` to stations 0 and 1.
    pub const fn new(medium: M, ends: [Station; 2]) -> Self {
        Self { medium, ends }
    }

    /// The index in `ends` of a station of the medium.
    fn end(&self, station: Station) -> Station {
        usize::from(station != self.ends[0])
    }
}

impl<B, M: Medium<B>> Medium<B> for StationPair<M> {
    fn stations(&self) -> usize {
        2
    }

    fn push(&mut self, now: Time, from: Station, to: Station, packet: Packet<B>) {
        self.medium
            .push(now, self.ends[from], self.ends[to], packet);
    }

    fn pop(&mut self, now: Time) -> Option<Carried<B>> {
        let carried = self.medium.pop(now)?;
        Some(Carried {
            from: self.end(carried.from),
            to: self.end(carried.to),
            exit: carried.exit,
        })
    }

    fn next_event(&self) -> Option<Time> {
        self.medium.next_event()
    }

    fn queued_bytes(&self, from: Station) -> u64 {
        self.medium.queued_bytes(self.ends[from])
    }

    fn total_queued_bytes(&self) -> u64 {
        self.medium.total_queued_bytes()
    }
}
