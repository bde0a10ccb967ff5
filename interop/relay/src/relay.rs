//! The forwarding loop.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::amplification::Amplification;
use crate::config::{Config, Direction, Rebind};
use crate::impair::{Impairment, Outcome};
use crate::link::Link;
use crate::packet::{PublicFields, inspect};
use crate::report::{self, Report};
use crate::socket::{Ecn, Inbox, Socket};

/// Maximum number of client addresses; datagrams of others are not forwarded.
const MAX_FLOWS: usize = 4096;
/// Maximum number of connections that are counted.
const MAX_CONNECTIONS: usize = 4096;
/// Maximum time to sleep between checks of the stop flag.
const NAP: Duration = Duration::from_millis(50);
/// Longer than any case, short enough to add to a time.
const FOREVER: Duration = Duration::from_secs(1 << 20);
/// The socket clients send to; every other token is an upstream socket's.
const DOWNSTREAM: Token = Token(0);

/// A datagram in transit.
struct Datagram {
    flow: usize,
    ecn: Ecn,
    bytes: Vec<u8>,
}

/// One client address.
struct Flow {
    client: SocketAddr,
    upstream: Socket,
    token: Token,
    to_server_bytes: u64,
    to_client_bytes: u64,
    amplification: Amplification,
    /// Connection ID the client last sent to in a short header.
    destination_id: Vec<u8>,
    fresh_connection_id: Option<bool>,
}

/// A relay, bound and ready to run.
pub struct Relay {
    config: Config,
    poll: Poll,
    downstream: Socket,
    flows: Vec<Flow>,
    by_client: HashMap<SocketAddr, usize>,
    by_token: HashMap<Token, usize>,
    /// Former upstream sockets: kept open so that the system does not send ICMP errors, but never read.
    retired: Vec<Socket>,
    next_token: usize,
    /// Last byte of the next loopback address to send from.
    next_host: u8,
    links: [Link<Datagram>; 2],
    impairments: [Impairment; 2],
    /// When the first datagram arrived.
    start: Option<Instant>,
    next_rebind: Option<Instant>,
    /// Length of the server's connection IDs.
    server_id_length: Option<usize>,
    /// Source connection IDs of the clients' Initial packets.
    client_ids: HashSet<Vec<u8>>,
    report: Report,
}

impl Relay {
    /// Binds the address clients send to.
    ///
    /// # Errors
    /// If that address cannot be bound.
    pub fn bind(config: Config) -> io::Result<Self> {
        let poll = Poll::new()?;
        let downstream = Socket::bind(config.listen, poll.registry(), DOWNSTREAM)?;
        let both = [Direction::ToServer, Direction::ToClient];
        Ok(Self {
            poll,
            downstream,
            flows: Vec::new(),
            by_client: HashMap::new(),
            by_token: HashMap::new(),
            retired: Vec::new(),
            next_token: DOWNSTREAM.0 + 1,
            next_host: 2,
            links: both.map(|_| Link::new(&config)),
            impairments: both.map(|direction| Impairment::new(&config, direction)),
            start: None,
            next_rebind: None,
            server_id_length: None,
            client_ids: HashSet::new(),
            report: Report::default(),
            config,
        })
    }

