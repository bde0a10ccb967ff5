//! CAKE: fair queueing of hosts and flows, each queue managed by COBALT (Høiland-Jørgensen, Täht and Morton, "Piece of
//! CAKE: A Comprehensive Queue Management Solution for Home Gateways", LANMAN 2018; Linux `sch_cake`).
//!
//! The transmitter is the shaper. There is one tin: packets here carry no DSCP, so `sch_cake`'s priority tins are left
//! out, as are its estimate of the rate, ingress mode and the lookup of addresses behind a NAT.

mod cobalt;
mod table;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use self::cobalt::{Cobalt, CobaltConfig};
use self::table::{Hosts, find_way};
use super::Queue;
use super::fifo::{Fifo, Queued};
use crate::ack_thinning::is_small;
use crate::{DropReason, Exit, Packet, Seed, Time};

/// Number of queues.
const QUEUES: usize = 1024;

/// Bytes of a full packet, headers included.
const MTU: u64 = 1514;

/// Among which packets CAKE is fair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Among flows, whatever their hosts.
    Flows,
    /// Among source hosts, and among the flows of each.
    SourceHosts,
    /// Among destination hosts, and among the flows of each.
    DestinationHosts,
    /// Among flows, but no source host and no destination host has more than another because it has more flows.
    #[default]
    Triple,
}

/// The settings of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeConfig {
    /// The rate of the transmitter, in bits per second.
    pub rate: u64,
    /// Limit of bytes in all queues; `None` for four intervals at the rate, at least 4 MB.
    pub limit: Option<u64>,
    /// The isolation of hosts and flows.
    pub isolation: Isolation,
    /// Whether an acknowledgment replaces those of its flow that wait directly before it.
    pub ack_filter: bool,
}

/// The queues of CAKE.
pub struct Cake<B> {
    flows: Vec<Flow<B>>,
    /// Flow hashes by queue.
    tags: Vec<u64>,
    hosts: [Hosts; 2],
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    decaying: VecDeque<usize>,
    bytes: u64,
    packets: usize,
    limit: u64,
    quantum: u64,
    isolation: Isolation,
    ack_filter: bool,
    cobalt: CobaltConfig,
    /// Flows in [`Set::Bulk`].
    bulk: u32,
    rng: Pcg64Mcg,
}

/// The queue of a flow.
struct Flow<B> {
    fifo: Fifo<B>,
    cobalt: Cobalt,
    /// Bytes that it may still send in this round.
    deficit: i64,
    set: Set,
    /// Its source host and its destination host.
    hosts: [usize; 2],
}

/// The list in which a flow is, and whether it counts as one that fills its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// In no list.
    None,
    /// New: it has used no more than one quantum.
    Sparse,
    /// A sparse flow in the old list whose queue is empty.
    SparseWaiting,
    /// In the old list.
    Bulk,
    /// Empty, with a COBALT that is not at rest.
    Decaying,
}

impl<B> Cake<B> {
    /// Empty queues with these settings.
    pub fn new(config: CakeConfig, seed: Seed) -> Self {
        let bytes_per_second = config.rate / 8;
        let cobalt = CobaltConfig::new(config.rate, MTU);
        let interval = Duration::from_millis(100).as_nanos();
        let four = u128::from(bytes_per_second) * 4 * interval / 1_000_000_000;
        let default = u64::try_from(four).unwrap_or(u64::MAX).max(4 << 20);
        let flow = || Flow {
            fifo: Fifo::new(),
            cobalt: Cobalt::default(),
            deficit: 0,
            set: Set::None,
            hosts: [0; 2],
        };
        Self {
            flows: std::iter::repeat_with(flow).take(QUEUES).collect(),
            tags: vec![0; QUEUES],
            hosts: [Hosts::new(QUEUES), Hosts::new(QUEUES)],
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            bytes: 0,
            packets: 0,
            limit: config.limit.unwrap_or(default),
            quantum: (bytes_per_second >> 12).clamp(300, MTU),
            isolation: config.isolation,
            ack_filter: config.ack_filter,
            cobalt,
            bulk: 0,
            rng: seed.of("cake").rng(),
        }
    }

    /// The queue of a packet: set-associative, so that flows share one only if all eight of a set are in use.
    fn classify(&mut self, packet: &Packet<B>) -> usize {
        let tag = packet.flow;
        let flows = &self.flows;
        let way = find_way(&self.tags, tag, |queue| flows[queue].set == Set::None);
        let index = way.index;
        let was_bulk = self.flows[index].set == Set::Bulk;
        let is_other = self.tags[index] != tag || self.flows[index].set == Set::None;
        if is_other {
            self.tags[index] = tag;
            let old = self.flows[index].hosts;
            for (side, hosts) in self.hosts.iter_mut().enumerate() {
                if was_bulk {
                    hosts.remove(old[side]);
                }
                let host = hosts.find(u64::from(packet.hosts[side]));
                if was_bulk {
                    hosts.add(host);
                }
                self.flows[index].hosts[side] = host;
            }
        }
        index
    }

    /// The quantum of a flow: that of its tin, divided by the number of busy flows of its host.
    fn quantum_of(&mut self, flow: usize) -> i64 {
        let [source, destination] = self.flows[flow].hosts;
        let load = [self.hosts[0].busy(source), self.hosts[1].busy(destination)];
        let load = match self.isolation {
            Isolation::Flows => 1,
            Isolation::SourceHosts => load[0],
            Isolation::DestinationHosts => load[1],
            Isolation::Triple => load[0].max(load[1]),
        };
        let share = 65_535 / u64::from(load.max(1));
        // Rounded at random, so that the fractions of small quanta count.
        let dither = self.rng.next_u64() >> 48;
        i64::try_from((self.quantum * share + dither) >> 16).unwrap_or(i64::MAX)
    }

