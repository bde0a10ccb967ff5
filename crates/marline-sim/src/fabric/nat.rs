//! Network address translation at the client's end of a medium.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use marline_link::{Carried, DropReason, Exit, Medium, Packet, Seed, Station, Time};

use super::Routed;

#[cfg(test)]
mod tests;

/// The lowest port that the translator uses.
const LOWEST: u16 = 1024;

/// A medium whose station 0 is behind a NAT: mappings of UDP ports expire when nothing was sent for some time, and the next
/// packet gets another port, as seen by the other end a NAT rebinding (RFC 9000, section 9.3).
///
/// Mappings and filtering do not depend on the other end (RFC 4787, sections 4.1 and 5), and only packets from inside refresh a
/// mapping (section 4.3). Packets to a port without one are lost ([`DropReason::NoMapping`]). Only the port is translated: the
/// address stays, so that routes do.
pub struct Nat<B> {
    medium: Box<dyn Medium<B>>,
    timeout: Duration,
    /// Mappings by inner address and port.
    mappings: BTreeMap<(IpAddr, u16), Mapping>,
    /// Inner ports by address and outer port.
    inner: BTreeMap<(IpAddr, u16), u16>,
    seed: Seed,
    /// Number of ports drawn.
    drawn: u64,
}

/// The outer port of an inner one.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    port: u16,
    /// When a packet from inside last used it.
    used: Time,
}

impl<B> Nat<B> {
    /// Translates at station 0 of `medium`, whose mappings live for `timeout` after the last packet from there. Ports are
    /// drawn from 1024 on.
    pub fn new(medium: Box<dyn Medium<B>>, timeout: Duration, seed: Seed) -> Self {
        Self {
            medium,
            timeout,
            mappings: BTreeMap::new(),
            inner: BTreeMap::new(),
            seed: seed.of("nat"),
            drawn: 0,
        }
    }

    /// The outer port for a packet that leaves at `now`; `None` if no port is free.
    fn outer(&mut self, now: Time, address: IpAddr, port: u16) -> Option<u16> {
        let known = self.mappings.get(&(address, port)).copied();
        let alive = known.filter(|mapping| self.is_alive(mapping, now));
        let outer = match (alive, known) {
            (Some(mapping), _) => mapping.port,
            (None, expired) => {
                if let Some(mapping) = expired {
                    self.inner.remove(&(address, mapping.port));
                }
                self.free_port(address)?
            }
        };
        self.mappings.insert(
            (address, port),
            Mapping {
                port: outer,
                used: now,
            },
        );
        self.inner.insert((address, outer), port);
        Some(outer)
    }

    /// A port that no mapping uses, not even an expired one.
    fn free_port(&mut self, address: IpAddr) -> Option<u16> {
        let above = self.seed.nth(self.drawn).value() % u64::from(u16::MAX - LOWEST + 1);
        self.drawn += 1;
        let first = u16::try_from(above).map_or(LOWEST, |above| LOWEST + above);
        let ports = (first..=u16::MAX).chain(LOWEST..first);
        ports
            .into_iter()
            .find(|port| !self.inner.contains_key(&(address, *port)))
    }

    fn is_alive(&self, mapping: &Mapping, now: Time) -> bool {
        now.since(mapping.used) <= self.timeout
    }

    /// The inner port of a packet that arrives at `now`.
    fn inner(&self, now: Time, address: IpAddr, outer: u16) -> Option<u16> {
        let port = *self.inner.get(&(address, outer))?;
        let mapping = self.mappings.get(&(address, port))?;
        self.is_alive(mapping, now).then_some(port)
    }
}

impl<B: Routed + Send> Medium<B> for Nat<B> {
    fn stations(&self) -> usize {
        self.medium.stations()
    }

    fn push(&mut self, now: Time, from: Station, to: Station, mut packet: Packet<B>) {
        if from == 0
            && let Some([source, destination]) = packet.body.udp_ports()
            && let Some(port) = self.outer(now, packet.body.source(), source)
        {
            packet.body.set_udp_ports([port, destination]);
            // Another flow for routers and fair queues.
            packet.flow ^= u64::from(port).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        self.medium.push(now, from, to, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Carried<B>> {
        let mut carried = self.medium.pop(now)?;
        let Exit {
            at,
            packet,
            dropped,
        } = &mut carried.exit;
        if carried.to == 0
            && dropped.is_none()
            && let Some([source, destination]) = packet.body.udp_ports()
        {
            match self.inner(*at, packet.body.destination(), destination) {
                Some(port) => packet.body.set_udp_ports([source, port]),
                None => *dropped = Some(DropReason::NoMapping),
            }
        }
        Some(carried)
    }

    fn next_event(&self) -> Option<Time> {
        self.medium.next_event()
    }

    fn queued_bytes(&self, from: Station) -> u64 {
        self.medium.queued_bytes(from)
    }

    fn total_queued_bytes(&self) -> u64 {
        self.medium.total_queued_bytes()
    }
}
