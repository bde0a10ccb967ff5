//! UDP through tokio's reactor and quinn-udp's GSO, GRO, ECN and packet info.

#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    path = "socket/no_error_queue.rs"
)]
mod error_queue;
mod interfaces;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use marline_proto::{EcnCodepoint, Transmit};
use quinn_udp::UdpSocketState;
use tokio::io::Interest;

use self::error_queue::ErrorQueue;
use self::interfaces::InterfaceSockets;
use crate::runtime::{InterfaceAddress, RecvMeta, UdpSocket, UnreachableReport};

/// Requested size of socket buffers, in bytes: about 30 ms at 1 Gbit/s. The system may grant less.
const SOCKET_BUFFER: usize = 4 << 20;

/// The time for which packets are gathered where the system splits what one call sends: at 1 Gbit/s, those of a whole call. Linux
/// sends those of a millisecond together over TCP.
const SEND_GATHER: Duration = Duration::from_micros(500);

/// `recvmmsg` fills fewer buffers than it was given only when the socket is empty.
const SHORT_RECV_MEANS_EMPTY: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Errors of earlier datagrams that a system call may return before its own result. Each call takes one of them; more
/// in a row are an error of the socket.
const MAX_PENDING_ERRORS: usize = 16;

/// The endpoint's socket, and additional ones that are bound to interfaces.
#[derive(Debug)]
pub(super) struct TokioSocket {
    main: SystemSocket,
    interfaces: InterfaceSockets,
}

impl TokioSocket {
    pub(super) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        Ok(Self {
            main: SystemSocket::new(socket)?,
            interfaces: InterfaceSockets::default(),
        })
    }
}

/// A socket of the system.
#[derive(Debug)]
struct SystemSocket {
    io: tokio::net::UdpSocket,
    state: UdpSocketState,
    errors: ErrorQueue,
}

impl SystemSocket {
    fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // Smaller buffers only cost throughput.
        state
            .set_send_buffer_size((&socket).into(), SOCKET_BUFFER)
            .ok();
        state
            .set_recv_buffer_size((&socket).into(), SOCKET_BUFFER)
            .ok();
        Ok(Self {
            io: tokio::net::UdpSocket::from_std(socket)?,
            state,
            errors: ErrorQueue::default(),
        })
    }
}

impl UdpSocket for TokioSocket {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        let local = transmit.tuple.local.ip();
        if let Some(sent) = self
            .interfaces
            .with(local, |socket| socket.try_send(transmit, None, payload))
        {
            return sent;
        }
        let source = (!local.is_unspecified()).then_some(local);
        self.main.try_send(transmit, source, payload)
    }

    fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.interfaces.poll_full(cx) {
            Some(ready) => ready,
            None => self.main.poll_send_ready(cx),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        if let Some(filled) = self.interfaces.poll_recv(cx, buffers, meta) {
            return Poll::Ready(Ok(filled));
        }
        self.main.poll_recv(cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.main.io.local_addr()
    }

    fn bind_interface(&self, interface: &InterfaceAddress) -> io::Result<()> {
        // A dual-stack socket reports IPv4 addresses as IPv6; sockets of interfaces report them as IPv4.
        if self.local_addr()?.is_ipv4() != interface.address.is_ipv4() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.interfaces.add(interface)
    }

    fn report_unreachable(&self, enabled: bool) {
        // Where it is not possible, timers end what is unreachable.
        self.main.errors.enable(&self.main.io, enabled).ok();
        self.interfaces.report_unreachable(enabled);
    }

    fn poll_unreachable(&self, cx: &mut Context<'_>) -> Poll<UnreachableReport> {
        match self.main.errors.poll(cx) {
            Poll::Pending => self.interfaces.poll_unreachable(cx),
            ready => ready,
        }
    }

    #[cfg(unix)]
    fn duplicate(&self) -> io::Result<std::net::UdpSocket> {
        let io = std::os::fd::AsFd::as_fd(&self.main.io);
        Ok(io.try_clone_to_owned()?.into())
    }

    fn max_gso_segments(&self) -> usize {
        let main = self.main.state.max_gso_segments();
        self.interfaces
            .max_gso_segments()
            .map_or(main, |most| most.min(main))
    }

    fn send_gather(&self) -> Duration {
        match self.max_gso_segments() > 1 {
            true => SEND_GATHER,
            false => Duration::ZERO,
        }
    }

    fn max_gro_segments(&self) -> usize {
        self.main.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.main.state.may_fragment()
    }
}

