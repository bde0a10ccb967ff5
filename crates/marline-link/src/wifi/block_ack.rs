//! The receiver's side of a block acknowledgment agreement (IEEE 802.11-2020, 10.25): packets in their order again.

use std::collections::VecDeque;

use super::entry::Entry;

/// Sequence numbers that may be under way at a time.
pub(super) const WINDOW: u64 = 64;

/// Packets that wait for one before them.
#[derive(Debug)]
pub(super) struct Reorder<B> {
    /// How long a packet waits, in nanoseconds; `None` if none waits.
    timeout: Option<u64>,
    /// The sequence number that is due.
    next: u64,
    /// In the order of sequence numbers, with the time each came, in nanoseconds.
    held: VecDeque<(u64, Entry<B>)>,
}

impl<B> Reorder<B> {
    /// Begins with sequence number 0.
    pub(super) const fn new(timeout: Option<u64>) -> Self {
        Self {
            timeout,
            next: 0,
            held: VecDeque::new(),
        }
    }

    /// `entry` comes at `now`. What is in order goes to `out`, what comes after its time was over to `late`; after
    /// the last packet of an MPDU, [`release`](Self::release) follows.
    pub(super) fn accept(
        &mut self,
        now: u64,
        entry: Entry<B>,
        out: &mut Vec<Entry<B>>,
        late: &mut Vec<Entry<B>>,
    ) {
        let seq = entry.seq;
        // The packets of an A-MSDU share a number.
        if self.timeout.is_none() || seq == self.next || seq + 1 == self.next {
            self.next = self.next.max(seq + 1);
            out.push(entry);
        } else if seq < self.next {
            late.push(entry);
        } else {
            let place = self.held.partition_point(|(_, held)| held.seq <= seq);
            self.held.insert(place, (now, entry));
            // The sender would not go that far had it not given up what is missing.
            self.next = self.next.max((seq + 1).saturating_sub(WINDOW));
        }
    }

    /// Passes on what no longer waits for anything.
    pub(super) fn release(&mut self, out: &mut Vec<Entry<B>>) {
        while self
            .held
            .front()
            .is_some_and(|(_, entry)| entry.seq <= self.next)
        {
            let Some((_, entry)) = self.held.pop_front() else {
                break;
            };
            self.next = self.next.max(entry.seq + 1);
            out.push(entry);
        }
    }

    /// When the packet that waited longest stops waiting.
    pub(super) fn deadline(&self) -> Option<u64> {
        let longest = self.held.iter().map(|&(since, _)| since).min()?;
        Some(longest + self.timeout?)
    }

    /// What waits too long at `now`, and all before it, waits no more.
    pub(super) fn expire(&mut self, now: u64, out: &mut Vec<Entry<B>>) {
        let timeout = self.timeout.unwrap_or(0);
        let overdue = |&&(since, _): &&(u64, Entry<B>)| since + timeout <= now;
        if let Some((_, last)) = self.held.iter().rev().find(overdue) {
            let seq = last.seq;
            while let Some((_, first)) = self.held.front().filter(|(_, first)| first.seq <= seq) {
                self.next = first.seq;
                self.release(out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
