//! The server: a socket for each request, connected to its target.

use std::fmt::{self, Write};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Request, Response, StatusCode};
use marline_http::Body;
use marline_http::http3::Datagrams;
use marline_http::server::{Tunnel, metric_head};
use marline_http::tcp::socket2::SockRef;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::timeout;

use super::flow::{Buffer, Flow, Gone, Sent};
use super::target::Target;
use crate::dial::{Destinations, Limits, Outcome, Outcomes, PROXY_STATUS, Place, Users};
use crate::link::{CAPSULE_PROTOCOL, Capsules};
use crate::tokens::{Tokens, User};

/// Sockets at a time.
const LIMITS: Limits = Limits {
    of_user: 512,
    dials: 64,
    of_all: 4096,
};

/// The time for a name to resolve.
const RESOLVE: Duration = Duration::from_secs(10);

/// Bytes that wait in a socket for the tunnel: what is late is dropped, not sent.
const RECEIVE_BUFFER: usize = 64 * 1024;

/// Sockets for users.
pub(crate) struct UdpProxy {
    destinations: Arc<Destinations>,
    users: Arc<Users>,
    outcomes: Outcomes,
    carried: Arc<Carried>,
}

/// Payloads of all requests.
#[derive(Debug, Default)]
struct Carried {
    to_client: Direction,
    from_client: Direction,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Direction {
    datagrams: AtomicU64,
    bytes: AtomicU64,
}

impl Direction {
    fn add(&self, bytes: usize) {
        self.datagrams.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

impl Carried {
    fn on_dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }
}

impl UdpProxy {
    pub(crate) fn new(destinations: Arc<Destinations>) -> Self {
        Self {
            destinations,
            users: Users::new(LIMITS),
            outcomes: Outcomes::default(),
            carried: Arc::default(),
        }
    }

    /// Answers a CONNECT-UDP request of `user`, if it has a valid token. The socket is closed when that is not among `tokens` any
    /// more.
    pub(crate) async fn answer(
        &self,
        user: Option<User>,
        tokens: watch::Receiver<Tokens>,
        request: Request<Body>,
    ) -> Response<Body> {
        // First, so that others learn nothing more.
        let Some(user) = user else {
            self.outcomes.count(Outcome::Unauthorized);
            return unauthorized();
        };
        let target = match Target::of_path(request.uri().path()) {
            Ok(target) => target,
            Err(error) => {
                self.outcomes.count(Outcome::Target);
                let mut response = Response::new(Body::full(error.to_string()));
                *response.status_mut() = StatusCode::BAD_REQUEST;
                return response;
            }
        };
        let opened = self.open(user.account(), &target).await;
        let outcome = opened.as_ref().err().copied().unwrap_or(Outcome::Opened);
        self.outcomes.count(outcome);
        let proxied = match opened {
            Ok(opened) => opened,
            Err(refusal) => return refusal.response(),
        };
        let next_hop = format!("marline; next-hop=\"{}\"", proxied.to);
        let (parts, content) = request.into_parts();
        let (capsules, body) = Capsules::new();
        let flow = Flow::new(parts.extensions.get::<Datagrams>().cloned(), capsules);
        tokio::spawn(proxied.carry(flow, content, revoked(user, tokens)));
        let mut response = Response::new(Body::new(body));
        response.extensions_mut().insert(Tunnel);
        let fields = response.headers_mut();
        fields.insert(CAPSULE_PROTOCOL, HeaderValue::from_static("?1"));
        if let Ok(next_hop) = HeaderValue::try_from(next_hop) {
            fields.insert(PROXY_STATUS, next_hop);
        }
        response
    }

    async fn open(&self, user: &str, target: &Target) -> Result<Proxied, Outcome> {
        let place = self.users.place(user)?;
        let target = target.to_string();
        let resolving = timeout(RESOLVE, self.destinations.allowed(&target));
        let found = resolving.await.unwrap_or(Err(Outcome::Timeout))?;
        let mut refusal = Outcome::Target;
        for to in found {
            match connect(to).await {
                Ok(socket) => {
                    place.opened();
                    return Ok(Proxied {
                        socket,
                        to,
                        carried: Arc::clone(&self.carried),
                        _place: place,
                    });
                }
                Err(error) => refusal = Outcome::of(&error),
            }
        }
        Err(refusal)
    }

