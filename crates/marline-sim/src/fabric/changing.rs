//! A medium that is replaced while it carries packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use marline_link::{Carried, Medium, Packet, Station, Time};

/// The state, from 0, of the changing media that share it. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<AtomicUsize>);

impl Switch {
    /// Sets the state, which never decreases.
    pub fn advance(&self, state: usize) {
        self.0.fetch_max(state, Ordering::Relaxed);
    }

    /// The state.
    pub fn state(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Several media, one of which accepts new packets. Packets stay on the medium that they entered, so that a
/// change loses none.
pub struct Changing<B> {
    /// Media by the state from which they accept packets.
    media: Vec<Phase<B>>,
    switch: Switch,
}

/// A medium, and the state from which it accepts packets.
struct Phase<B> {
    since: usize,
    medium: Box<dyn Medium<B>>,
}

impl<B> Changing<B> {
    /// Starts with `first`.
    pub fn new(first: Box<dyn Medium<B>>, switch: Switch) -> Self {
        Self {
            media: vec![Phase {
                since: 0,
                medium: first,
            }],
            switch,
        }
    }

    /// Replaces the medium by `medium` in `state`, which must be higher than earlier ones. Both must have the
    /// same number of stations.
    #[must_use]
    pub fn then(mut self, state: usize, medium: Box<dyn Medium<B>>) -> Self {
        self.media.push(Phase {
            since: state,
            medium,
        });
        self
    }
}

impl<B> Medium<B> for Changing<B> {
    fn stations(&self) -> usize {
        self.media
            .first()
            .map_or(0, |phase| phase.medium.stations())
    }

    fn push(&mut self, now: Time, from: Station, to: Station, packet: Packet<B>) {
        let state = self.switch.state();
        let mut known = self.media.iter_mut().rev();
        if let Some(phase) = known.find(|phase| phase.since <= state) {
            phase.medium.push(now, from, to, packet);
        }
    }

    fn pop(&mut self, now: Time) -> Option<Carried<B>> {
        // Processes the events of all media in order of time.
        loop {
            let due = |medium: &dyn Medium<B>| medium.next_event().unwrap_or(Time::MAX);
            let all = self.media.iter_mut().map(|phase| &mut phase.medium);
            let medium = all.min_by_key(|medium| due(&***medium))?;
            let at = due(&**medium);
            if at > now || at == Time::MAX {
                return None;
            }
            if let Some(carried) = medium.pop(at) {
                return Some(carried);
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        let media = self.media.iter();
        media.filter_map(|phase| phase.medium.next_event()).min()
    }

    fn queued_bytes(&self, from: Station) -> u64 {
        let media = self.media.iter();
        media.map(|phase| phase.medium.queued_bytes(from)).sum()
    }

    fn total_queued_bytes(&self) -> u64 {
        let media = self.media.iter();
        media.map(|phase| phase.medium.total_queued_bytes()).sum()
    }
}

#[cfg(test)]
mod tests;
