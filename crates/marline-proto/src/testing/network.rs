//! The network of a [`Pair`](super::Pair): it delays, loses, reorders, duplicates, corrupts and marks
//! datagrams, under conditions that tests can change at any time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::time::Instant;
use crate::tuple::EcnCodepoint;

/// A datagram in a [`Network`].
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Source address, as the sender sees it.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
    /// ECN codepoint.
    pub ecn: Option<EcnCodepoint>,
    /// Payload.
    pub bytes: Vec<u8>,
}

/// The end to which a datagram is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

/// The faults of datagrams in one direction. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// One-way delay.
    pub delay: Duration,
    /// Maximum random addition to the delay of each datagram, so that datagrams are reordered.
    pub jitter: Duration,
    /// Share of lost datagrams.
    pub loss: f64,
    /// Number of consecutive datagrams lost at each loss.
    pub burst: u32,
    /// Share of duplicated datagrams.
    pub duplicate: f64,
    /// Share of datagrams with an altered byte.
    pub corrupt: f64,
    /// Share of ECT datagrams that are CE-marked.
    pub mark: f64,
    /// Whether ECN marks are cleared.
    pub erase_marks: bool,
    /// Rate in bytes per second; `None` is unlimited.
    pub rate: Option<u64>,
    /// Maximum number of bytes in the queue; further datagrams are lost.
    pub queue: u64,
    /// Maximum size of a datagram; larger ones are lost.
    pub mtu: usize,
    /// Whether all datagrams are lost.
    pub down: bool,
}

impl Conditions {
    /// A delay of 10 ms, without losses or other faults.
    pub const GOOD: Self = Self {
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        loss: 0.0,
        burst: 1,
        duplicate: 0.0,
        corrupt: 0.0,
        mark: 0.0,
        erase_marks: false,
        rate: None,
        queue: 1 << 20,
        mtu: 1472,
        down: false,
    };
}

impl Default for Conditions {
    /// [`GOOD`](Self::GOOD).
    fn default() -> Self {
        Self::GOOD
    }
}

/// One direction of a link.
#[derive(Debug)]
struct OneDirection {
    conditions: Conditions,
    /// Time at which the sender's queue is empty.
    free_at: Instant,
    /// Number of datagrams still to be lost of a burst.
    burst_left: u32,
    counts: Counts,
}

/// Datagrams in one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Bytes sent.
    pub bytes: u64,
}

impl OneDirection {
    fn new() -> Self {
        Self {
            conditions: Conditions::default(),
            free_at: Instant::EPOCH,
            burst_left: 0,
            counts: Counts::default(),
        }
    }
}

/// All links between a client and a server, by direction.
#[derive(Debug)]
struct Links {
    to_server: OneDirection,
    to_client: OneDirection,
    /// Links of further addresses of the client, to the server and back.
    further: BTreeMap<SocketAddr, [OneDirection; 2]>,
}

impl Links {
    fn new() -> Self {
        Self {
            to_server: OneDirection::new(),
            to_client: OneDirection::new(),
            further: BTreeMap::new(),
        }
    }

    fn is_on_link(&self, datagram: &Datagram) -> bool {
        !self.further.is_empty()
            && (self.further.contains_key(&datagram.source)
                || self.further.contains_key(&datagram.destination))
    }

    /// The direction of the link that a datagram takes.
    fn of(&mut self, direction: Direction, datagram: &Datagram) -> &mut OneDirection {
        let client = match direction {
            Direction::ToServer => datagram.source,
            Direction::ToClient => datagram.destination,
        };
        match (self.further.get_mut(&client), direction) {
            (Some([there, _]), Direction::ToServer) => there,
            (Some([_, back]), Direction::ToClient) => back,
            (None, Direction::ToServer) => &mut self.to_server,
            (None, Direction::ToClient) => &mut self.to_client,
        }
    }
}

/// A function that decides which datagrams are lost.
pub type Filter = Box<dyn FnMut(Direction, &Datagram) -> bool + Send>;

/// The links between a client and a server.
pub struct Network {
    links: Links,
    in_flight: BTreeMap<(Instant, u64), (Direction, Datagram)>,
    sequence: u64,
    /// The client's own address.
    inside: SocketAddr,
    rng: Pcg64Mcg,
    /// The client's address behind a NAT, as the server sees it; `None` without a NAT.
    pub nat: Option<SocketAddr>,
    /// Drops the datagrams for which it returns `true`, independently of the conditions.
    pub filter: Option<Filter>,
}

impl Network {
    pub(super) fn new(seed: u64, inside: SocketAddr) -> Self {
        Self {
            links: Links::new(),
            in_flight: BTreeMap::new(),
            sequence: 0,
            inside,
            rng: Pcg64Mcg::seed_from_u64(seed ^ 0x6e65_7477_6f72_6b00),
            nat: None,
            filter: None,
        }
    }

    /// Mutable access to the conditions in one direction.
    pub fn conditions(&mut self, direction: Direction) -> &mut Conditions {
        &mut self.first_link(direction).conditions
    }

    /// Sets the same conditions in both directions.
    pub fn set(&mut self, conditions: Conditions) {
        self.links.to_server.conditions = conditions;
        self.links.to_client.conditions = conditions;
    }

