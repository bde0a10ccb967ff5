//! Receive reordering of a block acknowledgment agreement (IEEE 802.11-2020, 10.25).

use std::collections::VecDeque;

use super::entry::Entry;

/// Size of the sequence number window.
pub(super) const WINDOW: u64 = 64;

/// The reorder buffer of a receiver.
#[derive(Debug)]
pub(super) struct Reorder<B> {
    /// Maximum hold time of a packet, in nanoseconds; `None` disables reordering.
    timeout: Option<u64>,
    /// Next expected sequence number.
    next: u64,
    /// Held packets by sequence number.
    held: VecDeque<Held<B>>,
}

/// A packet in the reorder buffer.
#[derive(Debug)]
struct Held<B> {
    /// Arrival time, in nanoseconds.
    since: u64,
    entry: Entry<B>,
}

impl<B> Reorder<B> {
    /// A buffer that expects sequence number 0 first.
    pub(super) const fn new(timeout: Option<u64>) -> Self {
        Self {
            timeout,
            next: 0,
            held: VecDeque::new(),
        }
    }

    /// Receives `entry` at `now`. Packets in order are appended to `out`, packets whose hold time has
    /// expired to `late`. After the last packet of an MPDU the caller calls
    /// [`release`](Self::release).
    pub(super) fn accept(
        &mut self,
        now: u64,
        entry: Entry<B>,
        out: &mut Vec<Entry<B>>,
        late: &mut Vec<Entry<B>>,
    ) {
        let seq = entry.seq;
        // The packets of an A-MSDU share a sequence number.
        if self.timeout.is_none() || seq == self.next || seq + 1 == self.next {
            self.next = self.next.max(seq + 1);
            out.push(entry);
        } else if seq < self.next {
            late.push(entry);
        } else {
            let place = self.held.partition_point(|held| held.entry.seq <= seq);
            self.held.insert(place, Held { since: now, entry });
            // The sender advances the window only after it has dropped the missing packet.
            self.next = self.next.max((seq + 1).saturating_sub(WINDOW));
        }
    }

    /// Releases packets that are in order now.
    pub(super) fn release(&mut self, out: &mut Vec<Entry<B>>) {
        while self
            .held
            .front()
            .is_some_and(|held| held.entry.seq <= self.next)
        {
            let Some(Held { entry, .. }) = self.held.pop_front() else {
                break;
            };
            self.next = self.next.max(entry.seq + 1);
            out.push(entry);
        }
    }

    /// Time at which the hold time of the oldest packet expires.
    pub(super) fn deadline(&self) -> Option<u64> {
        let oldest = self.held.iter().map(|held| held.since).min()?;
        Some(oldest + self.timeout?)
    }

    /// Releases packets whose hold time has expired at `now`, and all before them.
    pub(super) fn expire(&mut self, now: u64, out: &mut Vec<Entry<B>>) {
        let timeout = self.timeout.unwrap_or(0);
        let overdue = |held: &&Held<B>| held.since + timeout <= now;
        if let Some(last) = self.held.iter().rev().find(overdue) {
            let seq = last.entry.seq;
            while let Some(first) = self.held.front().filter(|held| held.entry.seq <= seq) {
                self.next = first.entry.seq;
                self.release(out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
