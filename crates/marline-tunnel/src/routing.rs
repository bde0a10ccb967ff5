//! Addresses, rules and routes of this host, by netlink (`rtnetlink(7)`).

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use serde::{Deserialize, Serialize};

/// The table of routes that is looked up last.
pub const MAIN: u32 = 254;

/// The table of the routes into a client's tunnel.
pub const TABLE: u32 = 28_001;

/// The table of those of programs that are selected.
const PROGRAMS: u32 = 28_002;

/// The mark of the sockets of these programs.
pub(crate) const MARK: u32 = 28_001;

/// The priority of the first rule of a client: after those of the user, which begin at 1, and before the table [`MAIN`], at
/// 32766.
const PRIORITY: u32 = 28_001;

/// The ports of DNS, in clear (RFC 1035) and over TLS and QUIC (RFC 7858; RFC 9250).
const DNS_PORTS: [u16; 2] = [53, 853];

/// Room for an answer, which repeats the request.
const ANSWER: usize = 4096;

/// The network configuration of this host, or of the namespace of the thread that opens it.
pub struct Routing {
    socket: Socket,
    sent: u32,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// That of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// All of its addresses.
    pub fn all(self) -> IpNet {
        match self {
            Self::V4 => IpNet::V4(ipnet::Ipv4Net::default()),
            Self::V6 => IpNet::V6(ipnet::Ipv6Net::default()),
        }
    }

    fn number(self) -> AddressFamily {
        match self {
            Self::V4 => AddressFamily::Inet,
            Self::V6 => AddressFamily::Inet6,
        }
    }
}

/// A rule: packets to `to` follow the routes of `table`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The family of the packets.
    pub family: Family,
    /// Its place among all rules; the lowest is first.
    pub priority: u32,
    /// Destinations; `None` for all of the family.
    pub to: Option<IpNet>,
    /// The table.
    pub table: u32,
    /// Whether default routes of the table do not count.
    pub no_default: bool,
    /// The destination port of UDP and TCP; `None` for all packets.
    #[serde(default)]
    pub port: Option<u16>,
    /// The mark of the packets; `None` for all.
    #[serde(default)]
    pub mark: Option<u32>,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Destinations.
    pub to: IpNet,
    /// The number of the device; `None`: the destinations are unreachable.
    pub device: Option<u32>,
    /// The table.
    pub table: u32,
}

/// The rules and routes of a client's tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Rules, in any order.
    pub rules: Vec<Rule>,
    /// Routes of the own table.
    pub routes: Vec<Route>,
}

/// The packets that go into a tunnel, and the table of their routes.
#[derive(Clone, Copy)]
struct Selected<'a> {
    /// The number of its device.
    device: u32,
    /// The families that it has.
    families: &'a [Family],
    /// The table of its routes.
    table: u32,
    /// The mark of the packets; `None` for all.
    mark: Option<u32>,
    /// Families of which packets to other destinations are unreachable.
    confined: &'a [Family],
}

impl Plan {
    /// Packets to `destinations` go into the tunnel of `device`; those to `server` do not, nor those to networks for which this
    /// host has a route other than the default one, unless they are among `destinations` by name.
    ///
    /// Destinations are unreachable if the tunnel has `families` without theirs, and when the device is gone, as after the client was
    /// killed: nothing passes beside the tunnel.
    pub fn new(server: IpAddr, device: u32, families: &[Family], destinations: &[IpNet]) -> Self {
        let selected = Selected {
            device,
            families,
            table: TABLE,
            mark: None,
            confined: &[],
        };
        Self::of(server, destinations, selected)
    }

    /// Has packets of selected programs to `destinations` go into the tunnel as well, by the rules of [`new`](Self::new). Other
    /// destinations of `confined` families are unreachable for them.
    #[must_use]
    pub fn with_programs(
        self,
        server: IpAddr,
        device: u32,
        families: &[Family],
        destinations: &[IpNet],
        confined: &[Family],
    ) -> Self {
        let selected = Selected {
            device,
            families,
            table: PROGRAMS,
            mark: Some(MARK),
            confined,
        };
        let programs = Self::of(server, destinations, selected);
        self.with(&programs.without(&self))
    }

