//! Packets of one station for one next hop.

use std::collections::VecDeque;

use super::aggregate::{Limits, Ppdu};
use super::block_ack::{Reorder, WINDOW};
use super::entry::Entry;
use super::errors::Channel;
use super::frame;

/// Packets that come out of a pipe.
#[derive(Debug)]
pub(super) struct Outbox<B> {
    /// They are at the next hop.
    pub(super) arrived: Vec<Entry<B>>,
    /// They are lost.
    pub(super) lost: Vec<Entry<B>>,
}

impl<B> Default for Outbox<B> {
    fn default() -> Self {
        Self {
            arrived: Vec::new(),
            lost: Vec::new(),
        }
    }
}

/// What became of a PPDU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settled {
    /// The receiver understood some of it, and answers.
    pub(super) heard: bool,
    /// Packets that left the sender.
    pub(super) packets: usize,
    /// Bytes that left the sender.
    pub(super) bytes: u64,
}

impl Settled {
    fn left<B>(&mut self, entry: &Entry<B>) {
        self.packets += 1;
        self.bytes += u64::from(entry.packet.size);
    }
}

/// The queue, the air and the receiver's buffer between two neighbors, one way.
#[derive(Debug)]
pub(super) struct Pipe<B> {
    /// First what has a sequence number, then what has none.
    entries: VecDeque<Entry<B>>,
    /// Entries with a sequence number. All of them are in the PPDU that is under way, or go into the next: what was
    /// allowed once is allowed again.
    numbered: usize,
    /// The sequence number of the next MPDU.
    next_seq: u64,
    /// Kept for its memory: what failed in a PPDU.
    failed: Vec<Entry<B>>,
    channel: Channel,
    pub(super) reorder: Reorder<B>,
}

impl<B> Pipe<B> {
    /// `timeout` is that of [`Reorder`].
    pub(super) fn new(channel: Channel, timeout: Option<u64>) -> Self {
        Self {
            entries: VecDeque::new(),
            numbered: 0,
            next_seq: 0,
            failed: Vec::new(),
            channel,
            reorder: Reorder::new(timeout),
        }
    }

    /// Whether nothing is to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Another packet to send.
    pub(super) fn push(&mut self, entry: Entry<B>) {
        self.entries.push_back(entry);
    }

    /// Puts a PPDU together: what failed before, and as much behind it as is allowed; `alone` if only one packet was
    /// there when the PPDU was made.
    pub(super) fn fill(&mut self, limits: Limits, alone: bool) -> Ppdu {
        let mut ppdu = Ppdu::new(limits);
        let retried = self.numbered;
        let oldest = self.entries.front().filter(|_| retried > 0);
        let window_end = oldest.map_or(self.next_seq, |entry| entry.seq) + WINDOW;
        let mut seq = None;
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if index < retried {
                if seq == Some(entry.seq) {
                    ppdu.join(entry.packet.size);
                } else {
                    ppdu.begin(entry.packet.size);
                    seq = Some(entry.seq);
                }
                continue;
            }
            if alone && index > 0 {
                break;
            }
            // An MPDU that failed keeps its packets, and gets no more.
            let open = seq.filter(|_| index > retried);
            entry.seq = match open {
                Some(seq) if ppdu.join(entry.packet.size) => seq,
                _ if self.next_seq < window_end && ppdu.begin(entry.packet.size) => {
                    self.next_seq += 1;
                    self.next_seq - 1
                }
                _ => break,
            };
            seq = Some(entry.seq);
            self.numbered = index + 1;
        }
        ppdu
    }

    /// The PPDU ended at `now`, and nobody else spoke.
    pub(super) fn settle(&mut self, now: u64, retry_limit: u32, outbox: &mut Outbox<B>) -> Settled {
        self.channel.step();
        let mut settled = Settled::default();
        let mut before = None;
        let mut fails = false;
        while let Some(seq) = self.oldest_numbered() {
            if before != Some(seq) {
                self.reorder.release(&mut outbox.arrived);
                let bytes = if self.channel.minds_size() {
                    self.oldest_mpdu_bytes()
                } else {
                    0
                };
                fails = self.channel.fails(bytes);
                before = Some(seq);
            }
            if fails {
                self.fail_oldest(retry_limit, &mut settled, outbox);
            } else if let Some(entry) = self.take_oldest() {
                settled.heard = true;
                settled.left(&entry);
                let Outbox { arrived, lost } = outbox;
                self.reorder.accept(now, entry, arrived, lost);
            }
        }
        self.reorder.release(&mut outbox.arrived);
        self.keep_failed();
        settled
    }

    /// The PPDU ended, and nobody understood it because somebody else spoke.
    pub(super) fn collide(&mut self, retry_limit: u32, outbox: &mut Outbox<B>) -> Settled {
        let mut settled = Settled::default();
        while self.numbered > 0 {
            self.fail_oldest(retry_limit, &mut settled, outbox);
        }
        self.keep_failed();
        settled
    }

    fn oldest_numbered(&self) -> Option<u64> {
        let entry = self.entries.front().filter(|_| self.numbered > 0)?;
        Some(entry.seq)
    }

    /// Bytes of the oldest MPDU.
    fn oldest_mpdu_bytes(&self) -> u32 {
        let Some(first) = self.entries.front() else {
            return 0;
        };
        let mut sizes = self
            .entries
            .iter()
            .take(self.numbered)
            .take_while(|entry| entry.seq == first.seq)
            .map(|entry| entry.packet.size);
        let single = frame::mpdu(sizes.next().unwrap_or(0));
        sizes
            .fold(None, |amsdu, size| {
                let before = amsdu.unwrap_or_else(|| frame::amsdu(0, first.packet.size));
                Some(frame::amsdu(before, size))
            })
            .map_or(single, frame::mpdu_of_amsdu)
    }

    fn take_oldest(&mut self) -> Option<Entry<B>> {
        self.numbered -= 1;
        self.entries.pop_front()
    }

    fn fail_oldest(&mut self, retry_limit: u32, settled: &mut Settled, outbox: &mut Outbox<B>) {
        let Some(mut entry) = self.take_oldest() else {
            return;
        };
        entry.tries += 1;
        if entry.tries > retry_limit {
            settled.left(&entry);
            outbox.lost.push(entry);
        } else {
            self.failed.push(entry);
        }
    }

    /// What failed is the oldest again.
    fn keep_failed(&mut self) {
        self.numbered = self.failed.len();
        while let Some(entry) = self.failed.pop() {
            self.entries.push_front(entry);
        }
    }
}

#[cfg(test)]
mod tests;
