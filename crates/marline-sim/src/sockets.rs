//! The sockets of all hosts and their received packets.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::task::Waker;

use marline_link::Packet;
use slab::Slab;

use crate::datagram::Datagram;
use crate::fabric::Node;

/// First ephemeral port, for sockets bound to port 0 (RFC 6335, section 6).
const FIRST_EPHEMERAL: u16 = 49_152;

/// A socket bound to this address receives packets to any address of its host.
pub(crate) const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// All sockets of a simulation.
pub(crate) struct Sockets {
    open: Slab<Inbox>,
    bound: BTreeMap<(Node, u16, Ipv4Addr), usize>,
    /// Port at which the search for a free one starts, by node.
    next_port: Vec<u16>,
}

/// A bound socket.
pub(crate) struct Bound {
    pub(crate) number: usize,
    /// Local address, with the assigned port.
    pub(crate) local: SocketAddrV4,
}

/// A socket on which a task waits for packets.
pub(crate) struct Reader {
    pub(crate) host: Node,
    pub(crate) local: SocketAddrV4,
}

/// The packets in the receive buffer of a socket.
pub(crate) struct Inbox {
    host: Node,
    local: SocketAddrV4,
    packets: VecDeque<Packet<Datagram>>,
    /// Bytes of payload in `packets`.
    bytes: usize,
    reader: Option<Waker>,
}

impl Sockets {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            open: Slab::new(),
            bound: BTreeMap::new(),
            next_port: vec![FIRST_EPHEMERAL; nodes],
        }
    }

    /// Binds a socket of `host` to `local`, or to the next free port if that is 0.
    pub(crate) fn bind(&mut self, host: Node, mut local: SocketAddrV4) -> io::Result<Bound> {
        if local.port() == 0 {
            local.set_port(self.free_port(host, *local.ip())?);
        }
        if !self.is_free(host, local) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let number = self.open.insert(Inbox {
            host,
            local,
            packets: VecDeque::new(),
            bytes: 0,
            reader: None,
        });
        self.bound.insert((host, local.port(), *local.ip()), number);
        Ok(Bound { number, local })
    }

    fn is_free(&self, host: Node, local: SocketAddrV4) -> bool {
        let at = |ip| (host, local.port(), ip);
        if *local.ip() == ANY {
            let mut same_port = self.bound.range(at(ANY)..=at(Ipv4Addr::BROADCAST));
            same_port.next().is_none()
        } else {
            ![*local.ip(), ANY]
                .iter()
                .any(|&ip| self.bound.contains_key(&at(ip)))
        }
    }

    /// The next free port, counting up.
    fn free_port(&mut self, host: Node, ip: Ipv4Addr) -> io::Result<u16> {
        for _ in FIRST_EPHEMERAL..=u16::MAX {
            let next = &mut self.next_port[host.index()];
            let port = *next;
            *next = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
            if self.is_free(host, SocketAddrV4::new(ip, port)) {
                return Ok(port);
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// The socket that [`bind`](Self::bind) assigned this number.
    pub(crate) fn inbox(&mut self, number: usize) -> &mut Inbox {
        &mut self.open[number]
    }

    /// Frees the number and the address of a socket; returns its unread packets.
    pub(crate) fn close(&mut self, number: usize) -> Inbox {
        let inbox = self.open.remove(number);
        let local = inbox.local;
        self.bound.remove(&(inbox.host, local.port(), *local.ip()));
        inbox
    }

    /// The socket of `host` that listens at `address`.
    pub(crate) fn find(&mut self, host: Node, address: SocketAddrV4) -> Option<&mut Inbox> {
        let at = |ip| self.bound.get(&(host, address.port(), ip));
        let number = *at(*address.ip()).or_else(|| at(ANY))?;
        self.open.get_mut(number)
    }

    /// The sockets on which a task waits for packets.
    pub(crate) fn readers(&self) -> impl Iterator<Item = Reader> {
        let inboxes = self.open.iter().map(|(_, inbox)| inbox);
        inboxes
            .filter(|inbox| inbox.reader.is_some())
            .map(|inbox| Reader {
                host: inbox.host,
                local: inbox.local,
            })
    }
}

impl Inbox {
    /// Buffers a packet, and returns the task that waits for one. Returns the packet if more than
    /// `capacity` bytes of payload would be buffered.
    pub(crate) fn deliver(
        &mut self,
        packet: Packet<Datagram>,
        capacity: usize,
    ) -> Result<Option<Waker>, Packet<Datagram>> {
        let bytes = self.bytes + packet.body.payload.len();
        if bytes > capacity {
            return Err(packet);
        }
        self.bytes = bytes;
        self.packets.push_back(packet);
        Ok(self.reader.take())
    }

    /// The oldest packet.
    pub(crate) fn pop(&mut self) -> Option<Packet<Datagram>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.body.payload.len();
        Some(packet)
    }

    /// Sets the waker of the next packet, which replaces any earlier one.
    pub(crate) fn wait(&mut self, reader: &Waker) {
        match &mut self.reader {
            Some(known) => known.clone_from(reader),
            None => self.reader = Some(reader.clone()),
        }
    }
}
