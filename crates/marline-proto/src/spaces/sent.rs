//! Packets that were sent and not yet settled.

use std::collections::{VecDeque, vec_deque};
use std::ops::RangeInclusive;

use crate::buffers::RangeSet;
use crate::samples::RateSnapshot;
use crate::time::Instant;

/// What is remembered of a sent packet (RFC 9002, appendix A.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) sent_at: Instant,
    /// Bytes on the wire, without UDP and IP headers.
    pub(crate) size: u16,
    pub(crate) ack_eliciting: bool,
    /// Whether it counts towards bytes in flight.
    pub(crate) in_flight: bool,
    /// Whether its datagram was marked ECT.
    pub(crate) ecn: bool,
    /// Whether it only probes for a larger datagram size (RFC 9000, section 14.4).
    pub(crate) mtu_probe: bool,
    /// Which of the path's 4-tuples carried it; losses on an abandoned one say nothing about the next.
    pub(crate) tuple: u32,
    /// Delivery counters at the time of sending.
    pub(crate) rate: RateSnapshot,
}

impl SentPacket {
    /// Bytes that it counts for while it is in flight.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        match self.in_flight {
            true => self.size.into(),
            false => 0,
        }
    }
}

/// A packet whose fate is known now.
#[derive(Debug)]
pub(crate) struct SettledPacket<'a, T> {
    pub(crate) number: u64,
    pub(crate) packet: &'a SentPacket,
    pub(crate) fate: Fate,
    /// Of a lost packet whether one was acknowledged that was sent between it and the one declared lost just
    /// before it.
    pub(crate) acked_between: bool,
    /// The tokens of its frames; none if they were handed back before.
    pub(crate) tokens: vec_deque::Iter<'a, T>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was acknowledged.
    Acked,
    /// It was acknowledged after it had been declared lost: the loss was spurious.
    AckedAfterLoss,
    /// It is declared lost.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Never sent: acknowledging it proves that the peer acknowledges blindly.
    Skipped,
    Outstanding,
    Acked,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    packet: SentPacket,
    state: State,
    /// Whether its tokens were handed back while it was outstanding.
    returned: bool,
    /// Whether a copy of what it carries was made, or need not be.
    passed: bool,
    /// Position of its first token, counted from the first token ever.
    tokens_from: u64,
    tokens: u16,
}

impl Slot {
    fn may_be_copied(&self) -> bool {
        self.state == State::Outstanding
            && self.packet.ack_eliciting
            && !self.returned
            && !self.passed
    }
}

/// Where to look for packets to copy, so that none is looked at over and over.
#[derive(Clone, Copy, Debug, Default)]
struct CopyCursor {
    /// There is none before this number.
    from: u64,
    /// Nor is there from this number on, as long as `next` is the next one.
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
/// Packets and tokens each stand in one queue, in the order of sending: in steady state nothing is
/// allocated, and a packet is found by its distance from the front.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    /// Number of the front slot.
    first: u64,
    slots: VecDeque<Slot>,
    tokens: VecDeque<T>,
    /// Tokens popped off the front so far.
    tokens_popped: u64,
    /// Tokens that belong to slots; those behind them belong to the packet being built.
    tokens_committed: u64,
    largest_acked: Option<u64>,
    /// Acknowledged numbers from `first` on: an ACK frame repeats most of what earlier ones said.
    acked: RangeSet,
    ack_eliciting_in_flight: u64,
    /// Outstanding packets that do not ask to be acknowledged.
    silent_outstanding: u64,
    copies: CopyCursor,
}