    fn of(server: IpAddr, destinations: &[IpNet], selected: Selected<'_>) -> Self {
        let Selected {
            device,
            families,
            table: own,
            mark,
            confined,
        } = selected;
        let mut plan = Self::default();
        let of_server = Family::of(server);
        for family in Family::ALL {
            let destinations = destinations
                .iter()
                .filter(|to| Family::of(to.addr()) == family);
            let destinations: BTreeSet<_> = destinations.copied().collect();
            let is_confined = confined.contains(&family);
            if destinations.is_empty() && !is_confined {
                continue;
            }
            let rule = |at, to, table, no_default| Rule {
                family,
                priority: PRIORITY + at,
                to,
                table,
                no_default,
                port: None,
                mark,
            };
            if family == of_server {
                let to_server = rule(0, Some(server.into()), MAIN, false);
                let of_all = Rule {
                    mark: None,
                    ..to_server
                };
                plan.rules.push(of_all);
            }
            if is_confined || destinations.contains(&family.all()) {
                plan.rules.push(rule(2, None, MAIN, true));
            }
            plan.rules.push(rule(3, None, own, false));
            let device = families.contains(&family).then_some(device);
            // The last is used when there is no other.
            let devices = device.map(Some).into_iter().chain([None]);
            let routes = |to| {
                devices.clone().map(move |device| Route {
                    to,
                    device,
                    table: own,
                })
            };
            let unreachable = Route {
                to: family.all(),
                device: None,
                table: own,
            };
            let rest = is_confined && !destinations.contains(&family.all());
            plan.routes
                .extend(destinations.into_iter().flat_map(routes));
            plan.routes.extend(rest.then_some(unreachable));
        }
        plan
    }

    /// Has queries of DNS go into a tunnel of all packets as well if they are for resolvers on networks for which this host has a
    /// route of its own.
    #[must_use]
    pub fn with_all_queries(mut self) -> Self {
        let all = self.rules.iter().filter(|rule| rule.no_default);
        let queries = all.flat_map(|rule| {
            DNS_PORTS.map(|port| Rule {
                priority: PRIORITY + 1,
                table: if rule.mark.is_some() { PROGRAMS } else { TABLE },
                no_default: false,
                port: Some(port),
                ..*rule
            })
        });
        let queries: Vec<_> = queries.collect();
        self.rules.extend(queries);
        self
    }
}

impl Plan {
    /// Whether it changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.routes.is_empty()
    }

    /// The rules and routes that `other` does not have.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let rules = self.rules.iter().filter(|rule| !other.rules.contains(rule));
        let routes = self
            .routes
            .iter()
            .filter(|route| !other.routes.contains(route));
        Self {
            rules: rules.copied().collect(),
            routes: routes.copied().collect(),
        }
    }

    /// These rules and routes, and those of `other`, which has none of them.
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self {
            rules: [&self.rules[..], &other.rules].concat(),
            routes: [&self.routes[..], &other.routes].concat(),
        }
    }
}