    /// The address that clients send to.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.downstream.local_addr()
    }

    /// Forwards datagrams until `stop` is set.
    ///
    /// # Errors
    /// If waiting for the sockets fails.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<Report> {
        let mut inbox = Inbox::new();
        let mut events = Events::with_capacity(64);
        while !stop.load(Ordering::Relaxed) {
            if let Err(error) = self.poll.poll(&mut events, Some(self.nap()))
                && error.kind() != io::ErrorKind::Interrupted
            {
                return Err(error);
            }
            self.rebind_if_due()?;
            for event in &events {
                self.read(event.token(), &mut inbox);
            }
            self.deliver();
        }
        Ok(self.into_report())
    }

    /// The time to sleep. The poll counts whole milliseconds and rounds up: half a millisecond late is acceptable.
    fn nap(&self) -> Duration {
        let arrivals = self.links.iter().filter_map(Link::next_arrival);
        let next = arrivals.chain(self.next_rebind).min();
        next.map_or(NAP, |at| {
            at.saturating_duration_since(Instant::now()).min(NAP)
        })
    }

    /// Reads a socket until it is empty. Errors of a single read belong to earlier sends and are ignored.
    fn read(&mut self, token: Token, inbox: &mut Inbox) {
        let mut batch = Vec::new();
        loop {
            let socket = match self.by_token.get(&token) {
                Some(&flow) => &self.flows[flow].upstream,
                None if token == DOWNSTREAM => &self.downstream,
                None => return,
            };
            let received = inbox.receive(socket, |from, ecn, bytes| {
                batch.push((from, ecn, bytes.to_vec()));
            });
            for (from, ecn, bytes) in batch.drain(..) {
                if token == DOWNSTREAM {
                    self.on_client_datagram(from, ecn, bytes);
                } else if let Some(&flow) = self.by_token.get(&token) {
                    self.on_server_datagram(flow, ecn, bytes);
                }
            }
            if !received.unwrap_or(false) {
                return;
            }
        }
    }

    fn on_client_datagram(&mut self, client: SocketAddr, ecn: Ecn, bytes: Vec<u8>) {
        let Some(flow) = self.flow_of(client) else {
            return;
        };
        let seen = inspect(&bytes);
        self.report.to_server.came_in(bytes.len(), ecn, &seen);
        self.flows[flow].to_server_bytes += bytes.len() as u64;
        if seen.short {
            self.note_destination(flow, &bytes);
        }
        if let Some(id) = seen.source_id
            && seen.initial
            && self.client_ids.len() < MAX_CONNECTIONS
        {
            self.client_ids.insert(id.to_vec());
        }
        self.forward(Direction::ToServer, Datagram { flow, ecn, bytes });
    }

    fn on_server_datagram(&mut self, flow: usize, ecn: Ecn, bytes: Vec<u8>) {
        let seen = inspect(&bytes);
        if let Some(id) = seen.source_id
            && (seen.initial || seen.handshake)
        {
            self.server_id_length = Some(id.len());
        }
        self.report.to_client.came_in(bytes.len(), ecn, &seen);
        let entry = &mut self.flows[flow];
        entry.to_client_bytes += bytes.len() as u64;
        entry.amplification.answered(bytes.len());
        self.forward(Direction::ToClient, Datagram { flow, ecn, bytes });
    }

    /// Remembers the connection ID of a short header, and on a flow's first packet whether another flow used it.
    fn note_destination(&mut self, flow: usize, bytes: &[u8]) {
        let Some(id) = self.server_id_length.and_then(|n| bytes.get(1..1 + n)) else {
            return;
        };
        let first = self.flows[flow].to_server_bytes == bytes.len() as u64;
        if first && !id.is_empty() {
            let used = self.flows.iter().any(|other| other.destination_id == id);
            self.flows[flow].fresh_connection_id = Some(!used);
        }
        let known = &mut self.flows[flow].destination_id;
        known.clear();
        known.extend_from_slice(id);
    }

    /// Puts a datagram on the link unless it is to be lost.
    fn forward(&mut self, direction: Direction, mut datagram: Datagram) {
        let now = Instant::now();
        let start = *self.start.get_or_insert(now);
        if self.config.rebind.is_some() && self.next_rebind.is_none() {
            self.next_rebind = Some(start + seconds(self.config.rebind_first_s));
        }
        let traffic = match direction {
            Direction::ToServer => &mut self.report.to_server,
            Direction::ToClient => &mut self.report.to_client,
        };
        let index = direction as usize;
        let outcome = self.impairments[index].apply(&mut datagram.bytes);
        traffic.count(outcome);
        if matches!(outcome, Outcome::Lost | Outcome::Listed) {
            return;
        }
        if let Some(hole) = self.config.blackhole
            && hole.swallows(now - start)
        {
            traffic.swallowed += 1;
            return;
        }
        let bytes = datagram.bytes.len();
        if !self.links[index].push(now, bytes, datagram) {
            traffic.overflowed += 1;
        }
    }

    /// Sends everything that has arrived at the end of its link. A full socket drops datagrams, as any link does.
    fn deliver(&mut self) {
        let now = Instant::now();
        let [to_server, to_client] = &mut self.links;
        while let Some(Datagram { flow, ecn, bytes }) = to_server.pop(now) {
            let flow = &mut self.flows[flow];
            let seen: PublicFields<'_> = inspect(&bytes);
            flow.amplification.delivered(bytes.len(), &seen);
            let _ = flow.upstream.send(self.config.to, &bytes, ecn);
        }
        while let Some(Datagram { flow, ecn, bytes }) = to_client.pop(now) {
            let client = self.flows[flow].client;
            let _ = self.downstream.send(client, &bytes, ecn);
        }
    }

    fn flow_of(&mut self, client: SocketAddr) -> Option<usize> {
        if let Some(&flow) = self.by_client.get(&client) {
            return Some(flow);
        }
        if self.flows.len() >= MAX_FLOWS {
            return None;
        }
        let (upstream, token) = self.upstream(1).ok()?;
        let flow = self.flows.len();
        self.by_client.insert(client, flow);
        self.by_token.insert(token, flow);
        self.flows.push(Flow {
            client,
            upstream,
            token,
            to_server_bytes: 0,
            to_client_bytes: 0,
            amplification: Amplification::default(),
            destination_id: Vec::new(),
            fresh_connection_id: None,
        });
        Some(flow)
    }

    /// A new socket towards the server, from 127.0.0.`host` or ::1.
    fn upstream(&mut self, host: u8) -> io::Result<(Socket, Token)> {
        let token = Token(self.next_token);
        self.next_token += 1;
        let from: SocketAddr = match self.config.to {
            SocketAddr::V4(_) => (Ipv4Addr::new(127, 0, 0, host), 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::LOCALHOST, 0).into(),
        };
        let socket = Socket::bind(from, self.poll.registry(), token)?;
        Ok((socket, token))
    }

    fn rebind_if_due(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let (Some(kind), Some(due)) = (self.config.rebind, self.next_rebind) else {
            return Ok(());
        };
        if now < due {
            return Ok(());
        }
        self.next_rebind = Some(now + seconds(self.config.rebind_every_s));
        let host = match kind {
            Rebind::Port => 1,
            Rebind::Addr => {
                let host = self.next_host;
                self.next_host = if host == 254 { 2 } else { host + 1 };
                host
            }
        };
        for flow in 0..self.flows.len() {
            let (upstream, token) = self.upstream(host)?;
            self.by_token.remove(&self.flows[flow].token);
            self.by_token.insert(token, flow);
            self.flows[flow].token = token;
            let old = std::mem::replace(&mut self.flows[flow].upstream, upstream);
            self.retired.push(old);
        }
        self.report.rebinds += 1;
        Ok(())
    }

    fn into_report(mut self) -> Report {
        self.report.connections = self.client_ids.len() as u64;
        for flow in self.flows {
            self.report.amplification = self.report.amplification.max(flow.amplification.worst());
            self.report.flows.push(report::Flow {
                client: flow.client,
                to_server_bytes: flow.to_server_bytes,
                to_client_bytes: flow.to_client_bytes,
                fresh_connection_id: flow.fresh_connection_id,
            });
        }
        self.report
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).map_or(FOREVER, |time| time.min(FOREVER))
}

#[cfg(test)]
mod tests;
