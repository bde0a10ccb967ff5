//! A client with two links to a server, each end in a network namespace of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline_lab::emu::{Emulation, IpPacket, become_capable};
use marline_link::queue::{DropTail, Limit};
use marline_link::{Chain, Delay, Duplex, Link, Rate};
use marline_sim::fabric::{EcmpHash, Fabric, MediumId, Node, PacketEvent, Plan, Verdict};

use crate::cases::{LinkTraffic, Links};

/// Rate of each link and direction.
const BITS_PER_SECOND: u64 = 20_000_000;
/// Queue limit as a time.
const QUEUE: Duration = Duration::from_millis(60);
/// One-way delay of the links.
const DELAYS: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(25)];

/// Gives this process the privileges for network namespaces, if possible. Call before starting threads.
pub(crate) fn prepare() {
    // If it fails, each cell reports that.
    let _ = become_capable();
}

/// Both hosts and their links, running.
pub(crate) struct Network {
    emulation: Emulation,
    client: Node,
    server: Node,
    seen: Arc<Mutex<Links>>,
}

impl Network {
    /// Starts the network; returns the reason if the machine or the user cannot.
    pub(crate) fn start() -> anyhow::Result<Result<Self, String>> {
        let (mut fabric, client, server, links) = plan()?;
        let seen = Arc::new(Mutex::new(Links::default()));
        let count = Arc::clone(&seen);
        fabric.tap(Box::new(move |event: &PacketEvent<'_, IpPacket>| {
            let link = links.iter().position(|link| event.medium == Some(*link));
            if let Some(link) = link
                && matches!(event.verdict, Verdict::Left)
            {
                let mut seen = count.lock().unwrap_or_else(PoisonError::into_inner);
                let LinkTraffic {
                    to_server,
                    to_client,
                } = &mut seen[link];
                *(if event.from == client {
                    to_server
                } else {
                    to_client
                }) += u64::from(event.packet.size);
            }
        }));
        match Emulation::start(fabric, EcmpHash::Mixed) {
            Ok(emulation) => Ok(Ok(Self {
                emulation,
                client,
                server,
                seen,
            })),
            Err(error) if error.is_missing_privilege() => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn server_address(&self) -> IpAddr {
        let mut addresses = self.emulation.addresses(self.server).iter();
        addresses
            .next()
            .copied()
            .unwrap_or(Ipv4Addr::LOCALHOST)
            .into()
    }

    /// One on each link.
    pub(crate) fn client_addresses(&self) -> Vec<IpAddr> {
        let addresses = self.emulation.addresses(self.client);
        addresses.iter().copied().map(IpAddr::from).collect()
    }

    /// Starts a program on the server, or the client.
    pub(crate) fn spawn(&self, serves: bool, command: &mut Command) -> io::Result<Child> {
        let host = if serves { self.server } else { self.client };
        self.emulation.spawn(host, command)
    }

    /// Stops the network; returns the traffic of the links.
    pub(crate) fn finish(self) -> Links {
        self.emulation.stop();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two links to a router, which is next to the server, so that the server has one address.
fn plan() -> anyhow::Result<(Fabric<IpPacket>, Node, Node, [MediumId; 2])> {
    let mut plan = Plan::new();
    let (client, server) = (plan.host("client"), plan.host("server"));
    let router = plan.router("router");
    let mut join = |name: &str, rate, delay, ends: [Node; 2]| {
        let wires = Duplex::new(wire(rate, delay), wire(rate, delay));
        plan.join(name, Box::new(wires), &ends)
    };
    let rate = Some(BITS_PER_SECOND);
    let links = [
        join("first", rate, DELAYS[0], [client, router])?,
        join("second", rate, DELAYS[1], [client, router])?,
    ];
    join("backbone", None, Duration::ZERO, [router, server])?;
    Ok((plan.build()?, client, server, links))
}

fn wire(rate: Option<u64>, delay: Duration) -> Box<dyn Link<IpPacket>> {
    let delay = Box::new(Delay::new(delay));
    match rate {
        Some(rate) => {
            let queue = Box::new(DropTail::new(Limit::time(QUEUE, rate)));
            Box::new(Chain::new(vec![Box::new(Rate::new(rate, queue)), delay]))
        }
        None => delay,
    }
}
