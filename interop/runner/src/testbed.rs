//! The testbed between client and server, and its observations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;

use anyhow::Context as _;
use interop_relay::{Config, Relay, Report};

use crate::cases::{Case, Links};
use crate::network::Network;

/// The port of a server on a separate host.
const PORT: u16 = 4433;

/// The connectivity between client and server.
pub(crate) enum Testbed {
    /// Loopback, with a relay.
    Relay {
        listen: SocketAddr,
        relay: RunningRelay,
        several_addresses: bool,
    },
    /// Two links between two hosts.
    Links(Network),
}

/// Observations of a testbed.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) relay: Option<Report>,
    pub(crate) links: Option<Links>,
}

impl Testbed {
    /// Sets up the testbed of `case`; returns the reason if this machine cannot.
    pub(crate) fn build(case: &Case, seed: u64) -> anyhow::Result<Result<Self, String>> {
        if case.two_links {
            return Network::start().map(|network| network.map(Self::Links));
        }
        let listen = free_address(case.ipv6)?;
        let mut config = Config::new(free_address(case.ipv6)?, listen);
        config.seed = seed;
        case.shape(&mut config);
        Ok(Ok(Self::Relay {
            listen,
            relay: RunningRelay::start(config)?,
            several_addresses: case.several_addresses,
        }))
    }

    /// Where the server listens.
    pub(crate) fn listen(&self) -> SocketAddr {
        match self {
            Self::Relay { listen, .. } => *listen,
            Self::Links(network) => SocketAddr::new(network.server_address(), PORT),
        }
    }

    /// The address that the client connects to.
    pub(crate) fn target(&self) -> SocketAddr {
        match self {
            Self::Relay { relay, .. } => relay.address,
            Self::Links(_) => self.listen(),
        }
    }

    /// The client's addresses, if it has several.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        match self {
            Self::Relay {
                several_addresses, ..
            } => {
                let addresses = [1, 2].map(|last| Ipv4Addr::new(127, 0, 0, last).into());
                addresses
                    .into_iter()
                    .filter(|_| *several_addresses)
                    .collect()
            }
            Self::Links(network) => network.client_addresses(),
        }
    }

    /// Starts a program on the server's or the client's side.
    pub(crate) fn spawn(&self, serves: bool, command: &mut Command) -> std::io::Result<Child> {
        match self {
            Self::Relay { .. } => command.spawn(),
            Self::Links(network) => network.spawn(serves, command),
        }
    }

    pub(crate) fn finish(self) -> anyhow::Result<Seen> {
        Ok(match self {
            Self::Relay { relay, .. } => Seen {
                relay: Some(relay.finish()?),
                links: None,
            },
            Self::Links(network) => Seen {
                relay: None,
                links: Some(network.finish()),
            },
        })
    }
}

/// A relay on a separate thread.
pub(crate) struct RunningRelay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<std::io::Result<Report>>,
}

impl RunningRelay {
    fn start(config: Config) -> anyhow::Result<Self> {
        let relay = Relay::bind(config).context("relay")?;
        let address = relay.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&stop);
        let thread = thread::spawn(move || relay.run(&watched));
        Ok(Self {
            address,
            stop,
            thread,
        })
    }

    fn finish(self) -> anyhow::Result<Report> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(report) => report.context("relay"),
            Err(_) => anyhow::bail!("the relay panicked"),
        }
    }
}

/// A loopback address whose UDP port is free, and below the range the system gives to clients.
fn free_address(ipv6: bool) -> anyhow::Result<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    let ip: IpAddr = if ipv6 {
        Ipv6Addr::LOCALHOST.into()
    } else {
        Ipv4Addr::LOCALHOST.into()
    };
    // Concurrent runners start at different ports.
    let start = (std::process::id().wrapping_mul(509) % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let port = FIRST + (NEXT.fetch_add(1, Ordering::Relaxed) % COUNT + start) % COUNT;
        let address = SocketAddr::new(ip, port);
        if UdpSocket::bind(address).is_ok() {
            return Ok(address);
        }
    }
    anyhow::bail!("no free port")
}
