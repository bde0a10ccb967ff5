//! The channel, and what becomes of packets on it.

mod contention;

use super::aggregate::{Limits, Ppdu};
use super::background::{OnOff, Rival};
use super::backoff::Backoff;
use super::config::{StationConfig, Topology, WifiConfig, WifiError};
use super::contender::Contender;
use super::entry::Entry;
use super::exits::Exits;
use super::hop::Outbox;
use super::phy::{ANSWER_TIMEOUT, Air, answer};
use super::scan::{Scan, nanos};
use super::station::Node;
use crate::{Carried, DropReason, Exit, Medium, Packet, Seed, Station, Time};

/// A radio channel that stations share, for data and acknowledgments, in both directions, over one hop or several.
///
/// What contenders and scans do while nobody has a packet is made up for when the next one comes.
#[derive(Debug)]
pub struct WifiMedium<B> {
    air: Air,
    topology: Topology,
    retry_limit: u32,
    /// Nanoseconds.
    base_delay: u64,
    nodes: Vec<Node<B>>,
    rivals: Vec<Rival>,
    others: Vec<OnOff>,
    scans: Vec<Scan>,
    /// When a station leaves or comes back next.
    scan_change: Option<u64>,
    /// What stations say, and when it ends.
    on_air: Option<OnAir>,
    /// If no station speaks: from when on the medium is idle, or will be.
    idle_from: u64,
    /// If no station speaks: when somebody's turn is.
    turn: Option<u64>,
    /// Packets that stations have to send.
    queued: usize,
    /// Packets that wait for others at their receivers.
    held: usize,
    /// Kept for its memory.
    outbox: Outbox<B>,
    exits: Exits<B>,
}

/// Something that stations say.
#[derive(Clone, Copy, Debug)]
struct OnAir {
    /// When the receivers have it all; if they cannot understand it, when everybody knows that.
    ends: u64,
    /// `None` if several spoke.
    speaker: Option<Speaker>,
}

/// The only one who spoke.
#[derive(Clone, Copy, Debug)]
struct Speaker {
    node: Station,
    hop: Station,
    mpdus: u32,
}

impl<B> WifiMedium<B> {
    /// A medium on which nobody has spoken yet.
    ///
    /// # Errors
    ///
    /// The first setting of `config` that is out of range.
    pub fn new(config: &WifiConfig, seed: Seed) -> Result<Self, WifiError> {
        config.check()?;
        let (stations, contenders) = (seed.of("station"), seed.of("contender"));
        let mut rivals = Vec::new();
        let mut others = Vec::new();
        for (contender, index) in config.contenders.iter().zip(0..) {
            let seed = contenders.nth(index);
            match *contender {
                Contender::Saturated {
                    edca,
                    mpdus,
                    packet_bytes,
                } => {
                    let mut ppdu = Ppdu::new(Limits::new(config, &StationConfig::DEFAULT));
                    while ppdu.mpdus() < mpdus && ppdu.begin(packet_bytes) {}
                    let backoff = Backoff::new(edca, config.retry_limit, seed);
                    rivals.push(Rival::new(backoff, ppdu));
                }
                Contender::OnOff { busy, duty } => others.push(OnOff::new(busy, duty, seed)),
            }
        }
        let mut medium = Self {
            air: Air {
                phy: config.phy,
                rts_bytes: config.rts_bytes,
            },
            topology: config.topology,
            retry_limit: config.retry_limit,
            base_delay: nanos(config.base_delay),
            nodes: (0..config.stations.len())
                .map(|index| Node::new(config, index, stations.nth(index as u64)))
                .collect(),
            rivals,
            others,
            scans: config.scans.clone(),
            scan_change: None,
            on_air: None,
            idle_from: 0,
            turn: None,
            queued: 0,
            held: 0,
            outbox: Outbox::default(),
            exits: Exits::new(),
        };
        medium.scan(0);
        medium.plan();
        Ok(medium)
    }

    /// Whether any packet is in it that has not come out.
    const fn has_packets(&self) -> bool {
        self.queued + self.held > 0
    }

    /// Does what is due first, if that is by `now`; whether anything was.
    fn step_by(&mut self, now: u64) -> bool {
        let due = self.next_step().filter(|&at| at <= now);
        if let Some(at) = due {
            self.step(at);
        }
        due.is_some()
    }

    /// When something happens on the medium next.
    fn next_step(&self) -> Option<u64> {
        let air = match self.on_air {
            Some(on_air) => Some(on_air.ends),
            None => [self.turn, self.next_taken()].into_iter().flatten().min(),
        };
        [air, self.next_expiry(), self.scan_change]
            .into_iter()
            .flatten()
            .min()
    }

    /// When a receiver stops waiting.
    fn next_expiry(&self) -> Option<u64> {
        if self.held == 0 {
            return None;
        }
        let pipes = self.nodes.iter().flat_map(|node| &node.pipes);
        pipes.filter_map(|pipe| pipe.reorder.deadline()).min()
    }

    /// Does what is due at `at`, one thing.
    fn step(&mut self, at: u64) {
        if let Some(on_air) = self.on_air.take_if(|on_air| on_air.ends == at) {
            self.end(at, on_air);
        } else if self.next_expiry() == Some(at) {
            self.expire(at);
        } else if self.scan_change == Some(at) {
            self.scan(at);
        } else if self.next_taken() == Some(at) {
            self.take(at);
        } else {
            self.begin(at);
        }
        self.plan();
    }

