//! Two stations of a medium that has more.

use crate::{Carried, Medium, Packet, Station, Time};

/// A medium as the two stations at its ends see it: others may carry packets, but none of their own.
pub struct Ends<M> {
    medium: M,
    ends: [Station; 2],
}

impl<M> Ends<M> {
    /// `ends` become station 0 and station 1.
    pub const fn new(medium: M, ends: [Station; 2]) -> Self {
        Self { medium, ends }
    }

    /// Which end a station of the medium is.
    fn end(&self, station: Station) -> Station {
        usize::from(station != self.ends[0])
    }
}

impl<B, M: Medium<B>> Medium<B> for Ends<M> {
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
}