impl Routing {
    /// Opens a socket for requests.
    ///
    /// # Errors
    /// The system refuses a socket.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sent: 0 })
    }

    /// Switches a device on, with packets of at most `mtu` bytes.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn set_up(&mut self, device: u32, mtu: u16) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = device;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = vec![LinkAttribute::Mtu(mtu.into())];
        self.ask(0, RouteNetlinkMessage::SetLink(message))
    }

    /// Gives a device an address, and a route to its prefix.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn add_address(&mut self, device: u32, address: IpNet) -> io::Result<()> {
        let message = RouteNetlinkMessage::NewAddress(address_message(device, address));
        self.ask(NLM_F_CREATE | NLM_F_EXCL, message)
    }

    /// Takes an address from a device.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn remove_address(&mut self, device: u32, address: IpNet) -> io::Result<()> {
        let message = RouteNetlinkMessage::DelAddress(address_message(device, address));
        self.ask(0, message)
    }

    /// Adds all rules and routes, or none.
    ///
    /// # Errors
    /// That of the kernel; [`io::ErrorKind::AlreadyExists`] if one is there.
    pub fn apply(&mut self, plan: &Plan) -> io::Result<()> {
        self.apply_over(plan, &Plan::default())
    }

    /// The same where rules and routes of `left` may be there.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub(crate) fn apply_over(&mut self, plan: &Plan, left: &Plan) -> io::Result<()> {
        let mut added = Plan::default();
        let applied = self.add_all(plan, left, &mut added);
        if applied.is_err() {
            // Those of others stay.
            let _ = self.remove(&added);
        }
        applied
    }

    fn add_all(&mut self, plan: &Plan, left: &Plan, added: &mut Plan) -> io::Result<()> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let is_there = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        for route in &plan.routes {
            match self.ask(flags, RouteNetlinkMessage::NewRoute(route_message(route))) {
                Err(error) if is_there(&error) && left.routes.contains(route) => {}
                made => {
                    made?;
                    added.routes.push(*route);
                }
            }
        }
        for rule in &plan.rules {
            match self.ask(flags, RouteNetlinkMessage::NewRule(rule_message(rule))) {
                Err(error) if is_there(&error) && left.rules.contains(rule) => {}
                made => {
                    made?;
                    added.rules.push(*rule);
                }
            }
        }
        Ok(())
    }

    /// Removes all rules and routes that are there.
    ///
    /// # Errors
    /// That of the kernel, for one that is there.
    pub fn remove(&mut self, plan: &Plan) -> io::Result<()> {
        let rules = plan.rules.iter().map(rule_message);
        let rules = rules.map(RouteNetlinkMessage::DelRule);
        let routes = plan.routes.iter().map(route_message);
        let routes = routes.map(RouteNetlinkMessage::DelRoute);
        let mut first = Ok(());
        for message in rules.chain(routes) {
            let removed = match self.ask(0, message) {
                Err(error) if is_missing(&error) => Ok(()),
                removed => removed,
            };
            // The others are removed nevertheless.
            first = first.and(removed);
        }
        first
    }

    /// Whether packets to `address` are for this host itself.
    ///
    /// # Errors
    /// That of the kernel; there may be no route.
    pub fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        let mut message = RouteMessage::default();
        message.header.address_family = Family::of(address).number();
        message.header.destination_prefix_length = IpNet::from(address).prefix_len();
        message.attributes = vec![RouteAttribute::Destination(address.into())];
        let answer = self.exchange(NLM_F_REQUEST, RouteNetlinkMessage::GetRoute(message))?;
        match answer {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => {
                // Broadcasts and the like are for nobody else either.
                Ok(route.header.kind != RouteType::Unicast)
            }
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(unexpected()),
        }
    }

    /// Whether a route leads to `remote` by a device, from an address of it.
    ///
    /// # Errors
    /// The kernel sends something else than an answer.
    pub fn leads_to(&mut self, remote: IpAddr, device: u32, source: IpAddr) -> io::Result<bool> {
        let mut message = RouteMessage::default();
        message.header.address_family = Family::of(remote).number();
        message.header.destination_prefix_length = IpNet::from(remote).prefix_len();
        message.header.source_prefix_length = IpNet::from(source).prefix_len();
        // Otherwise the kernel takes destinations without a route for neighbors on the link.
        message.header.flags = RouteFlags::FibMatch;
        message.attributes = vec![
            RouteAttribute::Destination(remote.into()),
            RouteAttribute::Source(source.into()),
            RouteAttribute::Oif(device),
        ];
        match self.exchange(NLM_F_REQUEST, RouteNetlinkMessage::GetRoute(message))? {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => {
                Ok(route.header.kind == RouteType::Unicast)
            }
            NetlinkPayload::Error(_) => Ok(false),
            _ => Err(unexpected()),
        }
    }

    /// Sends a request, and waits until the kernel has carried it out.
    fn ask(&mut self, flags: u16, message: RouteNetlinkMessage) -> io::Result<()> {
        match self.exchange(NLM_F_REQUEST | NLM_F_ACK | flags, message)? {
            NetlinkPayload::Error(error) => match error.code {
                None => Ok(()),
                Some(_) => Err(error.to_io()),
            },
            _ => Err(unexpected()),
        }
    }

    /// Sends a message, and returns the answer of the kernel.
    fn exchange(
        &mut self,
        flags: u16,
        message: RouteNetlinkMessage,
    ) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        self.sent += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sent;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answer = Vec::with_capacity(ANSWER);
        self.socket.recv(&mut answer, 0)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
        let answer = answer.map_err(io::Error::other)?;
        match answer.header.sequence_number == self.sent {
            true => Ok(answer.payload),
            false => Err(unexpected()),
        }
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the kernel sent an unexpected answer")
}

