//! The sockets on which a server listens.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use marline::QuicLb;
use tokio::net::{TcpListener, TcpSocket};

use super::alt_svc::AltSvc;
use super::qlogs::Logs;
use super::reload::{KeptSessions, QuicEndpoint};
use super::workers::Workers;
use super::{AlsoListen, GivenSockets, Metrics, OfWorker, ServeError, ServerConfig, h3, quic, tcp};
use crate::runtime::RuntimeHandle;
use crate::tcp::{self as tcp_sockets, SystemSockets, TcpProtocol, TcpSockets};

/// The listening sockets of a server.
pub(super) struct Sockets {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) tcp: Vec<OfWorker<tcp::Listener>>,
    pub(super) quic: Vec<OfWorker<h3::Listener>>,
    pub(super) endpoints: Vec<QuicEndpoint>,
}

/// The settings with which the sockets of all addresses are opened.
pub(super) struct Opening<'a> {
    pub(super) config: &'a ServerConfig,
    pub(super) workers: &'a Workers,
    pub(super) metrics: &'a Metrics,
    pub(super) logs: &'a Logs,
    pub(super) quic_lb: Option<&'a Arc<QuicLb>>,
}

/// Opens the sockets of all addresses.
pub(super) async fn open_sockets(
    opening: &Opening<'_>,
    given: &mut GivenSockets,
) -> Result<Sockets, ServeError> {
    let mut sockets = Sockets {
        addresses: Vec::new(),
        tcp: Vec::new(),
        quic: Vec::new(),
        endpoints: Vec::new(),
    };
    let Opening {
        config, workers, ..
    } = opening;
    sockets.open(0, config.listen, opening, given).await?;
    let port = sockets.addresses[0].port();
    for (number, also) in (1..).zip(&config.also_listen) {
        let (address, may_be_missing) = match *also {
            AlsoListen::IfPresent(ip) => (SocketAddr::new(ip, port), true),
            AlsoListen::AtIfPresent(address) => (address, true),
            AlsoListen::At(address) => (address, false),
        };
        if may_be_missing && !is_local(address.ip(), workers.all()[0].runtime()) {
            continue;
        }
        sockets.open(number, address, opening, given).await?;
    }
    Ok(sockets)
}

/// The sockets of the page of metrics.
pub(super) fn open_metrics(
    config: &ServerConfig,
    given: &mut GivenSockets,
    runtime: &RuntimeHandle,
) -> Result<Vec<TcpListener>, ServeError> {
    let Some(first) = config.metrics else {
        return Ok(Vec::new());
    };
    let mut listen = |address| match given.take_tcp(address).pop() {
        Some(given) => {
            TcpListener::from_std(given).map_err(|cause| not_listening("TCP", address, cause))
        }
        None => {
            refuse_overlap(given, address)?;
            listen_tcp(address, runtime)
        }
    };
    let mut sockets = vec![listen(first)?];
    let port = sockets[0]
        .local_addr()
        .map_or(first.port(), |address| address.port());
    for &ip in &config.also_metrics {
        if is_local(ip, runtime) {
            sockets.push(listen(SocketAddr::new(ip, port))?);
        }
    }
    Ok(sockets)
}

/// Refuses `address` if another one of its port, which covers it or which it covers, is in use by the process before: neither
/// could have the connections of the other.
fn refuse_overlap(given: &GivenSockets, address: SocketAddr) -> Result<(), ServeError> {
    match given.overlapping(address) {
        Some(listens) => Err(ServeError::Overlaps {
            listens,
            wanted: address,
        }),
        None => Ok(()),
    }
}

/// Whether this host has the address: IPv6 may be disabled.
fn is_local(ip: IpAddr, runtime: &RuntimeHandle) -> bool {
    runtime.shared().bind(SocketAddr::new(ip, 0)).is_ok()
}

