//! FQ-CoDel: fair queueing of flows, each queue managed by CoDel (RFC 8290).

use std::collections::VecDeque;

use super::codel::Control;
use super::fifo::{Fifo, Queued};
use super::{CodelConfig, Queue};
use crate::{DropReason, Exit, Packet, Time};

/// The settings of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// Number of queues into which flows are hashed, at least 1.
    pub queues: usize,
    /// Bytes that a flow may send per round, at least 1.
    pub quantum: u32,
    /// Limit of packets in all queues, at least 1.
    pub packets: usize,
    /// The settings of each queue's CoDel.
    pub codel: CodelConfig,
}

impl Default for FqCodelConfig {
    /// The defaults of RFC 8290, section 5.2, with ECN.
    fn default() -> Self {
        Self {
            queues: 1024,
            quantum: 1514,
            packets: 10_240,
            codel: CodelConfig {
                ecn: true,
                ..CodelConfig::default()
            },
        }
    }
}

/// Queues per flow, by [`Packet::flow`], served by deficit round robin with priority for new flows.
pub struct FqCodel<B> {
    /// The queues.
    flows: Vec<Flow<B>>,
    /// The list of new flows.
    new: VecDeque<usize>,
    /// The list of old flows.
    old: VecDeque<usize>,
    /// Bytes in all queues.
    bytes: u64,
    /// Packets in all queues.
    packets: usize,
    /// Limit of packets.
    limit: usize,
    /// Bytes per round.
    quantum: i64,
}

/// The queue of a flow.
struct Flow<B> {
    /// Queued packets.
    fifo: Fifo<B>,
    /// The queue's CoDel.
    control: Control,
    /// Bytes that the flow may still send in this round.
    deficit: i64,
    /// Whether the queue is in one of the lists.
    listed: bool,
}

impl<B> FqCodel<B> {
    /// Empty queues with these settings.
    pub fn new(config: FqCodelConfig) -> Self {
        let flow = || Flow {
            fifo: Fifo::new(),
            control: Control::new(config.codel),
            deficit: 0,
            listed: false,
        };
        Self {
            flows: std::iter::repeat_with(flow)
                .take(config.queues.max(1))
                .collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
            limit: config.packets.max(1),
            quantum: i64::from(config.quantum.max(1)),
        }
    }

    /// The queue of a flow.
    fn index(&self, flow: u64) -> usize {
        let queues = self.flows.len() as u64;
        usize::try_from(flow % queues).unwrap_or(0)
    }

    /// Drops the oldest packet of the queue with the most bytes.
    fn drop_from_longest(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) {
        let listed = self.new.iter().chain(&self.old);
        let longest = listed.max_by_key(|index| self.flows[**index].fifo.bytes());
        if let Some(index) = longest
            && let Some(Queued { packet, .. }) = self.flows[*index].fifo.pop()
        {
            self.bytes -= u64::from(packet.size);
            self.packets -= 1;
            exits.push_back(Exit::dropped(now, packet, DropReason::QueueFull));
        }
    }
}

impl<B: Send> Queue<B> for FqCodel<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>) {
        self.bytes += u64::from(packet.size);
        self.packets += 1;
        let index = self.index(packet.flow);
        let flow = &mut self.flows[index];
        flow.fifo.push(now, packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(index);
        }
        if self.packets > self.limit {
            self.drop_from_longest(now, exits);
        }
    }

    fn dequeue(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (bytes, packets) = (flow.fifo.bytes(), flow.fifo.len());
            let packet = flow.control.dequeue(now, &mut flow.fifo, exits);
            self.bytes -= bytes - flow.fifo.bytes();
            self.packets -= packets - flow.fifo.len();
            if let Some(packet) = packet {
                flow.deficit -= i64::from(packet.size);
                return Some(packet);
            }
            list.pop_front();
            // An emptied new flow moves to the old flows, so that it cannot regain priority at once.
            flow.listed = is_new;
            if is_new {
                self.old.push_back(index);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn len(&self) -> usize {
        self.packets
    }
}

#[cfg(test)]
mod tests;