/// Whether a rule, route or device that is to be removed is not there: ENOENT, ESRCH, ENODEV.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(2 | 3 | 19))
}

fn address_message(device: u32, address: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = Family::of(address.addr()).number();
    message.header.prefix_len = address.prefix_len();
    message.header.index = device;
    message.attributes = vec![
        AddressAttribute::Local(address.addr()),
        AddressAttribute::Address(address.addr()),
    ];
    if matches!(address.addr(), IpAddr::V4(address) if address.is_link_local()) {
        // It is no source of connections to other hosts.
        message.header.scope = AddressScope::Host;
    }
    if address.addr().is_ipv6() {
        // Nobody else is on the link.
        message.header.flags = AddressHeaderFlags::Nodad;
        message
            .attributes
            .push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    message
}

fn rule_message(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = rule.family.number();
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Priority(rule.priority),
        RuleAttribute::Table(rule.table),
    ];
    if let Some(to) = rule.to {
        message.header.dst_len = to.prefix_len();
        message
            .attributes
            .push(RuleAttribute::Destination(to.addr()));
    }
    if let Some(port) = rule.port {
        let range = RulePortRange {
            start: port,
            end: port,
        };
        message
            .attributes
            .push(RuleAttribute::DestinationPortRange(range));
    }
    if let Some(mark) = rule.mark {
        message.attributes.push(RuleAttribute::FwMark(mark));
        message.attributes.push(RuleAttribute::FwMask(u32::MAX));
    }
    if rule.no_default {
        message.attributes.push(RuleAttribute::SuppressPrefixLen(0));
    }
    message
}