impl SystemSocket {
    fn try_send(
        &self,
        transmit: &Transmit,
        source: Option<IpAddr>,
        payload: &[u8],
    ) -> io::Result<()> {
        let outgoing = quinn_udp::Transmit {
            destination: transmit.tuple.remote,
            ecn: transmit.ecn.map(to_udp),
            contents: payload,
            segment_size: transmit.segment_size,
            src_ip: source,
        };
        let send = || {
            self.io.try_io(Interest::WRITABLE, || {
                self.state.try_send((&self.io).into(), &outgoing)
            })
        };
        let mut sent = send();
        for _ in 0..MAX_PENDING_ERRORS {
            match &sent {
                Err(error) if self.errors.is_pending(&self.io, error) => sent = send(),
                _ => break,
            }
        }
        sent
    }

    fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.io.poll_send_ready(cx))?;
        self.errors.poll_writable(cx, &self.io)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut raw = [quinn_udp::RecvMeta::default(); quinn_udp::BATCH_SIZE];
        let batch = buffers.len().min(meta.len()).min(raw.len());
        let mut pending = 0;
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            let mut filled = 0;
            let result = self.io.try_io(Interest::READABLE, || {
                filled =
                    self.state
                        .recv((&self.io).into(), &mut buffers[..batch], &mut raw[..batch])?;
                // Clears the reactor's readiness now, which saves the system call that would return
                // `WouldBlock`.
                if SHORT_RECV_MEANS_EMPTY && filled < batch {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            if filled > 0 {
                for (meta, raw) in meta.iter_mut().zip(&raw[..filled]) {
                    *meta = from_udp_meta(raw);
                }
                return Poll::Ready(Ok(filled));
            }
            match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error)
                    if pending < MAX_PENDING_ERRORS && self.errors.is_pending(&self.io, &error) =>
                {
                    pending += 1;
                }
                Err(error) => return Poll::Ready(Err(error)),
                Ok(()) => return Poll::Ready(Ok(0)),
            }
        }
    }
}

/// The address from which the system sends to `remote`, through `interface` if one is given. Nothing is sent.
pub(super) fn source_for(
    remote: SocketAddr,
    interface: Option<&InterfaceAddress>,
) -> io::Result<IpAddr> {
    let socket = match interface {
        Some(interface) => interfaces::bind(interface)?,
        None if remote.is_ipv4() => std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
        None => std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
    };
    socket.connect(remote)?;
    Ok(socket.local_addr()?.ip())
}

fn to_udp(ecn: EcnCodepoint) -> quinn_udp::EcnCodepoint {
    match ecn {
        EcnCodepoint::Ect0 => quinn_udp::EcnCodepoint::Ect0,
        EcnCodepoint::Ect1 => quinn_udp::EcnCodepoint::Ect1,
        EcnCodepoint::Ce => quinn_udp::EcnCodepoint::Ce,
    }
}

fn from_udp_meta(meta: &quinn_udp::RecvMeta) -> RecvMeta {
    RecvMeta {
        remote: meta.addr,
        local_ip: meta.dst_ip,
        len: meta.len,
        stride: meta.stride,
        ecn: meta.ecn.map(|ecn| match ecn {
            quinn_udp::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
            quinn_udp::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
            quinn_udp::EcnCodepoint::Ce => EcnCodepoint::Ce,
        }),
    }
}

#[cfg(test)]
mod tests;
