//! The channel: who speaks, who hears.

use super::aggregate::{Limits, Ppdu};
use super::backoff::Backoff;
use super::config::{StationConfig, Topology, WifiConfig, WifiError};
use super::contender::{Contender, OnOff};
use super::exits::Exits;
use super::phy::{ANSWER_TIMEOUT, Air, SIFS, SLOT, answer};
use super::pipe::{Entry, Outbox};
use super::scan::{Scan, nanos};
use super::station::Node;
use crate::{Carried, DropReason, Exit, Medium, Packet, Seed, Station, Time};

/// A radio channel that stations share, for data and acknowledgments, in both directions, over one hop or several.
///
/// After a time in which nobody had a packet, the next one is answered for all that contenders did meanwhile.
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

/// A contender that always has something to say.
#[derive(Debug)]
struct Rival {
    backoff: Backoff,
    ppdu: Ppdu,
    /// It speaks in a collision.
    speaks: bool,
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
                    rivals.push(Rival {
                        backoff: Backoff::new(edca, config.retry_limit, seed),
                        ppdu,
                        speaks: false,
                    });
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

    /// When somebody takes the medium next, if no station speaks.
    fn next_taken(&self) -> Option<u64> {
        let wanted = self.others.iter().map(|other| other.wants_at).min()?;
        Some(wanted.max(self.idle_from))
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

    /// Looks for the next turn.
    fn plan(&mut self) {
        self.turn = None;
        if self.on_air.is_none() {
            let rivals = self.rivals.iter().map(|it| it.backoff.turn(self.idle_from));
            let nodes = self
                .nodes
                .iter()
                .filter(|node| self.target(node).is_some())
                .map(|node| node.turn(self.idle_from));
            self.turn = nodes.chain(rivals).min();
        }
    }

    /// Whom `node` would speak to now.
    fn target(&self, node: &Node<B>) -> Option<Station> {
        node.next_hop(|hop| !self.nodes[hop].away)
    }

    /// Somebody's turn is at `at`.
    fn begin(&mut self, at: u64) {
        let slots = self.slots_until(at);
        let mut speakers = 0;
        let mut longest = 0;
        for rival in &mut self.rivals {
            rival.speaks = rival.backoff.turn(self.idle_from) == at;
            if rival.speaks {
                speakers += 1;
                longest = longest.max(self.air.collided(rival.ppdu.bytes()));
            } else {
                rival.backoff.freeze(slots);
            }
        }
        let mut speaker = None;
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let due = node.turn(self.idle_from) == at;
            let target = self.target(node).filter(|_| due);
            let node = &mut self.nodes[index];
            node.speaks_to = target;
            if let Some(hop) = target {
                let ppdu = node.speak(hop);
                speakers += 1;
                longest = longest.max(self.air.collided(ppdu.bytes()));
                speaker = Some((index, hop, ppdu));
            } else {
                node.backoff.freeze(slots);
            }
        }
        if speakers > 1 {
            self.collide(at + longest + ANSWER_TIMEOUT, speaker.is_some());
        } else if let Some((node, hop, ppdu)) = speaker {
            self.on_air = Some(OnAir {
                ends: at + self.air.alone(ppdu.bytes()),
                speaker: Some(Speaker {
                    node,
                    hop,
                    mpdus: ppdu.mpdus(),
                }),
            });
        } else if let Some(rival) = self.rivals.iter_mut().find(|rival| rival.speaks) {
            rival.backoff.succeed();
            self.idle_from = at + self.air.alone(rival.ppdu.bytes()) + answer(rival.ppdu.mpdus());
        }
    }

    /// Several speak, until `ends`; `nodes` if not only contenders do.
    fn collide(&mut self, ends: u64, nodes: bool) {
        for rival in self.rivals.iter_mut().filter(|rival| rival.speaks) {
            rival.backoff.fail();
        }
        if nodes {
            self.on_air = Some(OnAir {
                ends,
                speaker: None,
            });
        } else {
            self.idle_from = ends;
        }
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

    /// Somebody takes the medium at `at`.
    fn take(&mut self, at: u64) {
        self.interrupt(at);
        if let Some(other) = self.others.iter_mut().min_by_key(|other| other.wants_at) {
            self.idle_from = other.take(at);
        }
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

    /// Everybody who waits for the medium backs off.
    fn interrupt(&mut self, at: u64) {
        let slots = self.slots_until(at);
        for rival in &mut self.rivals {
            rival.backoff.freeze(slots);
            rival.backoff.defer();
        }
        for node in &mut self.nodes {
            node.backoff.freeze(slots);
            if node.is_waiting() {
                node.defer();
            }
        }
    }

    /// Slots between the beginning of the grid and `at`.
    fn slots_until(&self, at: u64) -> u64 {
        at.saturating_sub(self.idle_from + SIFS) / SLOT
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