fn route_message(route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = Family::of(route.to.addr()).number();
    message.header.destination_prefix_length = route.to.prefix_len();
    message.header.protocol = RouteProtocol::Static;
    message.attributes = vec![
        RouteAttribute::Destination(route.to.addr().into()),
        RouteAttribute::Table(route.table),
    ];
    match route.device {
        Some(device) => {
            message.header.kind = RouteType::Unicast;
            message.header.scope = RouteScope::Link;
            message.attributes.push(RouteAttribute::Oif(device));
        }
        None => {
            message.header.kind = RouteType::Unreachable;
            message.header.scope = RouteScope::Universe;
            // Of the lowest preference.
            message.attributes.push(RouteAttribute::Priority(u32::MAX));
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(families: &[Family], destinations: &[&str]) -> Plan {
        let destinations: Vec<_> = destinations.iter().map(|to| to.parse().unwrap()).collect();
        Plan::new("192.0.2.1".parse().unwrap(), 7, families, &destinations)
    }

    #[test]
    fn all_packets_but_those_of_the_tunnel_itself_go_into_it() {
        let plan = plan(&Family::ALL, &["0.0.0.0/0", "::/0"]);
        let v4: Vec<_> = plan
            .rules
            .iter()
            .filter(|rule| rule.family == Family::V4)
            .map(|rule| (rule.to, rule.table, rule.no_default))
            .collect();
        let server = "192.0.2.1/32".parse().unwrap();
        let expected = [
            (Some(server), MAIN, false),
            (None, MAIN, true),
            (None, TABLE, false),
        ];
        assert_eq!(v4, expected);
        let devices: Vec<_> = plan.routes.iter().map(|route| route.device).collect();
        assert_eq!(devices, [Some(7), None, Some(7), None]);
    }

    #[test]
    fn queries_go_into_a_tunnel_of_all_packets_before_the_other_routes_count() {
        let all = plan(&Family::ALL, &["0.0.0.0/0", "::/0"]).with_all_queries();
        let of_main = all.rules.iter().find(|rule| rule.no_default).unwrap();
        let queries = all.rules.iter().filter(|rule| rule.port == Some(53));
        let queries: Vec<_> = queries.collect();
        assert_eq!(queries.len(), 2);
        let is_before = |rule: &&Rule| rule.priority < of_main.priority && rule.table == TABLE;
        assert!(queries.iter().all(is_before), "{queries:?}");
        let some = plan(&Family::ALL, &["10.0.0.0/8"]);
        assert_eq!(some.clone().with_all_queries(), some);
    }

    #[test]
    fn a_family_that_the_tunnel_does_not_have_is_unreachable() {
        let plan = plan(&[Family::V4], &["0.0.0.0/0", "::/0"]);
        let v6 = plan.routes.iter().filter(|route| route.to.addr().is_ipv6());
        let devices: Vec<_> = v6.map(|route| route.device).collect();
        assert_eq!(devices, [None]);
    }

    #[test]
    fn packets_of_programs_follow_routes_of_their_own() {
        let server = "192.0.2.1".parse().unwrap();
        let all = Family::ALL.map(Family::all);
        let some = plan(&Family::ALL, &["10.0.0.0/8"]);
        let both = some
            .clone()
            .with_programs(server, 7, &Family::ALL, &all, &Family::ALL);
        let marked: Vec<_> = both
            .rules
            .iter()
            .filter(|rule| rule.family == Family::V4 && rule.mark == Some(MARK))
            .map(|rule| (rule.to, rule.table, rule.no_default))
            .collect();
        assert_eq!(marked, [(None, MAIN, true), (None, PROGRAMS, false)]);
        let to_server = both.rules.iter().filter(|rule| rule.to.is_some());
        assert_eq!(to_server.count(), 1);
        let of_programs = both.without(&some).routes;
        assert!(of_programs.iter().all(|route| route.table == PROGRAMS));
        let queries = both.with_all_queries().rules;
        let queries: Vec<_> = queries.iter().filter(|rule| rule.port.is_some()).collect();
        let is_marked = |rule: &&&Rule| rule.mark == Some(MARK) && rule.table == PROGRAMS;
        assert_eq!(queries.iter().filter(is_marked).count(), 4);
    }

    #[test]
    fn programs_reach_nothing_that_the_server_does_not_carry() {
        let server = "192.0.2.1".parse().unwrap();
        let carried = ["10.0.0.0/8", "10.0.0.0/8"].map(|text| text.parse().unwrap());
        let plan = Plan::default().with_programs(server, 7, &Family::ALL, &carried, &Family::ALL);
        let routes: Vec<_> = plan.routes.iter().map(|it| (it.to, it.device)).collect();
        let expected = [
            (carried[0], Some(7)),
            (carried[0], None),
            (Family::V4.all(), None),
            (Family::V6.all(), None),
        ];
        assert_eq!(routes, expected);
        for family in Family::ALL {
            let own = plan.rules.iter().filter(|rule| rule.family == family);
            let marked: Vec<_> = own
                .filter(|rule| rule.mark == Some(MARK))
                .map(|rule| (rule.table, rule.no_default))
                .collect();
            assert_eq!(marked, [(MAIN, true), (PROGRAMS, false)]);
        }
    }

    #[test]
    fn with_some_destinations_the_others_keep_their_routes() {
        let plan = plan(&Family::ALL, &["10.0.0.0/8"]);
        assert_eq!(plan.routes.len(), 2);
        assert!(plan.rules.iter().all(|rule| rule.family == Family::V4));
        assert!(plan.rules.iter().all(|rule| !rule.no_default));
    }
}