    /// What was on the air until `at` is over.
    fn end(&mut self, at: u64, on_air: OnAir) {
        if let Some(speaker) = on_air.speaker {
            let heard = self.settle(at, speaker.node, speaker.hop, false);
            let answer = if heard {
                answer(speaker.mpdus)
            } else {
                ANSWER_TIMEOUT
            };
            self.idle_from = at + answer;
            self.deliver(at, speaker.hop);
        } else {
            self.idle_from = at;
            for index in 0..self.nodes.len() {
                if let Some(hop) = self.nodes[index].speaks_to.take() {
                    self.settle(at, index, hop, true);
                    self.deliver(at, hop);
                }
            }
        }
    }

    /// Station `index` learns what became of what it said to `hop`; whether it was heard.
    fn settle(&mut self, at: u64, index: Station, hop: Station, collided: bool) -> bool {
        let node = &mut self.nodes[index];
        let pipe = &mut node.pipes[hop];
        let settled = if collided {
            pipe.collide(self.retry_limit, &mut self.outbox)
        } else {
            pipe.settle(at, self.retry_limit, &mut self.outbox)
        };
        node.settle(hop, settled);
        self.queued -= settled.packets;
        self.held += settled.packets;
        settled.heard
    }

    /// Receivers that wait for something stop waiting at `at`.
    fn expire(&mut self, at: u64) {
        for index in 0..self.nodes.len() {
            for hop in 0..self.nodes.len() {
                let reorder = &mut self.nodes[index].pipes[hop].reorder;
                if reorder.deadline() == Some(at) {
                    reorder.expire(at, &mut self.outbox.arrived);
                    self.deliver(at, hop);
                }
            }
        }
    }

    /// What came out of a pipe to `hop` goes on, or out.
    fn deliver(&mut self, at: u64, hop: Station) {
        let mut outbox = std::mem::take(&mut self.outbox);
        self.held -= outbox.arrived.len() + outbox.lost.len();
        for entry in outbox.lost.drain(..) {
            self.drop(at, entry, DropReason::RadioRetries);
        }
        for entry in outbox.arrived.drain(..) {
            if entry.to == hop {
                self.exits.push(Carried {
                    from: entry.from,
                    to: entry.to,
                    exit: Exit::arrived(Time::from_nanos(at + self.base_delay), entry.packet),
                });
            } else {
                self.enqueue(at, hop, Entry::new(entry.from, entry.to, entry.packet));
            }
        }
        self.outbox = outbox;
    }

    /// Station `index` has another packet to send.
    fn enqueue(&mut self, at: u64, index: Station, entry: Entry<B>) {
        let node = &self.nodes[index];
        if !node.fits(entry.packet.size) {
            return self.drop(at, entry, DropReason::TooLarge);
        }
        if !node.has_room(entry.packet.size) {
            return self.drop(at, entry, DropReason::QueueFull);
        }
        let was_ready = self.target(node).is_some();
        let hop = self.topology.next_hop(index, entry.to);
        self.nodes[index].push(hop, entry);
        self.queued += 1;
        if !was_ready && self.target(&self.nodes[index]).is_some() {
            let idle = self.on_air.is_none() && at >= self.idle_from;
            self.nodes[index].wake(at, idle.then_some(self.idle_from));
            self.plan();
        }
    }

    /// `entry` goes no further.
    fn drop(&mut self, at: u64, entry: Entry<B>, reason: DropReason) {
        self.exits.push(Carried {
            from: entry.from,
            to: entry.to,
            exit: Exit::dropped(Time::from_nanos(at), entry.packet, reason),
        });
    }

    /// Stations leave, or come back, at `at`.
    fn scan(&mut self, at: u64) {
        for scan in &self.scans {
            self.nodes[scan.station].away = false;
        }
        for scan in self.scans.iter().filter(|scan| scan.is_away(at)) {
            self.nodes[scan.station].away = true;
        }
        let changes = self.scans.iter().filter_map(|scan| scan.next_change(at));
        self.scan_change = changes.min();
        if self.on_air.is_none() {
            self.interrupt(at);
            self.idle_from = self.idle_from.max(at);
        }
    }
}

impl<B: Send> Medium<B> for WifiMedium<B> {
    fn stations(&self) -> usize {
        self.nodes.len()
    }

    fn push(&mut self, now: Time, from: Station, to: Station, packet: Packet<B>) {
        while self.step_by(now.as_nanos()) {}
        self.enqueue(now.as_nanos(), from, Entry::new(from, to, packet));
    }

    fn pop(&mut self, now: Time) -> Option<Carried<B>> {
        // What contenders do among themselves makes nobody's packet leave.
        while self.has_packets() && self.step_by(now.as_nanos()) {}
        self.exits.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        let step = self.next_step().filter(|_| self.has_packets());
        [step.map(Time::from_nanos), self.exits.next_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn queued_bytes(&self, from: Station) -> u64 {
        self.nodes[from].queued_bytes()
    }
}

#[cfg(test)]
mod tests;
