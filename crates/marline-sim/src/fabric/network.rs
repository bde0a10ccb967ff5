//! A network that carries packets.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;

use marline_link::{Carried, DropReason, Medium, Packet, Station, Time};

use super::routes::{Hop, Layout, Routes};
use super::{Filter, MediumId, Node, PacketEvent, Routed, Tap, Traffic, Verdict};

/// Carries packets from host to host.
///
/// Call [`send`](Self::send) for each packet, and [`poll`](Self::poll) until it returns `None` after each
/// `send` and whenever [`next_event`](Self::next_event) is due. Times must not decrease. As with links, a late
/// caller has no effect on the outcome: a packet is forwarded at the time at which it left the previous medium.
pub struct Fabric<B> {
    node_names: Vec<String>,
    media: Vec<Joint<B>>,
    carriers: Vec<Carrier<B>>,
    layout: Layout,
    routes: Routes,
    /// Addresses by node; hosts only.
    addresses: Vec<Vec<IpAddr>>,
    /// Next event by carrier; [`Time::MAX`] for none.
    due: Vec<Time>,
    /// Earliest of `due`, and the first carrier that has it.
    next: (Time, usize),
    ready: VecDeque<Event<B>>,
    taps: Vec<Tap<B>>,
    /// Addresses that are detached from their hosts.
    detached: BTreeSet<IpAddr>,
}

/// The name and the carrier of a medium.
pub(super) struct MediumParts {
    pub(super) name: String,
    /// Index of its carrier.
    pub(super) carrier: usize,
    /// The carrier's station for each station.
    pub(super) stations: Vec<Station>,
}

/// The carrier of one medium's packets, or of several that share it.
struct Carrier<B> {
    medium: Box<dyn Medium<B>>,
    /// Indices of the media.
    media: Vec<usize>,
}

/// One hop of a packet: a medium and two of its stations.
struct Crossing {
    medium: usize,
    from: Station,
    to: Station,
}

struct Joint<B> {
    name: String,
    carrier: usize,
    /// The carrier's station for each station.
    stations: Vec<Station>,
    /// Traffic by station.
    traffic: Vec<Traffic>,
    /// Whether all packets are lost.
    is_cut: bool,
    /// Selects packets that are lost.
    filter: Option<Filter<B>>,
}

impl<B> Joint<B> {
    /// The reason why a packet from `from` is lost on this medium, if a fault applies to it.
    fn fault(&mut self, from: Node, packet: &Packet<B>) -> Option<DropReason> {
        if self.is_cut {
            return Some(DropReason::LinkDown);
        }
        let filter = self.filter.as_mut()?;
        filter(from, packet).then_some(DropReason::Loss)
    }
}

/// The outcome of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<B> {
    /// The packet arrived at its destination.
    Arrived {
        /// Time of arrival.
        at: Time,
        /// Host that has its destination address.
        node: Node,
        /// The packet.
        packet: Packet<B>,
    },
    /// The packet was lost.
    Dropped {
        /// Time of the loss.
        at: Time,
        /// Medium of the loss; `None` if no route leads to its destination.
        medium: Option<MediumId>,
        /// Last node of the packet.
        from: Node,
        /// The packet.
        packet: Packet<B>,
        /// Reason of the loss.
        reason: DropReason,
    },
}

impl<B> Event<B> {
    /// Time of the event.
    pub const fn at(&self) -> Time {
        match self {
            Self::Arrived { at, .. } | Self::Dropped { at, .. } => *at,
        }
    }
}