    /// Writes its metrics.
    pub(crate) fn write(&self, out: &mut String) -> fmt::Result {
        let name = "marline_tunnel_udp_sockets";
        metric_head(out, name, "gauge", "Sockets of UDP of clients now.")?;
        writeln!(out, "{name} {}", self.users.open())?;
        let name = "marline_tunnel_udp_requests_total";
        let about = "Requests of clients for a socket of UDP, by the result.";
        metric_head(out, name, "counter", about)?;
        self.outcomes.write(out, name)?;
        let directions = [
            ("to_client", &self.carried.to_client),
            ("from_client", &self.carried.from_client),
        ];
        let name = "marline_tunnel_udp_datagrams_total";
        let about = "Datagrams of UDP that were carried between sockets and clients.";
        metric_head(out, name, "counter", about)?;
        for (direction, carried) in directions {
            let datagrams = carried.datagrams.load(Relaxed);
            writeln!(out, "{name}{{direction=\"{direction}\"}} {datagrams}")?;
        }
        let name = "marline_tunnel_udp_bytes_total";
        let about = "Bytes of these datagrams, without headers.";
        metric_head(out, name, "counter", about)?;
        for (direction, carried) in directions {
            let bytes = carried.bytes.load(Relaxed);
            writeln!(out, "{name}{{direction=\"{direction}\"}} {bytes}")?;
        }
        let name = "marline_tunnel_udp_dropped_total";
        let about = "Datagrams of UDP that were too large, or had no room.";
        metric_head(out, name, "counter", about)?;
        let dropped = self.carried.dropped.load(Relaxed);
        writeln!(out, "{name} {dropped}")
    }
}

/// The refusal of a request without a valid token, as for CONNECT-IP.
fn unauthorized() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let fields = response.headers_mut();
    fields.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Waits until the token of `user` is revoked.
async fn revoked(user: User, mut tokens: watch::Receiver<Tokens>) {
    let _ = tokens.wait_for(|tokens| !tokens.has(&user)).await;
}

/// A socket that sends to, and receives from, this address alone. It sends no fragments (RFC 9298, section 6.1).
async fn connect(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    match to {
        SocketAddr::V4(_) => set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO)?,
        SocketAddr::V6(_) => set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::DO)?,
    }
    SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.connect(to).await?;
    Ok(socket)
}

/// The socket of a request.
struct Proxied {
    socket: UdpSocket,
    to: SocketAddr,
    carried: Arc<Carried>,
    /// Kept as long as the socket.
    _place: Place,
}

impl Proxied {
    /// Carries payloads until the request ends, the target is not reached, there are none for long, or `revoked`.
    async fn carry(self, flow: Flow, content: Body, revoked: impl Future<Output = ()>) {
        let deliver = |payload: &[u8]| self.deliver(payload);
        tokio::select! {
            () = flow.receive(deliver) => {}
            // Malformed capsules end the request, as its end does.
            _ = flow.read(content, deliver) => {}
            () = self.send_back(&flow) => {}
            () = flow.idle() => {}
            () = revoked => {}
        }
    }

    fn deliver(&self, payload: &[u8]) -> Result<(), Gone> {
        match self.socket.try_send(payload) {
            Ok(_) => self.carried.from_client.add(payload.len()),
            Err(error) if is_of_one(&error) => self.carried.on_dropped(),
            Err(_) => return Err(Gone),
        }
        Ok(())
    }

    async fn send_back(&self, flow: &Flow) {
        let mut buffer = Buffer::new();
        loop {
            let length = match self.socket.recv(buffer.room()).await {
                Ok(length) => length,
                Err(error) if is_of_one(&error) => continue,
                Err(_) => return,
            };
            match flow.send(buffer.content(length)).await {
                Sent::Queued => self.carried.to_client.add(length),
                Sent::Dropped => self.carried.on_dropped(),
                Sent::Ended => return,
            }
        }
    }
}

/// Whether an error is about one datagram, and not about the target (RFC 9298, section 3.1).
fn is_of_one(error: &io::Error) -> bool {
    // EMSGSIZE and ENOBUFS.
    error.kind() == io::ErrorKind::WouldBlock || matches!(error.raw_os_error(), Some(90 | 105))
}
