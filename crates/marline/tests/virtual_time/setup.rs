//! The networks and endpoints of these tests.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use marline::proto::Transmit;
use marline::runtime::{RecvMeta, UdpSocket};
use marline::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use marline_sim::identity::identity;
use marline_sim::{Host, SimBuilder, SimLink};

pub(crate) const ALPN: &[&[u8]] = &[b"test"];

/// From the client to the server, over either of its links.
pub(crate) const DELAY: Duration = Duration::from_millis(20);

/// The client's address on the link `wifi`.
pub(crate) const WIFI: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
/// The client's address on the link `lte`.
pub(crate) const LTE: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);

const PORT: u16 = 4433;

/// A limit of virtual time, above what any of these tests takes.
const LIMIT: Duration = Duration::from_secs(600);

/// A client with two links, `wifi` and `lte`, and a server.
pub(crate) struct Network {
    pub(crate) client: Host,
    pub(crate) server: Host,
    pub(crate) wifi: SimLink,
    pub(crate) lte: SimLink,
}

impl Network {
    /// The client's link with this address.
    pub(crate) fn link(&self, address: Ipv4Addr) -> &SimLink {
        match address {
            WIFI => &self.wifi,
            LTE => &self.lte,
            _ => panic!("no link of the client has {address}"),
        }
    }

    /// An endpoint of the client, at all its addresses.
    pub(crate) fn client_endpoint(&self) -> Endpoint {
        let any = (Ipv4Addr::UNSPECIFIED, PORT).into();
        self.client.endpoint(any, None).unwrap()
    }

    /// An endpoint of the server.
    pub(crate) fn server_endpoint(&self, config: ServerConfig) -> Endpoint {
        let at = self.server.at(PORT);
        self.server.endpoint(at, Some(config)).unwrap()
    }
}

/// Runs `test` on a new [`Network`] to its end.
pub(crate) fn run<T>(test: impl AsyncFnOnce(&Network) -> T) -> T {
    let mut sim = SimBuilder::new(1)
        .router("router")
        .link("wifi", ["client", "router"], "rtt=40ms")
        .link("lte", ["client", "router"], "rtt=40ms")
        .link("backbone", ["router", "server"], "")
        .build()
        .unwrap();
    let network = Network {
        client: sim.host("client").unwrap(),
        server: sim.host("server").unwrap(),
        wifi: sim.link("wifi").unwrap(),
        lte: sim.link("lte").unwrap(),
    };
    assert_eq!(network.client.addresses(), [WIFI, LTE]);
    sim.run(test(&network), LIMIT).unwrap()
}

/// A socket that asks `send` what becomes of datagrams: `None` if they are sent.
pub(crate) struct Filtered<F> {
    pub(crate) socket: Arc<dyn UdpSocket>,
    pub(crate) send: F,
}

impl<F> fmt::Debug for Filtered<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtered").finish_non_exhaustive()
    }
}

impl<F> UdpSocket for Filtered<F>
where
    F: Fn(&Transmit, &[u8]) -> Option<io::Result<()>> + Send + Sync,
{
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        match (self.send)(transmit, payload) {
            Some(outcome) => outcome,
            None => self.socket.try_send(transmit, payload),
        }
    }

    fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_send_ready(cx)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

pub(crate) fn server_config(transport: TransportConfig) -> ServerConfig {
    identity()
        .server_config(ALPN, &Arc::new(transport))
        .unwrap()
}

pub(crate) fn client_config(transport: TransportConfig) -> ClientConfig {
    identity()
        .client_config(ALPN, &Arc::new(transport))
        .unwrap()
}
