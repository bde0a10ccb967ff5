//! Sockets made of memory.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::task::{Context, Poll};

use marline::runtime::{RecvMeta, UdpSocket};
use marline::{EcnCodepoint, Transmit};
use marline_link::{Ecn, Packet, Time};

use super::datagram::{Datagram, HEADER};
use super::host::Host;
use super::sockets::ANY;

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
        let inbox = state.sockets.inbox(self.number);
        let mut filled = 0;
        for (buffer, meta) in buffers.iter_mut().zip(meta) {
            let Some(packet) = inbox.pop() else {
                break;
            };
            let Datagram {
                source,
                destination,
                payload,
            } = packet.body;
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
        inbox.wait(cx.waker());
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
        let mut inbox = state.sockets.close(self.number);
        let payloads = std::iter::from_fn(|| inbox.pop()).map(|packet| packet.body.payload);
        state.spare.extend(payloads);
        drop(state);
        // Dropping a waker may drop a task, and that another socket.
        drop(inbox);
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
