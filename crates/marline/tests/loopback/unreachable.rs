//! Destinations that ICMP messages report as unreachable. The system sends one at once for each datagram to a closed
//! port of its own.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use marline::runtime::{self, RecvMeta};
use marline::{
    Connecting, ConnectionError, Endpoint, EndpointConfig, ManagedConnectError, PathManager,
    PathPolicy, TokioRuntime, Transmit, TransportConfig, Unreachable,
};

use crate::setup::{
    Identity, LOOPBACK, NAME, connect, echo, endpoints_with, pattern, within_limit,
};

const LOOPBACK6: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 0);

/// A port that nobody else can open meanwhile: its socket receives from one address only, which sends nothing.
struct ClosedPort(UdpSocket);

impl ClosedPort {
    fn at(loopback: SocketAddr) -> Self {
        let socket = UdpSocket::bind(loopback).unwrap();
        let peer = UdpSocket::bind(loopback).unwrap();
        socket.connect(peer.local_addr().unwrap()).unwrap();
        Self(socket)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

/// No probe timeout expires before the handshake's time limit.
fn without_probes() -> TransportConfig {
    TransportConfig {
        initial_rtt: Duration::from_secs(20),
        ..TransportConfig::default()
    }
}

fn client_at(address: SocketAddr) -> Endpoint {
    let client = Endpoint::client(address).unwrap();
    client.set_default_client_config(Identity::new().client(without_probes()));
    client
}

async fn assert_unreachable(connecting: Connecting) {
    let end = within_limit(connecting).await;
    assert!(
        matches!(end, Err(ConnectionError::Unreachable(Unreachable::Port))),
        "{end:?}"
    );
}

#[tokio::test]
async fn a_closed_port_ends_a_handshake_without_a_probe_timeout() {
    let any4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let any6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let pairs = [
        (LOOPBACK, LOOPBACK),
        (any4, LOOPBACK),
        (LOOPBACK6, LOOPBACK6),
        (any6, LOOPBACK6),
        (any6, LOOPBACK),
    ];
    for (from, to) in pairs {
        let client = client_at(from);
        let closed = ClosedPort::at(to);
        for _ in 0..3 {
            assert_unreachable(client.connect(closed.address(), NAME).unwrap()).await;
        }
        within_limit(client.wait_idle()).await;
    }
}

#[tokio::test]
async fn a_closed_port_does_not_disturb_other_connections_of_the_socket() {
    let (client, server) = endpoints_with(without_probes());
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    tokio::spawn(echo(theirs));
    // Its handshake continues meanwhile: the socket is open, and does not answer.
    let silent = UdpSocket::bind(LOOPBACK).unwrap();
    let mut waiting = client.connect(silent.local_addr().unwrap(), NAME).unwrap();
    let closed = ClosedPort::at(LOOPBACK);
    let failing = async {
        for _ in 0..200 {
            assert_unreachable(client.connect(closed.address(), NAME).unwrap()).await;
        }
    };
    let data = pattern(4_000_000);
    let transfer = async {
        let (mut send, mut recv) = ours.open_bi().await.unwrap();
        let writing = async {
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
        };
        let (answer, ()) = tokio::join!(recv.read_to_end(usize::MAX), writing);
        assert!(answer.unwrap() == data);
    };
    within_limit(async { tokio::join!(failing, transfer) }).await;
    let still = std::future::poll_fn(|cx| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut waiting).poll(cx).is_pending())
    });
    assert!(still.await, "the handshake with the silent host has ended");
    within_limit(connect(&client, &server)).await;
}

#[tokio::test]
async fn the_socket_after_a_rebinding_reports_closed_ports() {
    let client = client_at(LOOPBACK);
    let silent = UdpSocket::bind(LOOPBACK).unwrap();
    let _waiting = client.connect(silent.local_addr().unwrap(), NAME).unwrap();
    let closed = ClosedPort::at(LOOPBACK);
    for _ in 0..3 {
        client.rebind(UdpSocket::bind(LOOPBACK).unwrap()).unwrap();
        assert_unreachable(client.connect(closed.address(), NAME).unwrap()).await;
    }
}

#[tokio::test]
async fn managed_handshakes_end_at_a_closed_port() {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let client = client_at(any);
    let config = Identity::new().client(without_probes());
    let closed = ClosedPort::at(LOOPBACK);
    for rules in [vec!["127.0.0.2", "127.0.0.3"], vec!["lo"]] {
        let manager = PathManager::new(PathPolicy {
            rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
            ..PathPolicy::default()
        });
        let end = within_limit(manager.connect(&client, &config, closed.address(), NAME)).await;
        assert!(
            matches!(
                end,
                Err(ManagedConnectError::Lost(ConnectionError::Unreachable(
                    Unreachable::Port
                )))
            ),
            "{rules:?}: {end:?}"
        );
    }
}

/// The socket of a host without a network, with the error of what is sent.
#[derive(Debug)]
struct NoRoute(io::ErrorKind);

impl runtime::UdpSocket for NoRoute {
    fn try_send(&self, _: &Transmit, _: &[u8]) -> io::Result<()> {
        Err(self.0.into())
    }

    fn poll_send_ready(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_recv(
        &self,
        _: &mut Context<'_>,
        _: &mut [IoSliceMut<'_>],
        _: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(LOOPBACK)
    }
}

#[tokio::test]
async fn a_host_without_a_route_ends_a_handshake_without_a_probe_timeout() {
    // The second is what a broadcast address gives.
    for kind in [
        io::ErrorKind::NetworkUnreachable,
        io::ErrorKind::PermissionDenied,
    ] {
        let runtime = Arc::new(TokioRuntime::current().unwrap());
        let seed = EndpointConfig::from_seed([7; 32]);
        let client = Endpoint::new(seed, None, Arc::new(NoRoute(kind)), runtime).unwrap();
        let config = Identity::new().client(without_probes());
        let there = SocketAddr::from(([192, 0, 2, 1], 443));
        let end = within_limit(client.connect_with(config, there, NAME).unwrap()).await;
        assert!(
            matches!(end, Err(ConnectionError::Unreachable(Unreachable::Network))),
            "{kind}: {end:?}"
        );
    }
}
