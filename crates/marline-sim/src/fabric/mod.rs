//! Networks of hosts, routers and links.
//!
//! A [`Plan`] names nodes and joins them by media; [`Plan::build`] checks it, assigns an address to every
//! interface of a host, computes the routes and creates a [`Fabric`]. Like its links, a fabric has no clock
//! and no sockets: packets are sent with the current time, and events are returned with their time. The
//! simulator drives it with virtual time, the emulator with real time.
//!
//! ```
//! use std::net::IpAddr;
//!
//! use marline_sim::fabric::{Event, Plan, Routed};
//! use marline_link::{Exit, Link, Packet, Time};
//!
//! /// The content of a packet: its source and its destination.
//! #[derive(Debug)]
//! struct Letter(IpAddr, IpAddr);
//!
//! impl Routed for Letter {
//!     fn source(&self) -> IpAddr {
//!         self.0
//!     }
//!     fn destination(&self) -> IpAddr {
//!         self.1
//!     }
//! }
//!
//! /// A link without delay.
//! #[derive(Default)]
//! struct Wire(Option<Exit<Letter>>);
//!
//! impl Link<Letter> for Wire {
//!     fn push(&mut self, now: Time, packet: Packet<Letter>) {
//!         self.0 = Some(Exit::arrived(now, packet));
//!     }
//!     fn pop(&mut self, _now: Time) -> Option<Exit<Letter>> {
//!         self.0.take()
//!     }
//!     fn next_event(&self) -> Option<Time> {
//!         self.0.as_ref().map(|exit| exit.at)
//!     }
//! }
//!
//! let mut plan = Plan::new();
//! let (client, server) = (plan.host("client"), plan.host("server"));
//! let wires = marline_link::Duplex::new(Box::new(Wire::default()), Box::new(Wire::default()));
//! plan.join("wires", Box::new(wires), &[client, server])?;
//! let mut fabric = plan.build()?;
//!
//! let letter = Letter(fabric.addresses(client)[0], fabric.addresses(server)[0]);
//! fabric.send(Time::ZERO, client, Packet::new(100, letter));
//! assert!(matches!(
//!     fabric.poll(Time::ZERO),
//!     Some(Event::Arrived { node, .. }) if node == server
//! ));
//! # Ok::<(), marline_sim::fabric::PlanError>(())
//! ```

mod changing;
mod nat;
mod network;
pub mod pcap;
mod plan;
mod routes;
mod tap;
mod traffic;

use std::net::IpAddr;

pub use self::changing::{Changing, Switch};
pub use self::nat::Nat;
pub use self::network::{Event, Fabric};
pub use self::plan::{Plan, PlanError, SharedLink};
pub use self::tap::{Filter, PacketEvent, Tap, Verdict};
pub use self::traffic::Traffic;
pub use marline_link::EcmpHash;

/// A host or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(u32);

impl Node {
    /// Index of the node, from 0, in the order of the plan.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A medium that joins nodes: a cable, a radio channel, or a link of a channel that several links share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediumId(u32);

impl MediumId {
    /// Index of the medium, from 0, in the order of the plan.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The addresses of a packet.
pub trait Routed {
    /// Whether [`udp_ports`](Self::udp_ports) and [`set_udp_ports`](Self::set_udp_ports) are implemented.
    const HAS_PORTS: bool = false;

    /// Source address, which is that of the interface by which the packet leaves its sender.
    fn source(&self) -> IpAddr;

    /// Destination address.
    fn destination(&self) -> IpAddr;

    /// UDP ports of source and destination; `None` if it has none.
    fn udp_ports(&self) -> Option<[u16; 2]> {
        None
    }

    /// Replaces the ports of source and destination.
    fn set_udp_ports(&mut self, _ports: [u16; 2]) {}
}

#[cfg(test)]
mod tests;
