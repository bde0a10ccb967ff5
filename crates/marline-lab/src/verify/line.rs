//! A client, a server and a link between them, for packets that belong to no transport.

use std::net::IpAddr;

use marline_link::{DropReason, Ecn, Packet, Seed, Time};
use marline_sim::fabric::{Event, Fabric, Node, Routed};

use crate::execution;
use crate::scenario::{Ecmp, LinkDef, RunError, Topology};

/// The network of one link, built as in experiments.
pub(super) struct Line {
    fabric: Fabric<ProbePacket>,
    /// The hosts and their addresses, by [`End`].
    ends: [(Node, IpAddr); 2],
}

/// The sender of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

/// The hashes of a packet's flow, and of its source and destination; and what else a packet has beside its size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    pub(super) number: u64,
    pub(super) hosts: [u32; 2],
    pub(super) ecn: Ecn,
    /// UDP ports of source and destination.
    pub(super) ports: [u16; 2],
}

/// A packet of the measurement.
#[derive(Clone, Copy, Debug)]
struct ProbePacket {
    from: End,
    /// The source's address, and the destination's.
    addresses: [IpAddr; 2],
    ports: [u16; 2],
    number: u64,
}

impl Routed for ProbePacket {
    const HAS_PORTS: bool = true;

    fn source(&self) -> IpAddr {
        self.addresses[0]
    }

    fn destination(&self) -> IpAddr {
        self.addresses[1]
    }

    fn udp_ports(&self) -> Option<[u16; 2]> {
        Some(self.ports)
    }

    fn set_udp_ports(&mut self, ports: [u16; 2]) {
        self.ports = ports;
    }
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketOutcome {
    pub(super) at: Time,
    pub(super) from: End,
    pub(super) number: u64,
    pub(super) bytes: u32,
    pub(super) ports: [u16; 2],
    /// Whether a queue marked it.
    pub(super) is_marked: bool,
    /// Whether it has a bit error.
    pub(super) is_corrupted: bool,
    /// The reason why it was lost, if it was.
    pub(super) lost: Option<DropReason>,
}

impl Line {
    /// # Errors
    /// `link` cannot be built.
    pub(super) fn new(link: &str, seed: Seed) -> Result<Self, RunError> {
        let hosts = [Topology::CLIENT, Topology::SERVER].map(str::to_owned);
        let topology = Topology {
            hosts: hosts.to_vec(),
            routers: Vec::new(),
            links: vec![LinkDef {
                name: "link".to_owned(),
                between: hosts.to_vec(),
                spec: link.to_owned(),
                channel: None,
            }],
            channels: Vec::new(),
            ecmp: Ecmp::default(),
        };
        let fabric: Fabric<ProbePacket> = execution::network(&topology, seed)?;
        let end = |name| {
            let node = fabric.find(name)?;
            Some((node, *fabric.addresses(node).first()?))
        };
        let ends = end(Topology::CLIENT).zip(end(Topology::SERVER));
        let (client, server) =
            ends.ok_or_else(|| RunError::Unsupported("a host has no address".to_owned()))?;
        Ok(Self {
            fabric,
            ends: [client, server],
        })
    }

    /// Sends a packet of `bytes` from one end to the other.
    pub(super) fn send(&mut self, now: Time, from: End, bytes: u32, number: u64) {
        self.send_in(Flow::default(), now, from, bytes, number);
    }

    /// Sends a packet of a flow.
    pub(super) fn send_in(&mut self, flow: Flow, now: Time, from: End, bytes: u32, number: u64) {
        let (near, far) = match from {
            End::Client => (self.ends[0], self.ends[1]),
            End::Server => (self.ends[1], self.ends[0]),
        };
        let parcel = ProbePacket {
            from,
            addresses: [near.1, far.1],
            ports: flow.ports,
            number,
        };
        let packet = Packet {
            flow: flow.number,
            hosts: flow.hosts,
            ecn: flow.ecn,
            ..Packet::new(bytes, parcel)
        };
        self.fabric.send(now, near.0, packet);
    }

    /// The next packet that was delivered or lost by `until`.
    pub(super) fn next(&mut self, until: Time) -> Option<PacketOutcome> {
        let event = self.fabric.poll(until)?;
        let (at, packet, lost) = match event {
            Event::Arrived { at, packet, .. } => (at, packet, None),
            Event::Dropped {
                at, packet, reason, ..
            } => (at, packet, Some(reason)),
        };
        Some(PacketOutcome {
            at,
            from: packet.body.from,
            number: packet.body.number,
            bytes: packet.size,
            ports: packet.body.ports,
            is_marked: packet.ecn == Ecn::Ce,
            is_corrupted: packet.corrupted.is_some(),
            lost,
        })
    }

    /// Bytes in the queues of both hosts and of the nodes between them.
    pub(super) fn waiting(&self) -> u64 {
        let waits = |medium| {
            let members = self.fabric.members(medium).iter();
            members.filter_map(move |node| self.fabric.queued_bytes(medium, *node))
        };
        self.fabric.media().flat_map(waits).sum()
    }
}
