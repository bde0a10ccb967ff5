//! The server: a site for the server of `marline-http`, which answers CONNECT-IP requests.

mod beside;
mod metrics;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use ipnet::IpNet;
use marline::TransportConfig;
use marline_h3::Protocol;
use marline_h3::capsule::CapsuleType;
use marline_http::Body;
use marline_http::http3::Datagrams;
use marline_http::log::{Frequent, Level, Subject, emit, emit_frequent};
use marline_http::server::{ClientAddress, Site, TlsClient, Tunnel};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use crate::address::{self, ADDRESS_REQUEST, Address};
use crate::copies;
use crate::counters::{Counters, Dropped};
use crate::device::{Burst, Device};
use crate::dial::Destinations;
use crate::dns;
use crate::link::{
    BATCH, CAPSULE_PROTOCOL, Capsules, Link, MalformedCapsule, SEND_BUFFER, capsule_parser, read,
};
use crate::packet::{Header, is_routable};
use crate::pool::{Lease, LeaseError, Pool};
use crate::route::{self, ROUTE_ADVERTISEMENT, Range};
use crate::scope::{PROTOCOL, Scope};
use crate::split;
use crate::split::server::{Dialer, MAX_STREAMS};
use crate::tokens::{Tokens, User};
use crate::udp;
use crate::udp::server::UdpProxy;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The users.
    pub tokens: Tokens,
    /// The addresses for clients.
    pub pool: Arc<Pool>,
    /// The destinations that clients may send packets to.
    pub destinations: Vec<IpNet>,
    /// Whether connections of TCP may be streams, which have the address of the server.
    pub split_tcp: bool,
    /// Whether clients may have sockets of UDP (CONNECT-UDP), which have the address of the server.
    pub proxy_udp: bool,
    /// The resolvers that clients are advised to use, at most [`MAX_RESOLVERS`](crate::dns::MAX_RESOLVERS).
    pub resolvers: Vec<IpAddr>,
}

/// The tunnels of a server.
pub struct Tunnels {
    config: Assigning,
    tokens: watch::Sender<Tokens>,
    device: Arc<dyn Device>,
    own: Vec<IpAddr>,
    clients: RwLock<HashMap<IpAddr, Arc<Link>>>,
    counters: Arc<Counters>,
    dialer: Option<Dialer>,
    udp: Option<UdpProxy>,
    refused: [AtomicU64; Refusal::REASONS.len()],
    is_closed: AtomicBool,
}

/// The settings that stay.
#[derive(Debug)]
struct Assigning {
    pool: Arc<Pool>,
    destinations: Vec<IpNet>,
    resolvers: Vec<IpAddr>,
}

/// Sets what a server's connections need for tunnels.
pub fn set_transport(transport: &mut TransportConfig) {
    transport.datagram_send_buffer = SEND_BUFFER;
    split::set_windows(transport);
    transport.max_concurrent_bidi_streams = MAX_STREAMS;
}

