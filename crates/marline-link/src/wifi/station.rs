//! Stations.

use super::aggregate::{Limits, Ppdu};
use super::backoff::Backoff;
use super::config::WifiConfig;
use super::entry::Entry;
use super::errors::Channel;
use super::frame;
use super::hop::{Hop, TxOutcome};
use super::phy::{Airtime, SIFS, SLOT};
use super::rate_control::Adaptation;
use super::scan::nanos;
use crate::{Seed, Station};

/// A station: a queue for each next hop, and a backoff.
#[derive(Debug)]
pub(super) struct Node<B> {
    /// Queues by next hop, including the station itself.
    pub(super) hops: Vec<Hop<B>>,
    pub(super) backoff: Backoff,
    /// Transmission parameters by receiver.
    rates: Vec<HopRate>,
    /// Choices of the modulation by receiver; `None` where modulation and errors are constant.
    adaptations: Vec<Option<Adaptation>>,
    queue_bytes: u64,
    /// Number of packets queued for all next hops.
    packets: usize,
    /// Size of those packets in bytes.
    bytes: u64,
    /// Next hop served last.
    served: Station,
    /// Time at which its queue last became non-empty, in nanoseconds.
    ready_at: u64,
    /// Whether it could transmit immediately when its queue became non-empty: the next PPDU has one packet.
    alone: bool,
    /// Next hop of its transmission in a collision.
    pub(super) transmits_to: Option<Station>,
    /// Whether it has left the channel.
    pub(super) away: bool,
}

/// Parameters of transmissions from one station to another.
#[derive(Clone, Copy, Debug)]
struct HopRate {
    airtime: Airtime,
    limits: Limits,
}

impl<B> Node<B> {
    /// Station `index` of `config`.
    pub(super) fn new(config: &WifiConfig, index: Station, seed: Seed) -> Self {
        let station = &config.stations[index];
        let timeout = config.reorder.map(nanos);
        let channels = seed.of("air");
        let all = || (0..config.stations.len()).map(|to| config.hop(index, to));
        Self {
            hops: (0..)
                .zip(all())
                .map(|(to, hop)| Hop::new(Channel::new(hop.errors, channels.nth(to)), timeout))
                .collect(),
            rates: all()
                .map(|hop| HopRate {
                    airtime: Airtime {
                        phy: hop.phy,
                        rts_bytes: config.rts_bytes,
                    },
                    limits: Limits::new(config, station, hop.phy),
                })
                .collect(),
            adaptations: (0..)
                .zip(all())
                .map(|(to, hop)| {
                    let seed = seed.of("rates").nth(to);
                    Adaptation::new(config.rate_control, hop.phy, hop.signal, seed)
                })
                .collect(),
            backoff: Backoff::new(station.edca, config.retry_limit, seed.of("backoff")),
            queue_bytes: station.queue_bytes,
            packets: 0,
            bytes: 0,
            served: index,
            ready_at: 0,
            alone: false,
            transmits_to: None,
            away: false,
        }
    }

    /// Whether a packet of `bytes` bytes is within the queue limit.
    pub(super) const fn has_room(&self, bytes: u32) -> bool {
        self.bytes + bytes as u64 <= self.queue_bytes
    }

    /// Whether a packet of `bytes` bytes fits a PPDU to `hop`.
    pub(super) fn fits(&self, hop: Station, bytes: u32) -> bool {
        bytes <= self.rates[hop].limits.bytes - frame::OVERHEAD
    }

    /// Airtime of its transmissions to `hop`.
    pub(super) fn airtime(&self, hop: Station) -> Airtime {
        self.rates[hop].airtime
    }

    /// Bytes queued for all next hops.
    pub(super) const fn queued_bytes(&self) -> u64 {
        self.bytes
    }

    /// Enqueues a packet for `hop`.
    pub(super) fn push(&mut self, hop: Station, entry: Entry<B>) {
        self.packets += 1;
        self.bytes += u64::from(entry.packet.size);
        self.hops[hop].push(entry);
    }

    /// Called when the queue becomes non-empty at `now`; `idle_from` is set if the medium is idle.
    pub(super) fn wake(&mut self, now: u64, idle_from: Option<u64>) {
        self.ready_at = now;
        match idle_from {
            Some(idle_from) => self.alone = now >= self.backoff.access_time(idle_from),
            None => self.backoff.defer(),
        }
    }

    /// Called when the medium becomes busy before the station gained access.
    pub(super) fn defer(&mut self) {
        self.alone = false;
        self.backoff.defer();
    }

    /// Whether the station has packets to send.
    pub(super) const fn is_waiting(&self) -> bool {
        self.packets > 0
    }

    /// The next hop to serve, round robin among those that are `present`.
    pub(super) fn next_hop(&self, present: impl Fn(Station) -> bool) -> Option<Station> {
        if self.packets == 0 || self.away {
            return None;
        }
        let hops = self.hops.len();
        (1..=hops)
            .map(|step| (self.served + step) % hops)
            .find(|&hop| !self.hops[hop].is_empty() && present(hop))
    }

    /// Time at which it gains access if the medium is idle from `idle_from` on, in nanoseconds:
    /// transmissions start at slot boundaries.
    pub(super) fn access_time(&self, idle_from: u64) -> u64 {
        let access = self.backoff.access_time(idle_from);
        let grid = idle_from + SIFS;
        if self.ready_at > access {
            grid + (self.ready_at - grid).next_multiple_of(SLOT)
        } else {
            access
        }
    }

    /// Starts a transmission to `hop` at `at`.
    pub(super) fn start_transmission(&mut self, hop: Station, at: u64) -> Ppdu {
        if let Some(adaptation) = &mut self.adaptations[hop] {
            let chosen = adaptation.choose(at);
            self.rates[hop].airtime.phy = chosen.phy;
            self.rates[hop].limits.adapt(chosen.phy);
            if let Some(rate) = chosen.bit_errors {
                self.hops[hop].channel.set_bit_errors(rate);
            }
        }
        let alone = std::mem::take(&mut self.alone);
        self.hops[hop].fill(self.rates[hop].limits, alone)
    }

    /// Updates queue and backoff after a transmission.
    pub(super) fn complete(&mut self, hop: Station, outcome: TxOutcome) {
        self.packets -= outcome.packets;
        self.bytes -= outcome.bytes;
        if let Some(adaptation) = &mut self.adaptations[hop] {
            adaptation.observe(outcome.mpdus, outcome.received);
        }
        if outcome.acknowledged {
            self.served = hop;
            self.backoff.succeed();
        } else {
            self.backoff.fail();
        }
    }
}
