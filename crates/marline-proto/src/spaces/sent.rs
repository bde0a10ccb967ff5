//! Sent packets until they are acknowledged or lost.

use std::collections::{VecDeque, vec_deque};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use crate::buffers::RangeSet;
use crate::samples::RateSnapshot;
use crate::time::Instant;

/// Metadata of a sent packet (RFC 9002, appendix A.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) sent_at: Instant,
    /// Size without UDP and IP headers, in bytes.
    pub(crate) size: u16,
    pub(crate) ack_eliciting: bool,
    /// Whether it counts towards bytes in flight.
    pub(crate) in_flight: bool,
    /// Whether its datagram was marked with ECT.
    pub(crate) ecn: bool,
    /// Whether it is a PMTU probe (RFC 9000, section 14.4).
    pub(crate) mtu_probe: bool,
    /// Generation of the 4-tuple on which it was sent.
    pub(crate) tuple: u32,
    /// Delivery counters at the time of sending.
    pub(crate) rate: RateSnapshot,
    /// Loss sample that counted it as a sign of congestion; `None` unless it was lost and counted.
    pub(crate) counted_by: Option<LossSampleId>,
}

/// Identifies a loss sample of a path, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LossSampleId(NonZeroU32);

impl Default for LossSampleId {
    /// The first ID.
    fn default() -> Self {
        Self(NonZeroU32::MIN)
    }
}

impl LossSampleId {
    /// The next ID. Samples beyond 2^32 share one ID.
    pub(crate) fn following(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl SentPacket {
    /// Bytes for which it counts while in flight.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        match self.in_flight {
            true => self.size.into(),
            false => 0,
        }
    }
}

/// A packet that is acknowledged or declared lost.
#[derive(Debug)]
pub(crate) struct ResolvedPacket<'a, T> {
    pub(crate) number: u64,
    pub(crate) packet: &'a SentPacket,
    pub(crate) outcome: PacketOutcome,
    /// For a lost packet: whether a packet sent between it and the previous lost one was acknowledged;
    /// without packets between them, whether the one before it was.
    pub(crate) acked_between: bool,
    /// Tokens of its frames; empty if they were returned before.
    pub(crate) tokens: vec_deque::Iter<'a, T>,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    /// Acknowledged.
    Acked,
    /// Acknowledged after it had been declared lost: a spurious loss.
    AckedAfterLoss,
    /// Declared lost.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A skipped number: acknowledging it is an error of the peer (RFC 9000, section 21.4).
    Skipped,
    Outstanding,
    Acked,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: SentPacket,
    state: State,
    /// Whether its tokens were returned while it was outstanding.
    returned: bool,
    /// Whether its content was copied, or needs no copy.
    passed: bool,
    /// Position of its first token, counted from the first token ever pushed.
    tokens_from: u64,
    tokens: u16,
}

impl Entry {
    fn may_be_copied(&self) -> bool {
        self.state == State::Outstanding
            && self.packet.ack_eliciting
            && !self.returned
            && !self.passed
    }
}

/// Range of packets to search for copies, so that each is examined once.
#[derive(Clone, Copy, Debug, Default)]
struct CopyCursor {
    /// No packet before this number is to be copied.
    from: u64,
    /// Nor any from this number on, as long as `next` is the next number.
    until: u64,
    next: u64,
}

/// A packet whose contents may be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Original {
    pub(crate) number: u64,
    pub(crate) sent_at: Instant,
}

/// The peer acknowledged a packet number that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadAck(pub(crate) u64);

/// Sent packets by number, with the tokens of their frames.
///
/// Packets and tokens are each in one queue, in sending order: in steady state nothing is allocated, and the
/// index of a packet follows from its number.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    /// Number of the front entry.
    first: u64,
    entries: VecDeque<Entry>,
    tokens: VecDeque<T>,
    /// Number of tokens removed from the front.
    tokens_popped: u64,
    /// Number of tokens of entries; later ones belong to the packet being built.
    tokens_committed: u64,
    largest_acked: Option<u64>,
    /// Whether the newest packet below `first` was acknowledged when it was removed.
    acked_before: bool,
    /// Acknowledged numbers from `first` on, because ACK frames repeat most ranges of earlier ones.
    acked: RangeSet,
    ack_eliciting_in_flight: u64,
    /// Outstanding packets that are not ack-eliciting.
    silent_outstanding: u64,
    copies: CopyCursor,
    /// Number below which no packet is outstanding, so that loss detection does not examine them again.
    outstanding_from: u64,
}

