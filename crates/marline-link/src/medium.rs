//! Among stations.

use crate::{Exit, Link, Packet, Time};

/// Which station of a medium, from 0.
pub type Station = usize;

/// Carries packets among stations; the same contract as [`Link`].
pub trait Medium<B>: Send {
    /// How many stations there are.
    fn stations(&self) -> usize;

    /// A packet arrives at `from`, to be carried to `to`; both are below
    /// [`stations`](Self::stations) and differ.
    fn push(&mut self, now: Time, from: Station, to: Station, packet: Packet<B>);

    /// The next packet that arrived, or was dropped, by `now`; in the order of their times.
    fn pop(&mut self, now: Time) -> Option<Carried<B>>;

    /// When [`pop`](Self::pop) has to be called, if no packet comes before.
    fn next_event(&self) -> Option<Time>;

    /// Bytes that wait at `from` for their turn.
    fn queued_bytes(&self, from: Station) -> u64;
}

/// What became of a packet on a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried<B> {
    /// The station it came from.
    pub from: Station,
    /// The station it went to.
    pub to: Station,
    /// What became of it.
    pub exit: Exit<B>,
}

/// Two links, there and back, between station 0 and station 1.
pub struct Duplex<B> {
    /// From station 0 to 1, and from 1 to 0.
    ways: [Box<dyn Link<B>>; 2],
}

impl<B> Duplex<B> {
    /// `there` leads from station 0 to station 1, `back` the other way.
    pub fn new(there: Box<dyn Link<B>>, back: Box<dyn Link<B>>) -> Self {
        Self {
            ways: [there, back],
        }
    }
}

impl<B> Medium<B> for Duplex<B> {
    fn stations(&self) -> usize {
        2
    }

    fn push(&mut self, now: Time, from: Station, _to: Station, packet: Packet<B>) {
        self.ways[from].push(now, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Carried<B>> {
        // Event by event, the way whose event is due first before the other: an event need not be an exit,
        // and what a late caller would get from one way may be later than what the other has.
        loop {
            let [there, back] = &self.ways;
            let due = [there.next_event(), back.next_event()].map(|due| due.unwrap_or(Time::MAX));
            let from = usize::from(due[1] < due[0]);
            let at = due[from];
            if at > now || at == Time::MAX {
                return None;
            }
            if let Some(exit) = self.ways[from].pop(at) {
                return Some(Carried {
                    from,
                    to: 1 - from,
                    exit,
                });
            }
            debug_assert!(
                self.ways[from].next_event().is_none_or(|next| next > at),
                "way {from} stands still"
            );
        }
    }

    fn next_event(&self) -> Option<Time> {
        let [there, back] = &self.ways;
        [there.next_event(), back.next_event()]
            .into_iter()
            .flatten()
            .min()
    }

    fn queued_bytes(&self, from: Station) -> u64 {
        self.ways[from].queued_bytes()
    }
}
