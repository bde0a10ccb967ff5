//! The queue of one station for one next hop.

use std::collections::VecDeque;

use super::aggregate::{Limits, Ppdu};
use super::block_ack::{Reorder, WINDOW};
use super::entry::Entry;
use super::errors::Channel;
use super::frame;

/// Packets that left a hop.
#[derive(Debug)]
pub(super) struct Outbox<B> {
    /// Packets that arrived at the next hop.
    pub(super) arrived: Vec<Entry<B>>,
    /// Lost packets.
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

/// The outcome of a PPDU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TxOutcome {
    /// Whether the receiver decoded at least one MPDU, and acknowledges.
    pub(super) acknowledged: bool,
    /// MPDUs sent, and how many of them the receiver decoded.
    pub(super) mpdus: u32,
    pub(super) received: u32,
    /// Packets that left the sender's queue.
    pub(super) packets: usize,
    /// Bytes that left the sender's queue.
    pub(super) bytes: u64,
}

impl TxOutcome {
    fn record<B>(&mut self, entry: &Entry<B>) {
        self.packets += 1;
        self.bytes += u64::from(entry.packet.size);
    }
}

/// One direction between two neighbors, with the sender's queue, the channel and the receiver's reorder buffer.
#[derive(Debug)]
pub(super) struct Hop<B> {
    /// Packets with a sequence number, followed by those without.
    entries: VecDeque<Entry<B>>,
    /// Number of entries with a sequence number. All of them are in the PPDU in transmission or in the
    /// next one, unless a lower rate leaves less room.
    numbered: usize,
    /// Number of entries in the PPDU in transmission.
    sent: usize,
    /// Sequence number of the next MPDU.
    next_seq: u64,
    /// Packets that failed in a PPDU; reused for its allocation.
    failed: Vec<Entry<B>>,
    pub(super) channel: Channel,
    pub(super) reorder: Reorder<B>,
}

impl<B> Hop<B> {
    /// An empty queue; `timeout` is the hold time of [`Reorder`].
    pub(super) fn new(channel: Channel, timeout: Option<u64>) -> Self {
        Self {
            entries: VecDeque::new(),
            numbered: 0,
            sent: 0,
            next_seq: 0,
            failed: Vec::new(),
            channel,
            reorder: Reorder::new(timeout),
        }
    }

    /// Whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Enqueues a packet.
    pub(super) fn push(&mut self, entry: Entry<B>) {
        self.entries.push_back(entry);
    }

    /// Builds a PPDU from failed packets and as many of the following as permitted; with `alone`, from
    /// one packet, because only one was queued when the PPDU was built.
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
                } else if ppdu.begin(entry.packet.size) {
                    seq = Some(entry.seq);
                } else {
                    // At a lower rate than before, the rest waits for the next PPDU.
                    self.sent = index;
                    return ppdu;
                }
                continue;
            }
            if alone && index > 0 {
                break;
            }
            // A retransmitted MPDU keeps its packets, without additional ones.
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
        self.sent = self.numbered;
        ppdu
    }

    /// Completes a PPDU that ended at `now` without a collision.
    pub(super) fn complete(
        &mut self,
        now: u64,
        retry_limit: u32,
        outbox: &mut Outbox<B>,
    ) -> TxOutcome {
        self.channel.step();
        let mut outcome = TxOutcome::default();
        let mut before = None;
        let mut fails = false;
        while let Some(seq) = self.oldest_sent() {
            if before != Some(seq) {
                outcome.mpdus += 1;
                self.reorder.release(&mut outbox.arrived);
                let bytes = if self.channel.depends_on_size() {
                    self.oldest_mpdu_bytes()
                } else {
                    0
                };
                fails = self.channel.fails(bytes);
                outcome.received += u32::from(!fails);
                before = Some(seq);
            }
            if fails {
                self.fail_oldest(retry_limit, &mut outcome, outbox);
            } else if let Some(entry) = self.take_oldest() {
                outcome.acknowledged = true;
                outcome.record(&entry);
                let Outbox { arrived, lost } = outbox;
                self.reorder.accept(now, entry, arrived, lost);
            }
        }
        self.reorder.release(&mut outbox.arrived);
        self.keep_failed();
        outcome
    }

    /// Completes a PPDU that was lost in a collision.
    pub(super) fn collide(&mut self, retry_limit: u32, outbox: &mut Outbox<B>) -> TxOutcome {
        let mut outcome = TxOutcome {
            mpdus: u32::try_from(self.sent).unwrap_or(u32::MAX),
            ..TxOutcome::default()
        };
        while self.sent > 0 {
            self.fail_oldest(retry_limit, &mut outcome, outbox);
        }
        self.keep_failed();
        outcome
    }

    fn oldest_sent(&self) -> Option<u64> {
        let entry = self.entries.front().filter(|_| self.sent > 0)?;
        Some(entry.seq)
    }

    /// Size of the oldest MPDU in bytes.
    fn oldest_mpdu_bytes(&self) -> u32 {
        let Some(first) = self.entries.front() else {
            return 0;
        };
        let mut sizes = self
            .entries
            .iter()
            .take(self.sent)
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
        self.sent -= 1;
        self.entries.pop_front()
    }

    fn fail_oldest(&mut self, retry_limit: u32, outcome: &mut TxOutcome, outbox: &mut Outbox<B>) {
        let Some(mut entry) = self.take_oldest() else {
            return;
        };
        entry.tries += 1;
        if entry.tries > retry_limit {
            outcome.record(&entry);
            outbox.lost.push(entry);
        } else {
            self.failed.push(entry);
        }
    }

    /// Puts failed packets back at the head of the queue.
    fn keep_failed(&mut self) {
        self.numbered += self.failed.len();
        while let Some(entry) = self.failed.pop() {
            self.entries.push_front(entry);
        }
    }
}

#[cfg(test)]
mod tests;
