//! The UDP sockets of simulated hosts.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::task::{Context, Poll};

use marline::runtime::{RecvMeta, UdpSocket};
use marline::{EcnCodepoint, Transmit};
use marline_link::ecmp::host_hash;
use marline_link::{Ecn, Packet, Time};

use crate::datagram::{Datagram, HEADER};
use crate::host_info::HostInfo;
use crate::sockets::{ANY, Bound};
use crate::state::{Shared, State};

/// One socket of a host.
pub(crate) struct SimSocket {
    shared: Arc<Shared>,
    host: Arc<HostInfo>,
    local: SocketAddrV4,
    number: usize,
}

impl SimSocket {
    /// Binds a socket of `host` to `addr`.
    pub(crate) fn bind(
        shared: &Arc<Shared>,
        host: &Arc<HostInfo>,
        addr: SocketAddr,
    ) -> io::Result<Self> {
        let SocketAddr::V4(addr) = addr else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let state = &mut *shared.lock();
        let ip = *addr.ip();
        if ip != ANY && !(host.addresses.contains(&ip) && state.fabric.is_attached(ip.into())) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let Bound { number, local } = state.sockets.bind(host.node, addr)?;
        Ok(Self {
            shared: Arc::clone(shared),
            host: Arc::clone(host),
            local,
            number,
        })
    }

    /// The source address for the one that the caller requests.
    fn source(
        &self,
        state: &State,
        wanted: IpAddr,
        destination: SocketAddrV4,
    ) -> io::Result<Ipv4Addr> {
        let own = &self.host.addresses;
        let source = match (wanted, *self.local.ip(), &own[..]) {
            (IpAddr::V4(wanted), ..) if wanted != ANY => wanted,
            (_, ANY, [only]) => *only,
            (_, ANY, _) => {
                let destination = IpAddr::V4(*destination.ip());
                match state.fabric.source_for(self.host.node, destination) {
                    Some(IpAddr::V4(source)) => source,
                    _ => return Err(io::ErrorKind::NetworkUnreachable.into()),
                }
            }
            (_, bound, _) => bound,
        };
        match own.contains(&source) && state.fabric.is_attached(source.into()) {
            true => Ok(source),
            false => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }
}

impl UdpSocket for SimSocket {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        let SocketAddr::V4(destination) = transmit.tuple.remote else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let config = &self.shared.config;
        let segment = transmit.segment_size.unwrap_or(payload.len()).max(1);
        let now = Time::from_nanos(self.shared.now().as_nanos());
        let state = &mut *self.shared.lock();
        let ip = self.source(state, transmit.tuple.local.ip(), destination)?;
        let source = SocketAddrV4::new(ip, self.local.port());
        let flow = config
            .flow_hash
            .of(source.into(), destination.into(), Datagram::PROTOCOL);
        let hosts = [IpAddr::V4(ip), IpAddr::V4(*destination.ip())].map(host_hash);
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
                hosts,
                ecn: ecn(transmit.ecn),
                corrupted: None,
                body: Datagram {
                    source,
                    destination,
                    payload,
                },
            };
            state.statistics.packets_sent += 1;
            state.fabric.send(now, self.host.node, packet);
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
        let state = &mut *self.shared.lock();
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
        self.shared.config.max_gso_segments
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let mut inbox = state.sockets.close(self.number);
        let payloads = std::iter::from_fn(|| inbox.pop()).map(|packet| packet.body.payload);
        state.spare.extend(payloads);
        drop(state);
        // Dropping a waker may drop a task, and the task another socket.
        drop(inbox);
    }
}

impl fmt::Debug for SimSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimSocket({} of {})", self.local, self.host.name)
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
