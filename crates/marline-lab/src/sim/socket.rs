//! Sockets made of memory.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::task::{Context, Poll, Waker};

use marline::runtime::{RecvMeta, UdpSocket};
use marline::{EcnCodepoint, Transmit};
use marline_link::{Ecn, Packet, Time};
use slab::Slab;

use super::datagram::{Datagram, HEADER};
use super::host::Host;
use crate::fabric::Node;

/// The first of the ports that are given to those who do not ask for one (RFC 6335, section 6).
const FIRST_EPHEMERAL: u16 = 49_152;

/// Bound to this address, a socket hears what is sent to any address of its host.
const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// All sockets of a world.
pub(super) struct Sockets {
    open: Slab<Inbox>,
    bound: BTreeMap<(Node, u16, Ipv4Addr), usize>,
    /// By node: where the search for a free port begins.
    next_port: Vec<u16>,
}

/// What came for a socket.
pub(super) struct Inbox {
    host: Node,
    local: SocketAddrV4,
    packets: VecDeque<Packet<Datagram>>,
    /// Of payload in `packets`.
    bytes: usize,
    reader: Option<Waker>,
}

impl Sockets {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            open: Slab::new(),
            bound: BTreeMap::new(),
            next_port: vec![FIRST_EPHEMERAL; nodes],
        }
    }

    /// A socket of `host` at `local`, or at the next free port if that is 0.
    fn bind(&mut self, host: Node, mut local: SocketAddrV4) -> io::Result<(usize, SocketAddrV4)> {
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
        Ok((number, local))
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

    /// Ports are counted up.
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

    fn close(&mut self, number: usize) -> Inbox {
        let inbox = self.open.remove(number);
        let local = inbox.local;
        self.bound.remove(&(inbox.host, local.port(), *local.ip()));
        inbox
    }

    /// The socket of `host` that listens at `address`.
    pub(super) fn find(&mut self, host: Node, address: SocketAddrV4) -> Option<&mut Inbox> {
        let at = |ip| self.bound.get(&(host, address.port(), ip));
        let number = *at(*address.ip()).or_else(|| at(ANY))?;
        self.open.get_mut(number)
    }

    /// Sockets of which somebody waits to hear.
    pub(super) fn readers(&self) -> impl Iterator<Item = (Node, SocketAddrV4)> {
        let inboxes = self.open.iter().map(|(_, inbox)| inbox);
        inboxes
            .filter(|inbox| inbox.reader.is_some())
            .map(|inbox| (inbox.host, inbox.local))
    }
}

impl Inbox {
    /// Keeps a packet until it is read, and returns who waits for one; gives it back if `room` bytes
    /// are not enough.
    pub(super) fn deliver(
        &mut self,
        packet: Packet<Datagram>,
        room: usize,
    ) -> Result<Option<Waker>, Packet<Datagram>> {
        let bytes = self.bytes + packet.body.payload.len();
        if bytes > room {
            return Err(packet);
        }
        self.bytes = bytes;
        self.packets.push_back(packet);
        Ok(self.reader.take())
    }
}

/// One socket of a host.
pub(super) struct SimSocket {
    host: Host,
    local: SocketAddrV4,
    number: usize,
}

impl SimSocket {
    /// Binds `host` to `addr`.
    pub(super) fn bind(host: &Host, addr: SocketAddr) -> io::Result<Self> {
        let SocketAddr::V4(addr) = addr else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        if *addr.ip() != ANY && !host.addresses().contains(addr.ip()) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let sockets = &mut host.shared().lock().sockets;
        let (number, local) = sockets.bind(host.node(), addr)?;
        Ok(Self {
            host: host.clone(),
            local,
            number,
        })
    }

    /// From which address `transmit` is to be sent.
    fn source(&self, wanted: IpAddr, destination: SocketAddrV4) -> io::Result<Ipv4Addr> {
        let own = self.host.addresses();
        if let IpAddr::V4(wanted) = wanted
            && wanted != ANY
        {
            return match own.contains(&wanted) {
                true => Ok(wanted),
                false => Err(io::ErrorKind::AddrNotAvailable.into()),
            };
        }
        match (*self.local.ip(), own) {
            (ANY, [only]) => Ok(*only),
            (ANY, _) => {
                let state = self.host.shared().lock();
                let destination = IpAddr::V4(*destination.ip());
                match state.fabric.source_for(self.host.node(), destination) {
                    Some(IpAddr::V4(source)) => Ok(source),
                    _ => Err(io::ErrorKind::NetworkUnreachable.into()),
                }
            }
            (bound, _) => Ok(bound),
        }
    }
}

impl UdpSocket for SimSocket {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        let SocketAddr::V4(destination) = transmit.tuple.remote else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let ip = self.source(transmit.tuple.local.ip(), destination)?;
        let source = SocketAddrV4::new(ip, self.local.port());
        let shared = self.host.shared();
        let config = &shared.config;
        let flow = config
            .flow_hash
            .of(source.into(), destination.into(), Datagram::PROTOCOL);
        let segment = transmit.segment_size.unwrap_or(payload.len()).max(1);
        let now = Time::from_nanos(shared.now().as_nanos());
        let mut guard = shared.lock();
        let state = &mut *guard;
        if segment.min(payload.len()) + HEADER > config.mtu {
            state.statistics.too_large += 1;
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for bytes in payload.chunks(segment) {
            let mut payload = state.spare.pop().unwrap_or_default();
            payload.clear();
            payload.extend_from_slice(bytes);
            let packet = Packet {
                size: (bytes.len() + HEADER) as u32,
                flow,
                ecn: ecn(transmit.ecn),
                corrupted: None,
                body: Datagram {
                    source,
                    destination,
                    payload,
                },
            };
            state.statistics.packets_sent += 1;
            state.fabric.send(now, self.host.node(), packet);
        }
        Ok(())
    }

    fn poll_send_ready(&self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut guard = self.host.shared().lock();
        let state = &mut *guard;
        let inbox = &mut state.sockets.open[self.number];
        let mut filled = 0;
        for (buffer, meta) in buffers.iter_mut().zip(meta) {
            let Some(packet) = inbox.packets.pop_front() else {
                break;
            };
            let Datagram {
                source,
                destination,
                payload,
            } = packet.body;
            inbox.bytes -= payload.len();
            let len = payload.len().min(buffer.len());
            buffer[..len].copy_from_slice(&payload[..len]);
            state.spare.push(payload);
            *meta = RecvMeta {
                remote: source.into(),
                local_ip: Some(IpAddr::V4(*destination.ip())),
                len,
                stride: len,
                ecn: codepoint(packet.ecn),
            };
            filled += 1;
        }
        if filled > 0 {
            return Poll::Ready(Ok(filled));
        }
        match &mut inbox.reader {
            Some(known) => known.clone_from(cx.waker()),
            None => inbox.reader = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local.into())
    }

    fn max_gso_segments(&self) -> usize {
        self.host.shared().config.max_gso_segments
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        let mut state = self.host.shared().lock();
        let inbox = state.sockets.close(self.number);
        let payloads = inbox.packets.into_iter().map(|packet| packet.body.payload);
        state.spare.extend(payloads);
        drop(state);
        // Dropping a waker may drop a task, and that another socket.
        drop(inbox.reader);
    }
}

impl fmt::Debug for SimSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimSocket({} of {})", self.local, self.host.name())
    }
}

const fn ecn(mark: Option<EcnCodepoint>) -> Ecn {
    match mark {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}
