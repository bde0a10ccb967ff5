//! Devices, addresses, rules and routes of a namespace, by netlink (`rtnetlink(7)`).
//!
//! Replaces `ip`, without the time that a program takes to start: on a kernel in virtual time, that was a quarter of
//! the cost of a short run.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

use super::netlink;

/// The index of the loopback device in every namespace.
pub(crate) const LOOPBACK: u32 = 1;

/// The table of routes that is looked up last.
pub(super) const MAIN: u32 = 254;

/// The length of a prefix that is an address.
const WHOLE: u8 = Ipv4Addr::BITS as u8;

/// Room for an answer, which repeats the request.
const ANSWER: usize = 4096;

/// The configuration of the namespace of the thread that opens it.
pub(crate) struct Routing {
    socket: Socket,
    sent: u32,
}

/// Sizes of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceSizes {
    /// The most bytes of a packet.
    pub(super) mtu: u32,
    /// Packets that it queues.
    pub(super) queue: u32,
}

/// A route to one address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) to: Ipv4Addr,
    /// The index of the device.
    pub(super) device: u32,
    /// The source of packets whose sender chose none.
    pub(super) source: Ipv4Addr,
    pub(super) table: u32,
}

impl Routing {
    /// Opens a socket for requests.
    ///
    /// # Errors
    /// The system refuses a socket.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = netlink::open(NETLINK_ROUTE)?;
        Ok(Self { socket, sent: 0 })
    }

    /// Switches a device on.
    ///
    /// # Errors
    /// That of the kernel.
    pub(crate) fn set_up(&mut self, device: u32) -> io::Result<()> {
        self.set_link(device, Vec::new())
    }

    /// The same, with sizes.
    ///
    /// # Errors
    /// That of the kernel.
    pub(super) fn set_up_with(&mut self, device: u32, sizes: DeviceSizes) -> io::Result<()> {
        let attributes = vec![
            LinkAttribute::Mtu(sizes.mtu),
            LinkAttribute::TxQueueLen(sizes.queue),
        ];
        self.set_link(device, attributes)
    }

    fn set_link(&mut self, device: u32, attributes: Vec<LinkAttribute>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = device;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = attributes;
        self.ask(0, RouteNetlinkMessage::SetLink(message))
    }

    /// Gives a device an address.
    ///
    /// # Errors
    /// That of the kernel.
    pub(super) fn add_address(&mut self, device: u32, address: Ipv4Addr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = WHOLE;
        message.header.index = device;
        message.attributes = vec![
            AddressAttribute::Local(address.into()),
            AddressAttribute::Address(address.into()),
        ];
        self.create(RouteNetlinkMessage::NewAddress(message))
    }

    /// Packets from `source` follow the routes of `table`.
    ///
    /// # Errors
    /// That of the kernel.
    pub(super) fn add_rule(&mut self, source: Ipv4Addr, table: u32) -> io::Result<()> {
        let mut message = RuleMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.src_len = WHOLE;
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Source(IpAddr::V4(source)),
            RuleAttribute::Table(table),
        ];
        self.create(RouteNetlinkMessage::NewRule(message))
    }

    /// Adds a route.
    ///
    /// # Errors
    /// That of the kernel.
    pub(super) fn add_route(&mut self, route: &Route) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = WHOLE;
        message.header.protocol = RouteProtocol::Boot;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(route.to.into()),
            RouteAttribute::Oif(route.device),
            RouteAttribute::PrefSource(route.source.into()),
            RouteAttribute::Table(route.table),
        ];
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(NLM_F_CREATE | NLM_F_EXCL, message)
    }

    /// Sends a request, and waits until the kernel has carried it out.
    fn ask(&mut self, flags: u16, message: RouteNetlinkMessage) -> io::Result<()> {
        self.sent += 1;
        netlink::send(&self.socket, self.sent, NLM_F_ACK | flags, message)?;
        let mut answer = Vec::with_capacity(ANSWER);
        self.socket.recv(&mut answer, 0)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
        let answer = answer.map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::Error(error) if answer.header.sequence_number == self.sent => {
                match error.code {
                    None => Ok(()),
                    Some(_) => Err(error.to_io()),
                }
            }
            _ => Err(io::Error::other("the kernel sent an unexpected answer")),
        }
    }
}