    /// Sets the conditions of another link to the server, that of the client's address `at`. There is
    /// no NAT on it.
    pub fn set_link(&mut self, at: SocketAddr, conditions: Conditions) {
        let directions = self.links.further.entry(at);
        for direction in directions.or_insert_with(|| [OneDirection::new(), OneDirection::new()]) {
            direction.conditions = conditions;
        }
    }

    /// Mutable access to the conditions in one direction on the link of the client's address `at`.
    pub fn link(&mut self, at: SocketAddr, direction: Direction) -> &mut Conditions {
        let directions = self.links.further.entry(at);
        let [to_server, to_client] =
            directions.or_insert_with(|| [OneDirection::new(), OneDirection::new()]);
        match direction {
            Direction::ToServer => &mut to_server.conditions,
            Direction::ToClient => &mut to_client.conditions,
        }
    }

    /// Counts of datagrams sent and lost in one direction.
    pub fn counts(&mut self, direction: Direction) -> Counts {
        self.first_link(direction).counts
    }

    /// Sends a datagram as if an end had sent it.
    pub fn inject(&mut self, now: Instant, direction: Direction, datagram: Datagram) {
        self.enqueue(now, direction, datagram);
    }

    /// Drops the datagrams in flight in one direction.
    pub fn lose_in_flight(&mut self, direction: Direction) {
        self.in_flight.retain(|_, (other, _)| *other != direction);
    }

    /// Changes the client's own address and removes the NAT.
    pub(super) fn move_inside(&mut self, inside: SocketAddr) {
        self.inside = inside;
        self.nat = None;
    }

    fn first_link(&mut self, direction: Direction) -> &mut OneDirection {
        match direction {
            Direction::ToServer => &mut self.links.to_server,
            Direction::ToClient => &mut self.links.to_client,
        }
    }

    /// Sends a datagram; those to ports below 1024 go to the server.
    pub(super) fn send(&mut self, now: Instant, mut datagram: Datagram) {
        let direction = match datagram.destination.port() {
            0..1024 => Direction::ToServer,
            _ => Direction::ToClient,
        };
        let nat = self.nat.filter(|_| !self.links.is_on_link(&datagram));
        if let Some(outside) = nat {
            match direction {
                Direction::ToServer => datagram.source = outside,
                // The NAT has no binding for an earlier address.
                Direction::ToClient if datagram.destination != outside => return,
                Direction::ToClient => datagram.destination = self.inside,
            }
        }
        if self
            .filter
            .as_mut()
            .is_some_and(|filter| filter(direction, &datagram))
        {
            let link = self.links.of(direction, &datagram);
            link.counts.sent += 1;
            link.counts.lost += 1;
            return;
        }
        let rng = &mut self.rng;
        let link = self.links.of(direction, &datagram);
        let conditions = link.conditions;
        link.counts.sent += 1;
        link.counts.bytes += datagram.bytes.len() as u64;
        let mut draw = |share: f64| share > 0.0 && rng.random_bool(share.min(1.0));
        if link.burst_left == 0 && draw(conditions.loss) {
            link.burst_left = conditions.burst.max(1);
        }
        let in_burst = link.burst_left > 0;
        link.burst_left = link.burst_left.saturating_sub(1);
        if in_burst || conditions.down || datagram.bytes.len() > conditions.mtu {
            link.counts.lost += 1;
            return;
        }
        if draw(conditions.corrupt) {
            let index = rng.random_range(0..datagram.bytes.len().max(1));
            if let Some(byte) = datagram.bytes.get_mut(index) {
                *byte ^= rng.random_range(1..=255u8);
            }
        }
        let mut draw = |share: f64| share > 0.0 && rng.random_bool(share.min(1.0));
        if datagram.ecn.is_some() && draw(conditions.mark) {
            datagram.ecn = Some(EcnCodepoint::Ce);
        }
        if conditions.erase_marks {
            datagram.ecn = None;
        }
        if draw(conditions.duplicate) {
            self.enqueue(now, direction, datagram.clone());
        }
        self.enqueue(now, direction, datagram);
    }

    fn enqueue(&mut self, now: Instant, direction: Direction, datagram: Datagram) {
        let jitter = self.links.of(direction, &datagram).conditions.jitter;
        let extra = match jitter.as_nanos() as u64 {
            0 => Duration::ZERO,
            most => Duration::from_nanos(self.rng.random_range(0..=most)),
        };
        let link = self.links.of(direction, &datagram);
        let mut leaves = now;
        if let Some(rate) = link.conditions.rate {
            let waiting = link.free_at - now;
            let queued = waiting.as_nanos() as u64 * rate / 1_000_000_000;
            if queued + datagram.bytes.len() as u64 > link.conditions.queue {
                link.counts.lost += 1;
                return;
            }
            let takes = datagram.bytes.len() as u64 * 1_000_000_000 / rate.max(1);
            link.free_at = link.free_at.max(now) + Duration::from_nanos(takes);
            leaves = link.free_at;
        }
        let arrives = leaves + link.conditions.delay + extra;
        self.sequence += 1;
        self.in_flight
            .insert((arrives, self.sequence), (direction, datagram));
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.keys().next().map(|&(at, _)| at)
    }

    /// The next datagram that has arrived by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Direction, Datagram)> {
        let entry = self
            .in_flight
            .first_entry()
            .filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}