    /// Counts a flow as one that fills its queue, or no longer.
    fn set_bulk(&mut self, flow: usize, is_bulk: bool) {
        let hosts = self.flows[flow].hosts;
        for (side, host) in hosts.into_iter().enumerate() {
            match is_bulk {
                true => self.hosts[side].add(host),
                false => self.hosts[side].remove(host),
            }
        }
        match is_bulk {
            true => self.bulk += 1,
            false => self.bulk = self.bulk.saturating_sub(1),
        }
    }

    /// Moves a flow to another set.
    fn enter(&mut self, flow: usize, set: Set) {
        let before = std::mem::replace(&mut self.flows[flow].set, set);
        match (before == Set::Bulk, set == Set::Bulk) {
            (false, true) => self.set_bulk(flow, true),
            (true, false) => self.set_bulk(flow, false),
            _ => {}
        }
    }

    /// Drops the oldest packet of the queue with the most bytes.
    fn drop_from_longest(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) {
        let listed = self.new.iter().chain(&self.old).chain(&self.decaying);
        let longest = listed.max_by_key(|index| self.flows[**index].fifo.bytes());
        if let Some(&index) = longest
            && let Some(Queued { packet, .. }) = self.flows[index].fifo.pop()
        {
            self.bytes -= u64::from(packet.size);
            self.packets -= 1;
            self.flows[index].cobalt.on_full(now, &self.cobalt);
            exits.push_back(Exit::dropped(now, packet, DropReason::QueueFull));
        }
    }

    /// The next flow to serve and the list that it is at the front of.
    fn front(&self, with_decaying: bool) -> Option<(List, usize)> {
        let lists = match with_decaying {
            true => [List::Decaying, List::New, List::Old],
            false => [List::New, List::Old, List::Decaying],
        };
        lists
            .into_iter()
            .find_map(|list| Some((list, *self.list(list).front()?)))
    }

    const fn list(&self, list: List) -> &VecDeque<usize> {
        match list {
            List::New => &self.new,
            List::Old => &self.old,
            List::Decaying => &self.decaying,
        }
    }

    fn pop_front(&mut self, list: List) {
        match list {
            List::New => self.new.pop_front(),
            List::Old => self.old.pop_front(),
            List::Decaying => self.decaying.pop_front(),
        };
    }

    /// Takes a flow whose queue is empty out of its list, or lets its COBALT decay.
    fn retire(&mut self, list: List, flow: usize, now: Time) {
        self.pop_front(list);
        if self.flows[flow].cobalt.on_empty(now, &self.cobalt) {
            self.enter(flow, Set::Decaying);
            self.decaying.push_back(flow);
        } else {
            self.enter(flow, Set::None);
        }
    }

    /// The next packet of a flow, after drops; `None` if its queue is empty.
    fn take(&mut self, flow: usize, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        loop {
            let queue = &mut self.flows[flow];
            let Queued { since, mut packet } = queue.fifo.pop()?;
            self.bytes -= u64::from(packet.size);
            self.packets -= 1;
            let age = now.since(since);
            let verdict = queue.cobalt.judge(
                now,
                age,
                self.bulk,
                &self.cobalt,
                &mut packet,
                &mut self.rng,
            );
            // The last packet of a queue is never dropped.
            if !verdict.drops || queue.fifo.is_empty() {
                return Some(packet);
            }
            exits.push_back(Exit::dropped(now, packet, DropReason::QueueManagement));
        }
    }
}

/// A list of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New,
    Old,
    Decaying,
}

impl<B: Send> Queue<B> for Cake<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>) {
        let index = self.classify(&packet);
        let fifo = &mut self.flows[index].fifo;
        if self.ack_filter
            && is_small(&packet)
            && let Some(older) = fifo.pop_last_if(|last| is_small(last) && last.flow == packet.flow)
        {
            self.bytes -= u64::from(older.size);
            self.packets -= 1;
            exits.push_back(Exit::dropped(now, older, DropReason::QueueManagement));
        }
        self.bytes += u64::from(packet.size);
        self.packets += 1;
        fifo.push(now, packet);
        match self.flows[index].set {
            Set::None | Set::Decaying => {
                self.decaying.retain(|flow| *flow != index);
                self.enter(index, Set::Sparse);
                self.flows[index].deficit = self.quantum_of(index);
                self.new.push_back(index);
            }
            Set::SparseWaiting => self.enter(index, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
        while self.bytes > self.limit && self.packets > 0 {
            self.drop_from_longest(now, exits);
        }
    }

    fn dequeue(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        // One decaying flow is looked at for each packet.
        let mut with_decaying = true;
        while self.packets > 0 || with_decaying {
            let (list, index) = self.front(with_decaying)?;
            with_decaying = false;
            if self.flows[index].deficit <= 0 && list != List::Decaying {
                let set = match self.flows[index].set {
                    Set::Sparse if self.flows[index].fifo.is_empty() => Set::SparseWaiting,
                    Set::Sparse => Set::Bulk,
                    other => other,
                };
                self.enter(index, set);
                self.flows[index].deficit += self.quantum_of(index).max(1);
                self.pop_front(list);
                self.old.push_back(index);
                continue;
            }
            let Some(packet) = self.take(index, now, exits) else {
                self.retire(list, index, now);
                continue;
            };
            self.flows[index].deficit -= i64::from(packet.size);
            return Some(packet);
        }
        None
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn len(&self) -> usize {
        self.packets
    }
}
