//! The shared medium.

mod contention;

use super::aggregate::{Limits, Ppdu};
use super::background::{Interferer, SaturatedStation};
use super::backoff::Backoff;
use super::config::{StationConfig, Topology, WifiConfig, WifiError};
use super::contender::Contender;
use super::entry::Entry;
use super::exits::Exits;
use super::hop::Outbox;
use super::phy::{ANSWER_TIMEOUT, Airtime, answer};
use super::scan::{Scan, nanos};
use super::station::Node;
use crate::{Carried, DropReason, Exit, Medium, Packet, Seed, Station, Time};

/// A radio channel shared by stations, for data and acknowledgments, in both directions, over one or
/// more hops.
///
/// Contenders and scans are simulated lazily: events while no packet is present are processed when the
/// next packet arrives.
#[derive(Debug)]
pub struct WifiMedium<B> {
    /// Durations of the transmissions of contenders.
    airtime: Airtime,
    topology: Topology,
    retry_limit: u32,
    /// Base delay in nanoseconds.
    base_delay: u64,
    nodes: Vec<Node<B>>,
    saturated: Vec<SaturatedStation>,
    interferers: Vec<Interferer>,
    scans: Vec<Scan>,
    /// Time at which a station leaves the channel or returns next.
    scan_change: Option<u64>,
    /// The transmission in progress, if any.
    on_air: Option<Transmission>,
    /// Without a transmission: time since which the medium is idle, or at which it will be.
    idle_from: u64,
    /// Without a transmission: time at which the next station gains access.
    next_access: Option<u64>,
    /// Packets queued at stations.
    queued: usize,
    /// Packets held in reorder buffers.
    held: usize,
    /// Packets in transfer; reused for its allocations.
    outbox: Outbox<B>,
    exits: Exits<B>,
}

/// A transmission in progress.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    /// Time at which the receivers have it completely; after a collision, the end of the
    /// acknowledgment timeout.
    ends: u64,
    /// The transmitter; `None` if several stations collide.
    transmitter: Option<Transmitter>,
}

/// The only transmitting station.
#[derive(Clone, Copy, Debug)]
struct Transmitter {
    node: Station,
    hop: Station,
    mpdus: u32,
}

impl<B> WifiMedium<B> {
    /// An idle medium.
    ///
    /// # Errors
    ///
    /// The first setting of `config` that is out of range.
    pub fn new(config: &WifiConfig, seed: Seed) -> Result<Self, WifiError> {
        config.check()?;
        let (stations, contenders) = (seed.of("station"), seed.of("contender"));
        let mut saturated = Vec::new();
        let mut interferers = Vec::new();
        for (contender, index) in config.contenders.iter().zip(0..) {
            let seed = contenders.nth(index);
            match *contender {
                Contender::Saturated {
                    edca,
                    mpdus,
                    packet_bytes,
                } => {
                    let mut ppdu =
                        Ppdu::new(Limits::new(config, &StationConfig::DEFAULT, config.phy));
                    while ppdu.mpdus() < mpdus && ppdu.begin(packet_bytes) {}
                    let backoff = Backoff::new(edca, config.retry_limit, seed);
                    saturated.push(SaturatedStation::new(backoff, ppdu));
                }
                Contender::OnOff { busy, duty } => {
                    interferers.push(Interferer::new(busy, duty, seed));
                }
            }
        }
        let mut medium = Self {
            airtime: Airtime {
                phy: config.phy,
                rts_bytes: config.rts_bytes,
            },
            topology: config.topology,
            retry_limit: config.retry_limit,
            base_delay: nanos(config.base_delay),
            nodes: (0..config.stations.len())
                .map(|index| Node::new(config, index, stations.nth(index as u64)))
                .collect(),
            saturated,
            interferers,
            scans: config.scans.clone(),
            scan_change: None,
            on_air: None,
            idle_from: 0,
            next_access: None,
            queued: 0,
            held: 0,
            outbox: Outbox::default(),
            exits: Exits::new(),
        };
        medium.scan(0);
        medium.plan();
        Ok(medium)
    }

    /// Whether any packet is queued or held.
    const fn has_packets(&self) -> bool {
        self.queued + self.held > 0
    }