impl<T> Sent<T> {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            entries: VecDeque::new(),
            tokens: VecDeque::new(),
            tokens_popped: 0,
            tokens_committed: 0,
            largest_acked: None,
            acked_before: false,
            acked: RangeSet::default(),
            ack_eliciting_in_flight: 0,
            silent_outstanding: 0,
            copies: CopyCursor::default(),
            outstanding_from: 0,
        }
    }

    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Number of stored packets, resolved or not.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    pub(crate) fn has_ack_eliciting_in_flight(&self) -> bool {
        self.ack_eliciting_in_flight > 0
    }

    /// Ack-eliciting packets that are neither acknowledged nor lost.
    pub(crate) fn ack_eliciting_in_flight(&self) -> u64 {
        self.ack_eliciting_in_flight
    }

    /// Send time of the oldest ack-eliciting packet that is newer than all acknowledged ones.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        if self.ack_eliciting_in_flight == 0 {
            return None;
        }
        let next = self.largest_acked.map_or(self.first, |acked| acked + 1);
        let newer = self
            .entries
            .iter()
            .skip(next.saturating_sub(self.first) as usize);
        let mut waiting = newer.filter(|entry| {
            let packet = &entry.packet;
            entry.state == State::Outstanding && packet.ack_eliciting && !packet.mtu_probe
        });
        waiting.next().map(|entry| entry.packet.sent_at)
    }

    /// Outstanding packets that are not ack-eliciting.
    pub(crate) fn silent_outstanding(&self) -> u64 {
        self.silent_outstanding
    }

    /// Skips the next packet number (RFC 9000, section 21.4).
    pub(crate) fn skip(&mut self, now: Instant) {
        let packet = SentPacket {
            sent_at: now,
            size: 0,
            ack_eliciting: false,
            in_flight: false,
            ecn: false,
            mtu_probe: false,
            tuple: 0,
            rate: RateSnapshot::default(),
            counted_by: None,
        };
        self.push(packet, State::Skipped);
    }

    /// Adds a token to the packet being built.
    pub(crate) fn push_token(&mut self, token: T) {
        self.tokens.push_back(token);
    }

    /// Records the packet being built as sent with [`Self::next_number`]; returns that number.
    pub(crate) fn commit(&mut self, packet: SentPacket) -> u64 {
        let number = self.next_number();
        if packet.ack_eliciting && packet.in_flight {
            self.ack_eliciting_in_flight += 1;
        }
        self.silent_outstanding += u64::from(!packet.ack_eliciting);
        self.push(packet, State::Outstanding);
        number
    }

    fn push(&mut self, packet: SentPacket, state: State) {
        let tokens_from = self.tokens_committed;
        self.tokens_committed = self.tokens_popped + self.tokens.len() as u64;
        let tokens = (self.tokens_committed - tokens_from) as u16;
        self.entries.push_back(Entry {
            packet,
            state,
            returned: false,
            passed: false,
            tokens_from,
            tokens,
        });
    }

    /// Resolves every outstanding or lost packet with a number in `range`, in ascending order.
    ///
    /// # Errors
    ///
    /// [`BadAck`] if a number in the range was never sent; packets before it are resolved.
    pub(crate) fn on_acked(
        &mut self,
        range: RangeInclusive<u64>,
        mut visit: impl FnMut(ResolvedPacket<'_, T>),
    ) -> Result<(), BadAck> {
        let end = *range.end();
        if end >= self.next_number() {
            return Err(BadAck(end));
        }
        self.largest_acked = self.largest_acked.max(Some(end));
        if end < self.first {
            return Ok(());
        }
        let range = (*range.start()).max(self.first)..end + 1;
        for number in self.acked.gaps(range.clone()).flatten() {
            let entry = &mut self.entries[(number - self.first) as usize];
            let outcome = match entry.state {
                State::Skipped => return Err(BadAck(number)),
                State::Acked => continue,
                State::Outstanding => PacketOutcome::Acked,
                State::Lost => PacketOutcome::AckedAfterLoss,
            };
            entry.state = State::Acked;
            let packet = entry.packet;
            if outcome == PacketOutcome::Acked && packet.ack_eliciting && packet.in_flight {
                self.ack_eliciting_in_flight -= 1;
            }
            if outcome == PacketOutcome::Acked {
                self.silent_outstanding -= u64::from(!packet.ack_eliciting);
            }
            let from = (entry.tokens_from - self.tokens_popped) as usize;
            let until = from + usize::from(entry.tokens);
            visit(ResolvedPacket {
                number,
                packet: &packet,
                outcome,
                acked_between: false,
                tokens: self.tokens.range(from..until),
            });
        }
        self.acked.insert(range);
        Ok(())
    }

    /// Declares outstanding packets below `below` lost, from the oldest, while `judge` returns a cause. `visit` returns
    /// the loss sample that counts the packet.
    pub(crate) fn lose_while<C>(
        &mut self,
        below: u64,
        mut judge: impl FnMut(u64, &SentPacket) -> Option<C>,
        mut visit: impl FnMut(ResolvedPacket<'_, T>, C) -> Option<LossSampleId>,
    ) {
        let until = below.min(self.next_number());
        let mut oldest = self.outstanding_from.max(self.first);
        while oldest < until
            && self.entries[(oldest - self.first) as usize].state != State::Outstanding
        {
            oldest += 1;
        }
        self.outstanding_from = oldest;
        let mut acked_between = self.is_acked_before(oldest);
        for index in (oldest - self.first) as usize..until.saturating_sub(self.first) as usize {
            let entry = &mut self.entries[index];
            acked_between |= entry.state == State::Acked;
            if entry.state != State::Outstanding {
                continue;
            }
            let number = self.first + index as u64;
            let packet = entry.packet;
            let Some(cause) = judge(number, &packet) else {
                break;
            };
            entry.state = State::Lost;
            if packet.ack_eliciting && packet.in_flight {
                self.ack_eliciting_in_flight -= 1;
            }
            self.silent_outstanding -= u64::from(!packet.ack_eliciting);
            let from = (entry.tokens_from - self.tokens_popped) as usize;
            let until = match entry.returned {
                true => from,
                false => from + usize::from(entry.tokens),
            };
            let lost = ResolvedPacket {
                number,
                packet: &packet,
                outcome: PacketOutcome::Lost,
                acked_between: std::mem::take(&mut acked_between),
                tokens: self.tokens.range(from..until),
            };
            entry.packet.counted_by = visit(lost, cause);
        }
    }

    /// Whether the newest resolved packet below `number` was acknowledged, not lost.
    fn is_acked_before(&self, number: u64) -> bool {
        let resolved = self.entries.range(..(number - self.first) as usize);
        let mut states = resolved.rev().map(|entry| entry.state);
        let newest = states.find(|state| matches!(state, State::Acked | State::Lost));
        newest.map_or(self.acked_before, |state| state == State::Acked)
    }

    /// Returns the tokens of all outstanding packets, once, to be sent on another path. Acknowledgments and losses of
    /// the packets still count for the path, and acknowledgments also for the modules that wrote the frames.
    pub(crate) fn return_outstanding(&mut self, mut token: impl FnMut(&T)) {
        let outstanding = |entry: &&mut Entry| entry.state == State::Outstanding && !entry.returned;
        for entry in self.entries.iter_mut().filter(outstanding) {
            entry.returned = true;
            let from = (entry.tokens_from - self.tokens_popped) as usize;
            self.tokens
                .range(from..from + usize::from(entry.tokens))
                .for_each(&mut token);
        }
    }

    /// The tokens of the oldest `packets` outstanding ack-eliciting packets that have any, to be repeated in probes.
    pub(crate) fn oldest_outstanding(&self, packets: usize, mut token: impl FnMut(&T)) {
        let oldest = self
            .entries
            .iter()
            .filter(|entry| entry.state == State::Outstanding && entry.packet.ack_eliciting)
            .filter(|entry| entry.tokens > 0)
            .take(packets);
        for entry in oldest {
            let from = (entry.tokens_from - self.tokens_popped) as usize;
            self.tokens
                .range(from..from + usize::from(entry.tokens))
                .for_each(&mut token);
        }
    }

    /// The tokens of the outstanding ack-eliciting packets sent by `time`; returns whether there are such packets.
    pub(crate) fn outstanding_since(&self, time: Instant, mut token: impl FnMut(&T)) -> bool {
        let mut any = false;
        for entry in &self.entries {
            let is_outstanding = entry.state == State::Outstanding && entry.packet.ack_eliciting;
            if is_outstanding && entry.packet.sent_at <= time {
                any = true;
                let from = (entry.tokens_from - self.tokens_popped) as usize;
                self.tokens
                    .range(from..from + usize::from(entry.tokens))
                    .for_each(&mut token);
            }
        }
        any
    }

    /// The oldest outstanding ack-eliciting packet that was not [passed](Self::pass) and whose tokens were
    /// not returned.
    pub(crate) fn oldest_to_copy(&mut self) -> Option<Original> {
        let from = (self.copies.from.max(self.first) - self.first) as usize;
        let found = self.entries.range(from..).position(Entry::may_be_copied);
        let index = found.map_or(self.entries.len(), |skipped| from + skipped);
        self.copies.from = self.first + index as u64;
        self.original(index)
    }

    /// The newest outstanding ack-eliciting packet that was not [passed](Self::pass) and whose
    /// tokens were not returned.
    pub(crate) fn latest_to_copy(&mut self) -> Option<Original> {
        let next = self.next_number();
        if self.copies.next != next {
            (self.copies.next, self.copies.until) = (next, next);
        }
        if !self.has_ack_eliciting_in_flight() {
            return None;
        }
        let until = (self.copies.until.max(self.first) - self.first) as usize;
        let found = self.entries.range(..until).rposition(Entry::may_be_copied);
        self.copies.until = self.first + found.map_or(0, |index| index as u64 + 1);
        self.original(found?)
    }

    fn original(&self, index: usize) -> Option<Original> {
        self.entries.get(index).map(|entry| Original {
            number: self.first + index as u64,
            sent_at: entry.packet.sent_at,
        })
    }

    /// The tokens of a stored packet.
    pub(crate) fn tokens_of(&self, number: u64) -> impl Iterator<Item = &T> {
        let index = number.checked_sub(self.first);
        let entry = index.and_then(|index| self.entries.get(index as usize));
        let tokens = entry.map_or(0..0, |entry| {
            let from = (entry.tokens_from - self.tokens_popped) as usize;
            from..from + usize::from(entry.tokens)
        });
        self.tokens.range(tokens)
    }

    /// Marks a packet that needs no copy, or has one.
    pub(crate) fn pass(&mut self, number: u64) {
        let index = number.checked_sub(self.first);
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index as usize)) {
            entry.passed = true;
        }
    }

    /// Removes resolved packets at the front; lost ones only if they were sent before `horizon`, so
    /// that a late acknowledgment can still reveal a spurious loss.
    pub(crate) fn forget_resolved(&mut self, horizon: Instant) {
        let first = self.first;
        while let Some(front) = self.entries.front() {
            match front.state {
                State::Acked => self.acked_before = true,
                State::Lost if front.packet.sent_at < horizon => self.acked_before = false,
                State::Skipped if self.largest_acked.is_some_and(|acked| acked > self.first) => {}
                State::Skipped | State::Lost | State::Outstanding => break,
            }
            let end = front.tokens_from + u64::from(front.tokens);
            self.tokens.drain(..(end - self.tokens_popped) as usize);
            self.tokens_popped = end;
            self.entries.pop_front();
            self.first += 1;
        }
        if self.first > first {
            self.acked.remove(0..self.first);
        }
        if self.entries.is_empty() && self.entries.capacity() > crate::limits::IDLE_QUEUE_CAPACITY {
            self.entries.shrink_to(crate::limits::IDLE_QUEUE_CAPACITY);
            self.tokens.shrink_to(crate::limits::IDLE_QUEUE_CAPACITY);
        }
    }

    /// Removes all packets without acknowledging them or declaring them lost; visits outstanding ones.
    pub(crate) fn discard(&mut self, mut visit: impl FnMut(&SentPacket)) {
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.state == State::Outstanding)
        {
            visit(&entry.packet);
        }
        self.first = self.next_number();
        self.tokens_popped = self.tokens_committed;
        self.tokens.clear();
        self.entries.clear();
        self.acked.clear();
        self.acked_before = true;
        self.ack_eliciting_in_flight = 0;
        self.silent_outstanding = 0;
    }
}

#[cfg(test)]
mod tests;