impl<B> Fabric<B> {
    pub(super) fn new(
        node_names: Vec<String>,
        media: Vec<MediumParts>,
        carriers: Vec<Box<dyn Medium<B>>>,
        layout: Layout,
        routes: Routes,
    ) -> Self {
        let carriers: Vec<_> = (0..)
            .zip(carriers)
            .map(|(index, medium)| Carrier {
                medium,
                media: (0..)
                    .zip(&media)
                    .filter_map(|(number, parts)| (parts.carrier == index).then_some(number))
                    .collect(),
            })
            .collect();
        let media: Vec<_> = media
            .into_iter()
            .map(|parts| Joint {
                name: parts.name,
                carrier: parts.carrier,
                traffic: vec![Traffic::default(); parts.stations.len()],
                stations: parts.stations,
                is_cut: false,
                filter: None,
            })
            .collect();
        let due = |carrier: &Carrier<B>| carrier.medium.next_event().unwrap_or(Time::MAX);
        let addresses = layout.interfaces.iter();
        let mut fabric = Self {
            node_names,
            due: carriers.iter().map(due).collect(),
            carriers,
            media,
            addresses: addresses
                .map(|own| own.iter().filter_map(|i| i.address).collect())
                .collect(),
            layout,
            routes,
            next: (Time::MAX, 0),
            ready: VecDeque::new(),
            taps: Vec::new(),
            detached: BTreeSet::new(),
        };
        fabric.find_next();
        fabric
    }

    /// All nodes, in the order of the plan.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + use<B> {
        (0..).map(Node).take(self.node_names.len())
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<Node> {
        self.nodes().find(|&node| self.name(node) == name)
    }

    /// The name of a node.
    pub fn name(&self, node: Node) -> &str {
        &self.node_names[node.index()]
    }

    /// Whether the node is a host.
    pub fn is_host(&self, node: Node) -> bool {
        self.layout.is_host[node.index()]
    }

    /// The addresses of a host, one for each interface, in the order in which it was joined; a router
    /// has none.
    pub fn addresses(&self, node: Node) -> &[IpAddr] {
        &self.addresses[node.index()]
    }

    /// The host that has `address`.
    pub fn host_of(&self, address: IpAddr) -> Option<Node> {
        Some(self.layout.addresses[self.layout.find(address)?].1)
    }

    /// The address from which `host` sends to `destination` by default: that of the interface with the
    /// fewest hops to it, the first of equals, among those attached.
    pub fn source_for(&self, host: Node, destination: IpAddr) -> Option<IpAddr> {
        let own = self.addresses(host);
        if own.contains(&destination) {
            return Some(destination);
        }
        let address = self.layout.find(destination)?;
        let attached = (0..own.len()).filter(|&interface| self.is_attached(own[interface]));
        let interface = self.routes.nearest(host, attached, address)?;
        own.get(interface).copied()
    }

    /// The medium to which the interface with `address` belongs.
    pub fn medium_of(&self, address: IpAddr) -> Option<MediumId> {
        let host = self.host_of(address)?;
        let own = &self.layout.interfaces[host.index()];
        let interface = own.iter().find(|own| own.address == Some(address))?;
        Some(interface.medium)
    }

    /// Detaches `address` from its host, as when an interface loses it: packets to it have no route. Other
    /// routes do not change.
    pub fn detach(&mut self, address: IpAddr) {
        self.detached.insert(address);
    }

    /// Attaches `address` to its host again.
    pub fn attach(&mut self, address: IpAddr) {
        self.detached.remove(&address);
    }

    /// Whether `address` is attached to its host.
    pub fn is_attached(&self, address: IpAddr) -> bool {
        self.detached.is_empty() || !self.detached.contains(&address)
    }

    /// All media, in the order of the plan.
    pub fn media(&self) -> impl Iterator<Item = MediumId> + use<B> {
        (0..).map(MediumId).take(self.media.len())
    }

    /// The medium of this name.
    pub fn find_medium(&self, name: &str) -> Option<MediumId> {
        self.media()
            .find(|&medium| self.medium_name(medium) == name)
    }

    /// The name of a medium.
    pub fn medium_name(&self, medium: MediumId) -> &str {
        &self.media[medium.index()].name
    }

    /// The nodes that a medium joins, by station.
    pub fn members(&self, medium: MediumId) -> &[Node] {
        &self.layout.members[medium.index()]
    }

    /// Counts of the packets that a node sent over a medium; `None` if the medium does not join it.
    pub fn traffic(&self, medium: MediumId, from: Node) -> Option<&Traffic> {
        let station = self.station(medium, from)?;
        Some(&self.media[medium.index()].traffic[station])
    }

