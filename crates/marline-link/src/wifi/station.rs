//! A station: a queue for each next hop, and a backoff.

use super::aggregate::{Limits, Ppdu};
use super::backoff::Backoff;
use super::config::WifiConfig;
use super::entry::Entry;
use super::errors::Channel;
use super::frame;
use super::hop::{Pipe, Settled};
use super::phy::{SIFS, SLOT};
use super::scan::nanos;
use crate::{Seed, Station};

/// Someone who sends and receives.
#[derive(Debug)]
pub(super) struct Node<B> {
    /// One for each next hop, itself included.
    pub(super) pipes: Vec<Pipe<B>>,
    pub(super) backoff: Backoff,
    limits: Limits,
    queue_bytes: u64,
    /// Packets in all pipes that were not settled.
    packets: usize,
    /// Their bytes.
    bytes: u64,
    /// The next hop that was served last.
    served: Station,
    /// When it last began to have something to send, in nanoseconds.
    ready_at: u64,
    /// It was free to speak when it began to have something: that packet goes alone.
    alone: bool,
    /// Whom it speaks to in a collision.
    pub(super) speaks_to: Option<Station>,
    /// It left the channel.
    pub(super) away: bool,
}

impl<B> Node<B> {
    /// Station number `index` of `config`.
    pub(super) fn new(config: &WifiConfig, index: Station, seed: Seed) -> Self {
        let station = &config.stations[index];
        let timeout = config.reorder.map(nanos);
        let channels = seed.of("air");
        Self {
            pipes: (0..config.stations.len() as u64)
                .map(|to| Pipe::new(Channel::new(config.errors, channels.nth(to)), timeout))
                .collect(),
            backoff: Backoff::new(station.edca, config.retry_limit, seed.of("backoff")),
            limits: Limits::new(config, station),
            queue_bytes: station.queue_bytes,
            packets: 0,
            bytes: 0,
            served: index,
            ready_at: 0,
            alone: false,
            speaks_to: None,
            away: false,
        }
    }

    /// Whether its queue has room for a packet of `bytes`.
    pub(super) const fn has_room(&self, bytes: u32) -> bool {
        self.bytes + bytes as u64 <= self.queue_bytes
    }

    /// Whether a packet of `bytes` can be sent at all.
    pub(super) const fn fits(&self, bytes: u32) -> bool {
        bytes <= self.limits.bytes - frame::OVERHEAD
    }

    /// Bytes that were not settled.
    pub(super) const fn queued_bytes(&self) -> u64 {
        self.bytes
    }

    /// Another packet for `hop`.
    pub(super) fn push(&mut self, hop: Station, entry: Entry<B>) {
        self.packets += 1;
        self.bytes += u64::from(entry.packet.size);
        self.pipes[hop].push(entry);
    }

    /// It has something to send from `now` on, and had nothing before; `idle_from` if the medium is idle.
    pub(super) fn wake(&mut self, now: u64, idle_from: Option<u64>) {
        self.ready_at = now;
        match idle_from {
            Some(idle_from) => self.alone = now >= self.backoff.turn(idle_from),
            None => self.backoff.defer(),
        }
    }

    /// The medium was taken before its turn.
    pub(super) fn defer(&mut self) {
        self.alone = false;
        self.backoff.defer();
    }

    /// Whether it has anything to send.
    pub(super) const fn is_waiting(&self) -> bool {
        self.packets > 0
    }

    /// The next hop to serve, in turn, of those that are `present`.
    pub(super) fn next_hop(&self, present: impl Fn(Station) -> bool) -> Option<Station> {
        if self.packets == 0 || self.away {
            return None;
        }
        let hops = self.pipes.len();
        (1..=hops)
            .map(|step| (self.served + step) % hops)
            .find(|&hop| !self.pipes[hop].is_empty() && present(hop))
    }

    /// When it speaks if the medium is idle from `idle_from` on, in nanoseconds: everybody begins on the same grid of
    /// slots.
    pub(super) fn turn(&self, idle_from: u64) -> u64 {
        let turn = self.backoff.turn(idle_from);
        let grid = idle_from + SIFS;
        if self.ready_at > turn {
            grid + (self.ready_at - grid).next_multiple_of(SLOT)
        } else {
            turn
        }
    }

    /// Begins to speak to `hop`.
    pub(super) fn speak(&mut self, hop: Station) -> Ppdu {
        let alone = std::mem::take(&mut self.alone);
        self.pipes[hop].fill(self.limits, alone)
    }

    /// Forgets what left it.
    pub(super) fn settle(&mut self, hop: Station, settled: Settled) {
        self.packets -= settled.packets;
        self.bytes -= settled.bytes;
        if settled.heard {
            self.served = hop;
            self.backoff.succeed();
        } else {
            self.backoff.fail();
        }
    }
}