impl Tunnels {
    /// A server without clients, whose packets pass through `device`.
    pub fn new(config: ServerConfig, device: Arc<dyn Device>) -> Arc<Self> {
        let ServerConfig {
            tokens,
            pool,
            mut destinations,
            split_tcp,
            proxy_udp,
            resolvers,
        } = config;
        let own: Vec<_> = pool.own().map(|own| own.addr()).collect();
        // Nobody has an address of another family.
        let is_of_family = |to: &IpNet| own.iter().any(|own| own.is_ipv4() == to.addr().is_ipv4());
        destinations.retain(is_of_family);
        let counters = Arc::<Counters>::default();
        let prefixes = pool.own().map(|own| own.trunc()).collect();
        let behind = Destinations::new(destinations.clone(), prefixes);
        let dialer =
            split_tcp.then(|| Dialer::new(Arc::clone(&behind), Arc::clone(&counters.split)));
        Arc::new(Self {
            own,
            config: Assigning {
                pool,
                destinations,
                resolvers,
            },
            tokens: watch::Sender::new(tokens),
            device,
            clients: RwLock::default(),
            counters,
            dialer,
            udp: proxy_udp.then(|| UdpProxy::new(behind)),
            refused: Default::default(),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Accepts these `tokens` from now on. Tunnels that were opened with another one end.
    pub fn replace_tokens(&self, tokens: Tokens) {
        self.tokens.send_if_modified(|known| {
            let is_closed = self.is_closed.load(Relaxed);
            if !is_closed {
                *known = tokens;
            }
            !is_closed
        });
    }

    /// Ends all tunnels, because the server stops.
    pub fn close(&self) {
        self.is_closed.store(true, Relaxed);
        self.tokens.send_replace(Tokens::default());
    }

    /// The packets that its tunnels have carried and dropped.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The site that answers requests for tunnels.
    pub fn site(self: &Arc<Self>) -> Site {
        let tunnels = Arc::clone(self);
        BoxCloneSyncService::new(service_fn(move |request| {
            let tunnels = Arc::clone(&tunnels);
            async move { Ok::<_, Infallible>(tunnels.answer(request).await) }
        }))
    }

    /// Passes packets of the host to the clients until the device is gone.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn run(&self) -> io::Result<Infallible> {
        let mut burst = Burst::default();
        loop {
            let mut packets = 0;
            while packets < BATCH {
                read(&*self.device, &mut burst).await?;
                packets += match self.link_for(burst.packet()) {
                    Ok((link, header)) => link.push_all(&header, &mut burst),
                    Err(why) => {
                        self.counters.on_dropped(why);
                        0
                    }
                }
                .max(1);
            }
            tokio::task::yield_now().await;
        }
    }

    /// The client of a packet by its destination.
    fn link_for(&self, packet: &[u8]) -> Result<(Arc<Link>, Header), Dropped> {
        let header = Header::parse(packet).map_err(|_| Dropped::Malformed)?;
        if !is_routable(header.source) || !is_routable(header.destination) {
            return Err(Dropped::Unroutable);
        }
        let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        let link = clients.get(&header.destination);
        let link = link.map(Arc::clone).ok_or(Dropped::OtherDestination)?;
        Ok((link, header))
    }

    async fn answer(self: &Arc<Self>, request: Request<Body>) -> Response<Body> {
        let is_plain = request.extensions().get::<Protocol>().is_none();
        if let Some(dialer) = &self.dialer
            && *request.method() == Method::CONNECT
            && is_plain
        {
            let user = self.user_of(&request, &[PROXY_AUTHORIZATION]).ok();
            return dialer.answer(user, self.tokens.subscribe(), request).await;
        }
        let protocol = request.extensions().get::<Protocol>();
        let is_udp = protocol.is_some_and(|protocol| protocol.as_str() == udp::PROTOCOL);
        if let Some(proxy) = &self.udp
            && *request.method() == Method::CONNECT
            && is_udp
        {
            let fields = [AUTHORIZATION, PROXY_AUTHORIZATION];
            let user = self.user_of(&request, &fields).ok();
            return proxy.answer(user, self.tokens.subscribe(), request).await;
        }
        let client = request.extensions().get::<ClientAddress>();
        let client = client.map(|client| client.get());
        match self.open(request, client) {
            Ok(response) => response,
            Err(refusal) => {
                self.refused[refusal.index()].fetch_add(1, Relaxed);
                refusal.report(client);
                refusal.response()
            }
        }
    }

    /// The user of a request: that of the token in the first of these `fields` that it has, or of the certificate of its connection.
    fn user_of(&self, request: &Request<Body>, fields: &[HeaderName]) -> Result<User, Refusal> {
        let field = fields.iter().find_map(|name| request.headers().get(name));
        match field.and_then(bearer) {
            Some(token) => {
                let user = self.tokens.borrow().user_of(token);
                user.ok_or(Refusal::UnknownToken)
            }
            None => self.certified(request).ok_or(Refusal::NoToken),
        }
    }

    /// The user with the certificate of the connection of a request.
    fn certified(&self, request: &Request<Body>) -> Option<User> {
        let client = request.extensions().get::<TlsClient>()?;
        self.tokens.borrow().user_with(client)
    }

    /// Opens a tunnel of the client at this address.
    fn open(
        self: &Arc<Self>,
        request: Request<Body>,
        client: Option<SocketAddr>,
    ) -> Result<Response<Body>, Refusal> {
        let protocol = request.extensions().get::<Protocol>();
        let is_tunnel = protocol.is_some_and(|protocol| protocol.as_str() == PROTOCOL);
        if *request.method() != Method::CONNECT || !is_tunnel {
            return Err(Refusal::NoTunnel);
        }
        // First, so that others learn nothing more of the server.
        let user = self.user_of(&request, &[AUTHORIZATION])?;
        let (parts, content) = request.into_parts();
        let scope = Scope::of_path(parts.uri.path());
        let scope = scope.map_err(|error| Refusal::Target(error.to_string()))?;
        let datagrams = parts.extensions.get::<Datagrams>();
        let datagrams = datagrams.ok_or(Refusal::NoDatagrams)?;
        let ranges = ranges(&self.config.destinations, &scope);
        if ranges.is_empty() {
            return Err(Refusal::Forbidden);
        }
        let lease = self.config.pool.lease(user.account());
        let lease = lease.map_err(|why| Refusal::NoAddress {
            user: user.name().to_owned(),
            why,
        })?;
        let (capsules, body) = Capsules::new();
        let copies = copies::announced(&parts.headers);
        let counters = Arc::new(Counters::part_of(&self.counters));
        let link = Link::new(datagrams.clone(), capsules, Arc::clone(&counters), copies);
        let opened = Opened {
            user,
            client,
            at: Instant::now(),
            counters,
        };
        let registered = Registered::new(Arc::clone(self), Arc::new(link), lease, opened);
        tokio::spawn(registered.serve(ranges, content));
        let mut response = Response::new(Body::new(body));
        response.extensions_mut().insert(Tunnel);
        let fields = response.headers_mut();
        fields.insert(CAPSULE_PROTOCOL, HeaderValue::from_static("?1"));
        if let Some(copied) = copies {
            copies::announce(fields, copied);
        }
        dns::announce(fields, &self.config.resolvers);
        if self.dialer.is_some() {
            fields.insert(split::FIELD, HeaderValue::from_static(split::STREAMS));
        }
        Ok(response)
    }
}

/// The token of a field `Authorization` (RFC 6750, section 2.1).
fn bearer(field: &HeaderValue) -> Option<&str> {
    let (scheme, token) = field.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The ranges that a request of this scope may send packets to.
fn ranges(destinations: &[IpNet], scope: &Scope) -> Vec<Range> {
    let allowed = destinations.iter().filter_map(|destination| {
        let target = scope.target.unwrap_or(*destination);
        // One of them has the other, or they have nothing in common.
        match (destination.contains(&target), target.contains(destination)) {
            (true, _) => Some(target),
            (false, true) => Some(*destination),
            (false, false) => None,
        }
    });
    route::ordered(
        allowed
            .map(|prefix| Range::of(prefix, scope.protocol))
            .collect(),
    )
}

/// The end of a tunnel whose server stops.
const STOPPED: &str = "the server has stopped";

/// A client that packets can be sent to, until this is dropped.
struct Registered {
    tunnels: Arc<Tunnels>,
    link: Arc<Link>,
    lease: Lease,
    opened: Opened,
    /// Why it has ended.
    ended: &'static str,
}

/// The beginning of a tunnel, and what it has carried since.
struct Opened {
    user: User,
    /// The address of the client.
    client: Option<SocketAddr>,
    at: Instant,
    counters: Arc<Counters>,
}

impl Registered {
    fn new(tunnels: Arc<Tunnels>, link: Arc<Link>, lease: Lease, opened: Opened) -> Self {
        let mut clients = tunnels
            .clients
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for address in lease.addresses() {
            clients.insert(*address, Arc::clone(&link));
        }
        drop(clients);
        let (user, from) = (opened.user.name(), shown(opened.client));
        let text = format!(
            "{user} has a tunnel from {from}: {}",
            list(lease.addresses())
        );
        emit(Level::Information, Subject::Tunnel, &text);
        Self {
            tunnels,
            link,
            lease,
            opened,
            ended: STOPPED,
        }
    }

    /// Carries packets until the client ends the request, or violates the protocol, or its token is revoked.
    async fn serve(mut self, ranges: Vec<Range>, content: Body) {
        self.ended = self.carry(&ranges, content).await;
    }

    /// Does so, and returns the reason why it has ended.
    async fn carry(&self, ranges: &[Range], content: Body) -> &'static str {
        let addresses = self.lease.addresses();
        let assigned: Vec<_> = addresses
            .iter()
            .map(|address| assigned(0, *address))
            .collect();
        let capsules = &self.link.capsules;
        capsules.send(&address::assign(&assigned)).await;
        capsules.send(&route::advertisement(ranges)).await;
        let accept = |header: &Header| accept(header, addresses, ranges);
        let device = &*self.tunnels.device;
        let mut tokens = self.tunnels.tokens.subscribe();
        let user = &self.opened.user;
        tokio::select! {
            () = self.link.send_all(device, &self.tunnels.own) => "the connection has ended",
            () = self.link.receive_all(device, accept) => "the connection has ended",
            // Malformed capsules end the request, as its response does.
            read = self.read_capsules(content, accept) => match read {
                Ok(()) => "the client has ended it",
                Err(_) => "the client has sent a malformed capsule",
            },
            _ = tokens.wait_for(|tokens| !tokens.has(user)) => {
                match self.tunnels.is_closed.load(Relaxed) {
                    true => STOPPED,
                    false => user.end(),
                }
            }
        }
    }

    /// Answers the capsules of the client until the end of its content.
    async fn read_capsules(
        &self,
        mut content: Body,
        accept: impl Fn(&Header) -> Result<(), Dropped>,
    ) -> Result<(), MalformedCapsule> {
        let mut parser = capsule_parser();
        let mut content = std::pin::Pin::new(&mut content);
        loop {
            let frame = std::future::poll_fn(|cx| content.as_mut().poll_frame(cx)).await;
            let Some(Ok(frame)) = frame else {
                return Ok(parser.finish()?);
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            parser.push(data);
            while let Some(capsule) = parser.next_capsule()? {
                match capsule.kind {
                    CapsuleType::DATAGRAM => {
                        let device = &*self.tunnels.device;
                        self.link.receive(&capsule.value, device, &accept);
                    }
                    ADDRESS_REQUEST => {
                        let requested = address::decode_request(&capsule.value)?;
                        let answer = answers(&requested, self.lease.addresses());
                        self.link.capsules.send(&address::assign(&answer)).await;
                    }
                    // Networks behind clients are not routed to; what is malformed is refused nevertheless.
                    ROUTE_ADVERTISEMENT => drop(route::decode(&capsule.value)?),
                    _ => {}
                }
            }
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let clients = &self.tunnels.clients;
        let mut clients = clients.write().unwrap_or_else(PoisonError::into_inner);
        for address in self.lease.addresses() {
            clients.remove(address);
        }
        drop(clients);
        let Opened {
            user,
            client,
            at,
            counters,
        } = &self.opened;
        let (to, from) = (counters.sent(), counters.received());
        let text = format!(
            "the tunnel of {} from {} has ended after {} s, as {}: {}; packets to the client: {} ({} bytes), from it: {} ({} bytes)",
            user.name(),
            shown(*client),
            at.elapsed().as_secs(),
            self.ended,
            list(self.lease.addresses()),
            to.packets,
            to.bytes,
            from.packets,
            from.bytes,
        );
        emit(Level::Information, Subject::Tunnel, &text);
    }
}

/// The address of a client, in messages.
fn shown(client: Option<SocketAddr>) -> String {
    client.map_or_else(
        || "an unknown address".to_owned(),
        |client| client.to_string(),
    )
}

fn list(addresses: &[IpAddr]) -> String {
    let texts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// Whether a packet of a client passes.
fn accept(header: &Header, assigned: &[IpAddr], ranges: &[Range]) -> Result<(), Dropped> {
    if !assigned.contains(&header.source) {
        return Err(match is_routable(header.source) {
            true => Dropped::ForgedSource,
            false => Dropped::Unroutable,
        });
    }
    if !is_routable(header.destination) {
        return Err(Dropped::Unroutable);
    }
    match ranges.iter().any(|range| range.allows(header)) {
        true => Ok(()),
        false => Err(Dropped::NoRoute),
    }
}

fn assigned(request: u64, address: IpAddr) -> Address {
    Address {
        request,
        prefix: address.into(),
    }
}

/// All addresses of a client, each with the number of the first request that it answers; and an address of zeros for the
/// requests that are refused (RFC 9484, section 4.7.1).
fn answers(requested: &[Address], addresses: &[IpAddr]) -> Vec<Address> {
    let mut answers: Vec<_> = addresses
        .iter()
        .map(|address| assigned(0, *address))
        .collect();
    for request in requested {
        let wanted = request.prefix.addr();
        let is_answer = |answer: &&mut Address| {
            answer.request == 0 && answer.prefix.addr().is_ipv4() == wanted.is_ipv4()
        };
        match answers.iter_mut().find(is_answer) {
            Some(answer) => answer.request = request.request,
            None => {
                let zeros: IpAddr = match wanted {
                    IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                    IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
                };
                answers.push(assigned(request.request, zeros));
            }
        }
    }
    answers
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// It asks for something else.
    #[error("it asks for no tunnel")]
    NoTunnel,
    /// It has no token, nor a certificate.
    #[error("it has no token, and no certificate that is accepted")]
    NoToken,
    /// Its token is not valid.
    #[error("its token is unknown, or was revoked")]
    UnknownToken,
    /// The path is not answered.
    #[error("{0}")]
    Target(String),
    /// There are no datagrams on its connection.
    #[error("a tunnel needs HTTP/3 with SETTINGS_H3_DATAGRAM")]
    NoDatagrams,
    /// It asks for destinations that are not allowed.
    #[error("this server does not carry packets there")]
    Forbidden,
    /// There is no address for it.
    #[error("{user}: {why}")]
    NoAddress {
        /// The user.
        user: String,
        /// The reason.
        why: LeaseError,
    },
}

impl Refusal {
    /// The reasons, as metrics have them.
    const REASONS: [&str; 8] = [
        "no_tunnel",
        "no_token",
        "unknown_token",
        "target",
        "no_datagrams",
        "destination",
        "user_limit",
        "no_address",
    ];

    /// Its place in [`Self::REASONS`].
    fn index(&self) -> usize {
        match self {
            Self::NoTunnel => 0,
            Self::NoToken => 1,
            Self::UnknownToken => 2,
            Self::Target(_) => 3,
            Self::NoDatagrams => 4,
            Self::Forbidden => 5,
            Self::NoAddress { why, .. } => match why {
                LeaseError::UserLimit(_) => 6,
                LeaseError::Exhausted(_) => 7,
            },
        }
    }

    /// Logs it, unless the request is not for a tunnel.
    fn report(&self, client: Option<SocketAddr>) {
        if !matches!(self, Self::NoTunnel) {
            emit_frequent(Level::Warning, Frequent::Tunnel, || {
                format!("no tunnel for {}: {self}", shown(client))
            });
        }
    }

    fn response(self) -> Response<Body> {
        let (status, text) = match &self {
            Self::NoTunnel => (StatusCode::NOT_FOUND, String::new()),
            Self::NoToken | Self::UnknownToken => (StatusCode::UNAUTHORIZED, String::new()),
            Self::Target(_) | Self::NoDatagrams => (StatusCode::BAD_REQUEST, self.to_string()),
            Self::Forbidden => (StatusCode::FORBIDDEN, self.to_string()),
            Self::NoAddress { why, .. } => match why {
                LeaseError::UserLimit(_) => (StatusCode::TOO_MANY_REQUESTS, why.to_string()),
                LeaseError::Exhausted(_) => (StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
            },
        };
        let mut response = Response::new(Body::full(text));
        *response.status_mut() = status;
        let fields = response.headers_mut();
        match self {
            Self::NoToken | Self::UnknownToken => {
                fields.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::NoAddress { .. } => {
                fields.insert(RETRY_AFTER, HeaderValue::from_static("10"));
            }
            _ => {}
        }
        response
    }
}

impl fmt::Debug for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnels")
            .field("config", &self.config)
            .field("tokens", &self.tokens.borrow())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