    /// Processes the first event if it is due by `now`. Returns whether there was one.
    fn step_by(&mut self, now: u64) -> bool {
        let due = self.next_step().filter(|&at| at <= now);
        if let Some(at) = due {
            self.step(at);
        }
        due.is_some()
    }

    /// The time of the next event.
    fn next_step(&self) -> Option<u64> {
        let air = match self.on_air {
            Some(on_air) => Some(on_air.ends),
            None => [self.next_access, self.next_occupation()]
                .into_iter()
                .flatten()
                .min(),
        };
        [air, self.next_expiry(), self.scan_change]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time at which the hold time of a reorder buffer expires.
    fn next_expiry(&self) -> Option<u64> {
        if self.held == 0 {
            return None;
        }
        let hops = self.nodes.iter().flat_map(|node| &node.hops);
        hops.filter_map(|sent| sent.reorder.deadline()).min()
    }

    /// Processes one event that is due at `at`.
    fn step(&mut self, at: u64) {
        if let Some(on_air) = self.on_air.take_if(|on_air| on_air.ends == at) {
            self.end(at, on_air);
        } else if self.next_expiry() == Some(at) {
            self.expire(at);
        } else if self.scan_change == Some(at) {
            self.scan(at);
        } else if self.next_occupation() == Some(at) {
            self.occupy(at);
        } else {
            self.begin(at);
        }
        self.plan();
    }

    /// Ends a transmission at `at`.
    fn end(&mut self, at: u64, on_air: Transmission) {
        if let Some(transmitter) = on_air.transmitter {
            let acknowledged = self.complete(at, transmitter.node, transmitter.hop, false);
            let answer = if acknowledged {
                answer(transmitter.mpdus)
            } else {
                ANSWER_TIMEOUT
            };
            self.idle_from = at + answer;
            self.deliver(at, transmitter.hop);
        } else {
            self.idle_from = at;
            for index in 0..self.nodes.len() {
                if let Some(hop) = self.nodes[index].transmits_to.take() {
                    self.complete(at, index, hop, true);
                    self.deliver(at, hop);
                }
            }
        }
    }

    /// Completes the transmission of station `index` to `hop`. Returns whether it was acknowledged.
    fn complete(&mut self, at: u64, index: Station, hop: Station, collided: bool) -> bool {
        let node = &mut self.nodes[index];
        let sent = &mut node.hops[hop];
        let outcome = if collided {
            sent.collide(self.retry_limit, &mut self.outbox)
        } else {
            sent.complete(at, self.retry_limit, &mut self.outbox)
        };
        node.complete(hop, outcome);
        self.queued -= outcome.packets;
        self.held += outcome.packets;
        outcome.acknowledged
    }

    /// Processes reorder buffers whose hold time expires at `at`.
    fn expire(&mut self, at: u64) {
        for index in 0..self.nodes.len() {
            for hop in 0..self.nodes.len() {
                let reorder = &mut self.nodes[index].hops[hop].reorder;
                if reorder.deadline() == Some(at) {
                    reorder.expire(at, &mut self.outbox.arrived);
                    self.deliver(at, hop);
                }
            }
        }
    }

    /// Forwards or outputs the packets that arrived at `hop`.
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

    /// Enqueues a packet at station `index`.
    fn enqueue(&mut self, at: u64, index: Station, entry: Entry<B>) {
        let node = &self.nodes[index];
        let hop = self.topology.next_hop(index, entry.to);
        if !node.fits(hop, entry.packet.size) {
            return self.drop(at, entry, DropReason::TooLarge);
        }
        if !node.has_room(entry.packet.size) {
            return self.drop(at, entry, DropReason::QueueFull);
        }
        let was_ready = self.target(node).is_some();
        self.nodes[index].push(hop, entry);
        self.queued += 1;
        if !was_ready && self.target(&self.nodes[index]).is_some() {
            let idle = self.on_air.is_none() && at >= self.idle_from;
            self.nodes[index].wake(at, idle.then_some(self.idle_from));
            self.plan();
        }
    }

    /// Drops `entry`.
    fn drop(&mut self, at: u64, entry: Entry<B>, reason: DropReason) {
        self.exits.push(Carried {
            from: entry.from,
            to: entry.to,
            exit: Exit::dropped(Time::from_nanos(at), entry.packet, reason),
        });
    }

    /// Updates which stations are away from the channel at `at`.
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
        // Without packets, events of contenders cannot cause exits.
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
