//! A client, a server and a link between them, for packets that belong to no transport.

use std::net::IpAddr;

use marline_link::{DropReason, Ecn, Packet, Seed, Time};
use marline_sim::fabric::{Event, Fabric, Node, Routed};

use crate::execution;
use crate::scenario::{ChannelDef, Ecmp, LinkDef, RunError, Topology};

/// The network of one link, or of a Wi-Fi channel, built as in experiments.
pub(super) struct Line {
    fabric: Fabric<ProbePacket>,
    /// The hosts of clients, of which a link has one.
    clients: Vec<Host>,
    server: Host,
}

/// A host and its address.
#[derive(Clone, Copy, Debug)]
struct Host {
    node: Node,
    address: IpAddr,
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
        let client = Topology::CLIENT.to_owned();
        let link = LinkDef {
            name: "link".to_owned(),
            between: vec![client.clone(), Topology::SERVER.to_owned()],
            spec: link.to_owned(),
            channel: None,
        };
        let topology = Topology {
            hosts: vec![client, Topology::SERVER.to_owned()],
            routers: Vec::new(),
            links: vec![link],
            channels: Vec::new(),
            ecmp: Ecmp::default(),
        };
        Self::build(&topology, seed)
    }

    /// `stations` clients on a Wi-Fi channel whose access point is next to the server. `channel` has keys of
    /// [`ChannelSpec`](marline_link::spec::ChannelSpec).
    ///
    /// # Errors
    /// `channel` cannot be built.
    pub(super) fn of_channel(channel: &str, stations: u8, seed: Seed) -> Result<Self, RunError> {
        const CHANNEL: &str = "channel";
        const ACCESS_POINT: &str = "access point";
        let between = |one: &str, other: &str| vec![one.to_owned(), other.to_owned()];
        let hosts = (1..=stations).map(|number| format!("station {number}"));
        let mut hosts: Vec<_> = hosts.collect();
        let links = hosts.iter().map(|station| LinkDef {
            name: format!("link of {station}"),
            between: between(station, ACCESS_POINT),
            spec: String::new(),
            channel: Some(CHANNEL.to_owned()),
        });
        let wire = LinkDef {
            name: "wire".to_owned(),
            between: between(ACCESS_POINT, Topology::SERVER),
            spec: String::new(),
            channel: None,
        };
        let links = links.chain([wire]).collect();
        hosts.push(Topology::SERVER.to_owned());
        let channel = ChannelDef {
            name: CHANNEL.to_owned(),
            spec: channel.to_owned(),
            stations: Vec::new(),
        };
        let topology = Topology {
            hosts,
            routers: vec![ACCESS_POINT.to_owned()],
            links,
            channels: vec![channel],
            ecmp: Ecmp::default(),
        };
        Self::build(&topology, seed)
    }

    /// The network of `topology`, whose last host is the server and all others clients.
    fn build(topology: &Topology, seed: Seed) -> Result<Self, RunError> {
        let fabric: Fabric<ProbePacket> = execution::network(topology, seed)?;
        let host = |name: &String| {
            let node = fabric.find(name)?;
            let address = *fabric.addresses(node).first()?;
            Some(Host { node, address })
        };
        let hosts: Option<Vec<_>> = topology.hosts.iter().map(host).collect();
        let mut clients = hosts.unwrap_or_default();
        let server = clients.pop().filter(|_| !clients.is_empty());
        let server =
            server.ok_or_else(|| RunError::Unsupported("a host has no address".to_owned()))?;
        Ok(Self {
            fabric,
            clients,
            server,
        })
    }

    /// Sends a packet of `bytes` from one end to the other.
    pub(super) fn send(&mut self, now: Time, from: End, bytes: u32, number: u64) {
        self.send_in(Flow::default(), now, from, bytes, number);
    }

    /// Sends a packet of a flow.
    pub(super) fn send_in(&mut self, flow: Flow, now: Time, from: End, bytes: u32, number: u64) {
        let client = self.clients[0];
        let (near, far) = match from {
            End::Client => (client, self.server),
            End::Server => (self.server, client),
        };
        let parcel = ProbePacket {
            from,
            addresses: [near.address, far.address],
            ports: flow.ports,
            number,
        };
        let packet = Packet {
            flow: flow.number,
            hosts: flow.hosts,
            ecn: flow.ecn,
            ..Packet::new(bytes, parcel)
        };
        self.fabric.send(now, near.node, packet);
    }

    /// Sends a packet of `bytes` from client `station`, which is its number, to the server.
    pub(super) fn send_from(&mut self, station: usize, now: Time, bytes: u32) {
        let Some(near) = self.clients.get(station) else {
            return;
        };
        let parcel = ProbePacket {
            from: End::Client,
            addresses: [near.address, self.server.address],
            ports: [0; 2],
            number: station as u64,
        };
        self.fabric.send(now, near.node, Packet::new(bytes, parcel));
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