    /// Bytes queued at `from` for `medium`, and for the links that share it; `None` if the medium does not join it.
    pub fn queued_bytes(&self, medium: MediumId, from: Node) -> Option<u64> {
        let station = self.station(medium, from)?;
        let joint = &self.media[medium.index()];
        let carrier = &self.carriers[joint.carrier].medium;
        Some(carrier.queued_bytes(joint.stations[station]))
    }

    /// Bytes queued in the whole network, relays of radios included.
    pub fn total_queued_bytes(&self) -> u64 {
        let carriers = self.carriers.iter();
        carriers
            .map(|carrier| carrier.medium.total_queued_bytes())
            .sum()
    }

    fn station(&self, medium: MediumId, node: Node) -> Option<usize> {
        self.members(medium)
            .iter()
            .position(|&member| member == node)
    }

    /// Calls `tap` for every [`PacketEvent`] from now on.
    pub fn tap(&mut self, tap: Tap<B>) {
        self.taps.push(tap);
    }

    /// Loses all packets that would arrive over `medium` from now on, including those in flight
    /// ([`DropReason::LinkDown`]). Nodes are not notified.
    pub fn cut(&mut self, medium: MediumId) {
        self.media[medium.index()].is_cut = true;
    }

    /// Restores a medium after [`cut`](Self::cut).
    pub fn restore(&mut self, medium: MediumId) {
        self.media[medium.index()].is_cut = false;
    }

    /// Loses packets for which `filter` is true at their arrival over `medium` ([`DropReason::Loss`]): they
    /// have used its rate. Replaces an earlier filter.
    pub fn set_filter(&mut self, medium: MediumId, filter: Filter<B>) {
        self.media[medium.index()].filter = Some(filter);
    }

    /// Time at which [`poll`](Self::poll) must be called, if no packet is sent before.
    pub fn next_event(&self) -> Option<Time> {
        match self.ready.front() {
            Some(event) => Some(event.at()),
            None => (self.next.0 != Time::MAX).then_some(self.next.0),
        }
    }

    /// Updates the next event of a carrier that was used.
    fn refresh(&mut self, carrier: usize) {
        let due = self.carriers[carrier].medium.next_event();
        let due = due.unwrap_or(Time::MAX);
        self.due[carrier] = due;
        if (due, carrier) <= self.next {
            self.next = (due, carrier);
        } else if self.next.1 == carrier {
            self.find_next();
        }
    }

    /// The medium that joins these stations of `carrier`.
    fn crossing(&self, carrier: usize, from: Station, to: Station) -> Option<Crossing> {
        self.carriers[carrier].media.iter().find_map(|&medium| {
            let stations = &self.media[medium].stations;
            let own = |station| stations.iter().position(|&known| known == station);
            Some(Crossing {
                medium,
                from: own(from)?,
                to: own(to)?,
            })
        })
    }

    fn find_next(&mut self) {
        let all = self.due.iter().copied().zip(0..);
        self.next = all.min().unwrap_or((Time::MAX, 0));
    }

    fn watch(&mut self, passage: &PacketEvent<'_, B>) {
        for tap in &mut self.taps {
            tap(passage);
        }
    }
}

impl<B: Routed> Fabric<B> {
    /// Sends a packet from `from`; if that is a host with several interfaces, by the one with the packet's
    /// source address. Events that are due by `now` are handled before.
    pub fn send(&mut self, now: Time, from: Node, packet: Packet<B>) {
        while self.step(now) {}
        let own = self.addresses(from);
        let interface = if own.len() > 1 {
            let source = packet.body.source();
            own.iter().position(|&address| address == source)
        } else {
            None
        };
        self.forward(now, from, interface.unwrap_or(0), packet);
    }