impl Sockets {
    /// Listens on one more address, that with this number in the configuration, on TCP and UDP as the protocols require.
    async fn open(
        &mut self,
        number: usize,
        mut address: SocketAddr,
        opening: &Opening<'_>,
        given: &mut GivenSockets,
    ) -> Result<(), ServeError> {
        let &Opening {
            config,
            workers,
            metrics,
            logs,
            quic_lb,
        } = opening;
        let protocols = config.protocols;
        let are_in_use = given.are_in_use();
        refuse_overlap(given, address)?;
        if protocols.http1 || protocols.http2 || protocols.cleartext {
            let protocol = match config.multipath_tcp {
                true => TcpProtocol::Multipath,
                false => TcpProtocol::Tcp,
            };
            let factory = config.tcp_sockets.as_deref().unwrap_or(&SystemSockets);
            let failed = |cause| not_listening("TCP", address, cause);
            let given = given.take_tcp(address);
            let sockets = match given.is_empty() {
                true => listen_all(bind_tcp(address, workers, factory, protocol)?, workers),
                false => share_given(&given, workers),
            };
            let sockets = sockets.map_err(failed)?;
            address = sockets[0].local_addr().unwrap_or(address);
            let alt_svc = AltSvc::new(address.port()).filter(|_| protocols.http3);
            for (worker, socket) in sockets.into_iter().enumerate() {
                self.tcp.push(OfWorker {
                    worker,
                    listener: tcp::Listener::new(socket, alt_svc.clone()),
                });
            }
        }
        if protocols.http3 {
            let runtime = workers.all()[0].runtime();
            let counting = metrics.observers(&config.quic.transport);
            let sessions = KeptSessions::new(address);
            let resumption = sessions.of(
                config.state.as_deref(),
                config.shared.as_deref(),
                config,
                are_in_use,
            )?;
            let settings =
                quic::server_config(config, runtime, counting, &resumption, &logs.budget)?;
            let given = given.take_udp(address);
            let listener = quic::Listener {
                number,
                address,
                receives: !are_in_use,
            };
            let endpoints =
                quic::server_endpoints(config, &settings, &listener, given, workers, quic_lb)?;
            address = endpoints[0].local_addr();
            for (worker, endpoint) in endpoints.iter().enumerate() {
                self.quic.push(OfWorker {
                    worker,
                    listener: h3::Listener::new(endpoint.clone(), settings.clone()),
                });
            }
            self.endpoints.push(QuicEndpoint::new(endpoints, sessions));
        }
        self.addresses.push(address);
        Ok(())
    }
}

/// Binds a socket for each worker; over plain TCP if the kernel has no Multipath TCP.
fn bind_tcp(
    address: SocketAddr,
    workers: &Workers,
    sockets: &dyn TcpSockets,
    protocol: TcpProtocol,
) -> Result<Vec<TcpSocket>, ServeError> {
    let count = workers.count();
    let bound = match workers.all()[0].runtime().has_tokio() {
        true => {
            tcp_sockets::bind(sockets, address, protocol, count).or_else(|error| match protocol {
                TcpProtocol::Multipath if tcp_sockets::has_no_multipath(&error) => {
                    tcp_sockets::bind(sockets, address, TcpProtocol::Tcp, count)
                }
                _ => Err(error),
            })
        }
        false => Err(io::ErrorKind::Unsupported.into()),
    };
    bound.map_err(|cause| not_listening("TCP", address, cause))
}

/// Has each worker listen with the socket that is bound for it.
fn listen_all(bound: Vec<TcpSocket>, workers: &Workers) -> io::Result<Vec<TcpListener>> {
    let each = bound.into_iter().zip(workers.all());
    let listening = each.map(|(socket, worker)| {
        let _runtime = worker.enter();
        socket.listen(tcp_sockets::BACKLOG)
    });
    listening.collect()
}

/// A given socket for each worker. Several accept from one if there are fewer.
fn share_given(given: &[std::net::TcpListener], workers: &Workers) -> io::Result<Vec<TcpListener>> {
    let mut sockets = Vec::new();
    for (number, worker) in workers.all().iter().enumerate() {
        let _runtime = worker.enter();
        let socket = given[number % given.len()].try_clone()?;
        sockets.push(TcpListener::from_std(socket)?);
    }
    Ok(sockets)
}

fn not_listening(protocol: &'static str, address: SocketAddr, cause: io::Error) -> ServeError {
    ServeError::Listen {
        protocol,
        address,
        cause,
    }
}

/// Listens for requests of metrics.
fn listen_tcp(address: SocketAddr, runtime: &RuntimeHandle) -> Result<TcpListener, ServeError> {
    let listener = match runtime.has_tokio() {
        true => tcp_sockets::listen(&SystemSockets, address, TcpProtocol::Tcp),
        false => Err(io::ErrorKind::Unsupported.into()),
    };
    listener.map_err(|cause| not_listening("TCP", address, cause))
}
