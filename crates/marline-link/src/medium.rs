//! The interface of media with several stations.

use crate::{Exit, Link, Packet, Time};

/// Index of a station of a medium, from 0.
pub type Station = usize;

/// Carries packets among stations, with the same contract as [`Link`].
pub trait Medium<B>: Send {
    /// Number of stations.
    fn stations(&self) -> usize;

    /// Handles the arrival of a packet at `from` for `to`; both are below
    /// [`stations`](Self::stations) and must differ.
    fn push(&mut self, now: Time, from: Station, to: Station, packet: Packet<B>);

    /// The next packet that arrived or was dropped by `now`, in time order.
    fn pop(&mut self, now: Time) -> Option<Carried<B>>;

    /// Time of the next call of [`pop`](Self::pop), if no packet arrives earlier.
    fn next_event(&self) -> Option<Time>;

    /// Bytes queued at `from`.
    fn queued_bytes(&self, from: Station) -> u64;

    /// Bytes queued at all stations.
    fn total_queued_bytes(&self) -> u64 {
        let stations = 0..self.stations();
        stations.map(|station| self.queued_bytes(station)).sum()
    }
}

/// A packet that left a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried<B> {
    /// Source station.
    pub from: Station,
    /// Destination station.
    pub to: Station,
    /// Departure time, and whether the packet was dropped.
    pub exit: Exit<B>,
}

/// A pair of links between station 0 and station 1, one per direction.
pub struct Duplex<B> {
    /// Links from station 0 to 1, and from 1 to 0.
    links: [Box<dyn Link<B>>; 2],
}

impl<B> Duplex<B> {
    /// `forward` leads from station 0 to station 1, `reverse` from 1 to 0.
    pub fn new(forward: Box<dyn Link<B>>, reverse: Box<dyn Link<B>>) -> Self {
        Self {
            links: [forward, reverse],
        }
    }
}

impl<B> Medium<B> for Duplex<B> {
    fn stations(&self) -> usize {
        2
    }

    fn push(&mut self, now: Time, from: Station, _to: Station, packet: Packet<B>) {
        self.links[from].push(now, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Carried<B>> {
        // Processes one event at a time, the earlier of both links first: an event need not be an exit,
        // and a late poll of one link could return an exit later than what the other link has.
        loop {
            let [forward, reverse] = &self.links;
            let due =
                [forward.next_event(), reverse.next_event()].map(|due| due.unwrap_or(Time::MAX));
            let from = usize::from(due[1] < due[0]);
            let at = due[from];
            if at > now || at == Time::MAX {
                return None;
            }
            if let Some(exit) = self.links[from].pop(at) {
                return Some(Carried {
                    from,
                    to: 1 - from,
                    exit,
                });
            }
            debug_assert!(
                self.links[from].next_event().is_none_or(|next| next > at),
                "link {from} makes no progress"
            );
        }
    }

    fn next_event(&self) -> Option<Time> {
        let [forward, reverse] = &self.links;
        [forward.next_event(), reverse.next_event()]
            .into_iter()
            .flatten()
            .min()
    }

    fn queued_bytes(&self, from: Station) -> u64 {
        self.links[from].queued_bytes()
    }
}