impl<T> Sent<T> {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            slots: VecDeque::new(),
            tokens: VecDeque::new(),
            tokens_popped: 0,
            tokens_committed: 0,
            largest_acked: None,
            acked: RangeSet::default(),
            ack_eliciting_in_flight: 0,
            silent_outstanding: 0,
            copies: CopyCursor::default(),
        }
    }

    /// The number that the next packet takes.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Packets remembered, settled or not.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
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

    /// When the oldest packet left that waits for an answer: it is ack-eliciting and newer than all that
    /// were acknowledged.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        if self.ack_eliciting_in_flight == 0 {
            return None;
        }
        let next = self.largest_acked.map_or(self.first, |acked| acked + 1);
        let newer = self
            .slots
            .iter()
            .skip(next.saturating_sub(self.first) as usize);
        let mut waiting = newer.filter(|slot| {
            let packet = &slot.packet;
            slot.state == State::Outstanding && packet.ack_eliciting && !packet.mtu_probe
        });
        waiting.next().map(|slot| slot.packet.sent_at)
    }

    /// Outstanding packets that do not ask to be acknowledged.
    pub(crate) fn silent_outstanding(&self) -> u64 {
        self.silent_outstanding
    }

    /// Leaves out the next number (RFC 9000, section 21.4).
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
        };
        self.push(packet, State::Skipped);
    }

    /// Adds a ticket to the packet being built.
    pub(crate) fn push_token(&mut self, token: T) {
        self.tokens.push_back(token);
    }

    /// The packet being built was sent under [`Self::next_number`]; returns that number.
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
        self.slots.push_back(Slot {
            packet,
            state,
            returned: false,
            passed: false,
            tokens_from,
            tokens,
        });
    }

    /// Settles every outstanding or lost packet with a number in `range`, in ascending order.
    ///
    /// # Errors
    ///
    /// [`BadAck`] if a number in the range was never used; packets before it are settled.
    pub(crate) fn on_acked(
        &mut self,
        range: RangeInclusive<u64>,
        mut visit: impl FnMut(SettledPacket<'_, T>),
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
            let slot = &mut self.slots[(number - self.first) as usize];
            let fate = match slot.state {
                State::Skipped => return Err(BadAck(number)),
                State::Acked => continue,
                State::Outstanding => Fate::Acked,
                State::Lost => Fate::AckedAfterLoss,
            };
            slot.state = State::Acked;
            let packet = slot.packet;
            if fate == Fate::Acked && packet.ack_eliciting && packet.in_flight {
                self.ack_eliciting_in_flight -= 1;
            }
            if fate == Fate::Acked {
                self.silent_outstanding -= u64::from(!packet.ack_eliciting);
            }
            let from = (slot.tokens_from - self.tokens_popped) as usize;
            let until = from + usize::from(slot.tokens);
            visit(SettledPacket {
                number,
                packet: &packet,
                fate,
                acked_between: false,
                tokens: self.tokens.range(from..until),
            });
        }
        self.acked.insert(range);
        Ok(())
    }

    /// Declares outstanding packets below `below` lost, from the oldest, as long as `judge` says so.
    pub(crate) fn lose_while(
        &mut self,
        below: u64,
        mut judge: impl FnMut(u64, &SentPacket) -> bool,
        mut visit: impl FnMut(SettledPacket<'_, T>),
    ) {
        let count = below
            .saturating_sub(self.first)
            .min(self.slots.len() as u64) as usize;
        let mut acked_between = false;
        for index in 0..count {
            let slot = &mut self.slots[index];
            acked_between |= slot.state == State::Acked;
            if slot.state != State::Outstanding {
                continue;
            }
            let number = self.first + index as u64;
            let packet = slot.packet;
            if !judge(number, &packet) {
                break;
            }
            slot.state = State::Lost;
            if packet.ack_eliciting && packet.in_flight {
                self.ack_eliciting_in_flight -= 1;
            }
            self.silent_outstanding -= u64::from(!packet.ack_eliciting);
            let from = (slot.tokens_from - self.tokens_popped) as usize;
            let until = match slot.returned {
                true => from,
                false => from + usize::from(slot.tokens),
            };
            visit(SettledPacket {
                number,
                packet: &packet,
                fate: Fate::Lost,
                acked_between: std::mem::take(&mut acked_between),
                tokens: self.tokens.range(from..until),
            });
        }
    }

    /// Hands back the tokens of all outstanding packets, once: they go another way, and what becomes of
    /// the packets still counts for the path, and if they arrive, for the rooms.
    pub(crate) fn return_outstanding(&mut self, mut token: impl FnMut(&T)) {
        let outstanding = |slot: &&mut Slot| slot.state == State::Outstanding && !slot.returned;
        for slot in self.slots.iter_mut().filter(outstanding) {
            slot.returned = true;
            let from = (slot.tokens_from - self.tokens_popped) as usize;
            self.tokens
                .range(from..from + usize::from(slot.tokens))
                .for_each(&mut token);
        }
    }

    /// The tokens of the oldest `packets` outstanding ack-eliciting packets, for probes to carry again.
    pub(crate) fn oldest_outstanding(&self, packets: usize, mut token: impl FnMut(&T)) {
        let oldest = self
            .slots
            .iter()
            .filter(|slot| slot.state == State::Outstanding && slot.packet.ack_eliciting)
            .take(packets);
        for slot in oldest {
            let from = (slot.tokens_from - self.tokens_popped) as usize;
            self.tokens
                .range(from..from + usize::from(slot.tokens))
                .for_each(&mut token);
        }
    }

    /// The oldest outstanding ack-eliciting packet that was not [passed](Self::pass) and whose tokens were
    /// not handed back.
    pub(crate) fn oldest_to_copy(&mut self) -> Option<Original> {
        let from = (self.copies.from.max(self.first) - self.first) as usize;
        let found = self.slots.range(from..).position(Slot::may_be_copied);
        let index = found.map_or(self.slots.len(), |skipped| from + skipped);
        self.copies.from = self.first + index as u64;
        self.original(index)
    }

    /// The latest of those packets.
    pub(crate) fn latest_to_copy(&mut self) -> Option<Original> {
        let next = self.next_number();
        if self.copies.next != next {
            (self.copies.next, self.copies.until) = (next, next);
        }
        if !self.has_ack_eliciting_in_flight() {
            return None;
        }
        let until = (self.copies.until.max(self.first) - self.first) as usize;
        let found = self.slots.range(..until).rposition(Slot::may_be_copied);
        self.copies.until = self.first + found.map_or(0, |index| index as u64 + 1);
        self.original(found?)
    }

    fn original(&self, index: usize) -> Option<Original> {
        self.slots.get(index).map(|slot| Original {
            number: self.first + index as u64,
            sent_at: slot.packet.sent_at,
        })
    }

    /// The tokens of a packet that is remembered.
    pub(crate) fn tokens_of(&self, number: u64) -> impl Iterator<Item = &T> {
        let index = number.checked_sub(self.first);
        let slot = index.and_then(|index| self.slots.get(index as usize));
        let tokens = slot.map_or(0..0, |slot| {
            let from = (slot.tokens_from - self.tokens_popped) as usize;
            from..from + usize::from(slot.tokens)
        });
        self.tokens.range(tokens)
    }

    /// A packet needs no copy, or has one.
    pub(crate) fn pass(&mut self, number: u64) {
        let index = number.checked_sub(self.first);
        if let Some(slot) = index.and_then(|index| self.slots.get_mut(index as usize)) {
            slot.passed = true;
        }
    }

    /// Forgets settled packets at the front; lost ones only when they were sent before `horizon`, so
    /// that a late acknowledgement can still reveal a spurious loss.
    pub(crate) fn forget_settled(&mut self, horizon: Instant) {
        let first = self.first;
        while let Some(front) = self.slots.front() {
            match front.state {
                State::Acked => {}
                State::Lost if front.packet.sent_at < horizon => {}
                State::Skipped if self.largest_acked.is_some_and(|acked| acked > self.first) => {}
                State::Skipped | State::Lost | State::Outstanding => break,
            }
            let settled = front.tokens_from + u64::from(front.tokens);
            self.tokens.drain(..(settled - self.tokens_popped) as usize);
            self.tokens_popped = settled;
            self.slots.pop_front();
            self.first += 1;
        }
        if self.first > first {
            self.acked.remove(0..self.first);
        }
        if self.slots.is_empty() && self.slots.capacity() > crate::limits::IDLE_QUEUE_CAPACITY {
            self.slots.shrink_to(crate::limits::IDLE_QUEUE_CAPACITY);
            self.tokens.shrink_to(crate::limits::IDLE_QUEUE_CAPACITY);
        }
    }

    /// Forgets every packet, neither acknowledged nor lost; visits those still outstanding.
    pub(crate) fn discard(&mut self, mut visit: impl FnMut(&SentPacket)) {
        for slot in self
            .slots
            .iter()
            .filter(|slot| slot.state == State::Outstanding)
        {
            visit(&slot.packet);
        }
        self.first = self.next_number();
        self.tokens_popped = self.tokens_committed;
        self.tokens.clear();
        self.slots.clear();
        self.acked.clear();
        self.ack_eliciting_in_flight = 0;
        self.silent_outstanding = 0;
    }
}

#[cfg(test)]
mod tests;