    /// The next event by `now`, in the order of their times. Of events at the same time, the one on the medium
    /// that was joined first comes first.
    pub fn poll(&mut self, now: Time) -> Option<Event<B>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if !self.step(now) {
                return None;
            }
        }
    }

    /// Handles the next event of all media; false if there is none by `now`.
    fn step(&mut self, now: Time) -> bool {
        let (at, carrier) = self.next;
        if at > now || at == Time::MAX {
            return false;
        }
        let carried = self.carriers[carrier].medium.pop(at);
        self.refresh(carrier);
        if let Some(carried) = carried {
            self.on_carried(carrier, carried);
        }
        true
    }

    fn on_carried(&mut self, carrier: usize, carried: Carried<B>) {
        let Carried { from, to, mut exit } = carried;
        // The packet entered by a medium of this carrier.
        let Some(crossing) = self.crossing(carrier, from, to) else {
            return;
        };
        let Crossing {
            medium: index,
            from,
            to,
        } = crossing;
        let medium = MediumId(u32::try_from(index).unwrap_or(u32::MAX));
        let [from_node, to_node] = [from, to].map(|station| self.layout.members[index][station]);
        let joint = &mut self.media[index];
        if exit.dropped.is_none() {
            exit.dropped = joint.fault(from_node, &exit.packet);
        }
        let traffic = &mut joint.traffic[from];
        let verdict = match exit.dropped {
            None => {
                traffic.on_arrived(exit.packet.size);
                Verdict::Left
            }
            Some(reason) => {
                traffic.on_dropped(reason);
                Verdict::Dropped(reason)
            }
        };
        if !self.taps.is_empty() {
            self.watch(&PacketEvent {
                at: exit.at,
                medium: Some(medium),
                from: from_node,
                to: Some(to_node),
                packet: &exit.packet,
                verdict,
            });
        }
        match exit.dropped {
            None => self.forward(exit.at, to_node, 0, exit.packet),
            Some(reason) => self.ready.push_back(Event::Dropped {
                at: exit.at,
                medium: Some(medium),
                from: from_node,
                packet: exit.packet,
                reason,
            }),
        }
    }

    /// Delivers a packet at `node`, or forwards it by one of the node's interfaces.
    fn forward(&mut self, at: Time, node: Node, interface: usize, packet: Packet<B>) {
        let destination = packet.body.destination();
        if !self.is_attached(destination) {
            return self.lose(at, node, packet);
        }
        let address = self.layout.find(destination);
        if address.is_some_and(|address| self.layout.addresses[address].1 == node) {
            self.ready.push_back(Event::Arrived { at, node, packet });
            return;
        }
        let hops = address.map_or(&[][..], |address| {
            self.routes.next(node, interface, address)
        });
        let Some(&hop) = choose(hops, packet.flow) else {
            return self.lose(at, node, packet);
        };
        let Hop { medium, from, to } = hop;
        self.media[medium.index()].traffic[from].on_entered(packet.size);
        if !self.taps.is_empty() {
            self.watch(&PacketEvent {
                at,
                medium: Some(medium),
                from: node,
                to: Some(self.layout.members[medium.index()][to]),
                packet: &packet,
                verdict: Verdict::Entered,
            });
        }
        let Joint {
            carrier, stations, ..
        } = &self.media[medium.index()];
        let (carrier, from, to) = (*carrier, stations[from], stations[to]);
        self.carriers[carrier].medium.push(at, from, to, packet);
        self.refresh(carrier);
    }

    fn lose(&mut self, at: Time, node: Node, packet: Packet<B>) {
        let reason = DropReason::NoRoute;
        self.watch(&PacketEvent {
            at,
            medium: None,
            from: node,
            to: None,
            packet: &packet,
            verdict: Verdict::Dropped(reason),
        });
        self.ready.push_back(Event::Dropped {
            at,
            medium: None,
            from: node,
            packet,
            reason,
        });
    }
}

/// Selects one of the equal-cost next hops, the same for all packets of a flow.
fn choose(hops: &[Hop], flow: u64) -> Option<&Hop> {
    match hops {
        [] => None,
        [hop] => Some(hop),
        _ => hops.get((flow % hops.len() as u64) as usize),
    }
}

impl<B> fmt::Debug for Fabric<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fabric")
            .field("nodes", &self.node_names)
            .field("next_event", &self.next_event())
            .finish_non_exhaustive()
    }
}
