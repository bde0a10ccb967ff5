//! One CONNECT-IP request and what it carries.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use ipnet::IpNet;
use marline::{ConnectionError, TransportConfig};
use marline_h3::capsule::{CapsuleParser, CapsuleType};
use marline_h3::{ErrorCode, Protocol};
use marline_http::Body;
use marline_http::client::{Client, ClientError, Connection, Download, Origin};
use marline_http::http3::Datagrams;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use crate::address::{self, ADDRESS_ASSIGN, Address};
use crate::copies;
use crate::counters::{Counters, Dropped};
use crate::device::{Burst, Device};
use crate::dial::PROXY_STATUS;
use crate::dns;
use crate::link::{
    BATCH, CAPSULE_PROTOCOL, Capsules, Link, MalformedCapsule, SEND_BUFFER, capsule_parser, read,
};
use crate::mode::Mode;
use crate::packet::{Header, MIN_MTU, is_routable};
use crate::route::{self, ROUTE_ADVERTISEMENT, Range};
use crate::scope::{PROTOCOL, UNLIMITED_PATH};
use crate::split::client::{Proxy, Splitter, Splitting};
use crate::split::{self};

/// The time for the server to assign addresses and to advertise routes, once it has accepted.
const ASSIGN_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval at which the largest packet that the paths carry is compared with the MTU of the device.
const MTU_CHECK: Duration = Duration::from_secs(1);

/// Below the timeout of most NATs, 30 s, and half of the idle timeout.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Bytes of a refusal that are shown.
const MAX_REASON: usize = 200;

/// A tunnel that is open.
pub struct Session {
    link: Link,
    content: Download,
    parser: CapsuleParser,
    addresses: Vec<IpNet>,
    ranges: Vec<Range>,
    resolvers: Vec<IpAddr>,
    /// The largest packet that was carried when it was opened.
    mtu: u16,
    connection: Arc<Connection>,
    /// Whom connections are split with, if the server offers that.
    proxy: Option<Arc<Proxy>>,
    /// Keeps the connection open.
    _client: Arc<Client>,
}

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no connection, or no response.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The token cannot be sent.
    #[error(
        "the token has characters that no token has; give it as `marline tunnel token` printed it"
    )]
    Token,
    /// The server does not know the token, or asks for another certificate.
    #[error("the server does not accept the token, or the certificate")]
    Unauthorized,
    /// The server has no tunnels.
    #[error("{host} is no server of tunnels: it answered {status}")]
    NoTunnel {
        /// The server.
        host: String,
        /// The status of its response.
        status: StatusCode,
    },
    /// The server refuses now.
    #[error("the server refuses the tunnel with {status}: {reason}")]
    Refused {
        /// The status of its response.
        status: StatusCode,
        /// Its content, or a part of it.
        reason: String,
    },
    /// The connection has no datagrams.
    #[error("the server accepts no HTTP datagrams")]
    NoDatagrams,
    /// The server has not assigned an address and advertised routes in time.
    #[error("the server assigns no address or advertises no routes")]
    NoAddress,
    /// The server has ended the tunnel before it has begun.
    #[error("the server has ended the tunnel: {0}")]
    Ended(Ended),
}

/// Why a tunnel has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// The connection was lost, or the request.
    #[error("{0}")]
    Lost(String),
    /// The server has ended it.
    #[error("the server has ended it")]
    Finished,
    /// The server violates the protocol.
    #[error("the server violates the protocol: {0}")]
    Malformed(#[from] MalformedCapsule),
    /// The server assigns other addresses, or advertises other routes.
    #[error("the server has changed addresses or routes")]
    Changed,
    /// The device of this host is gone.
    #[error("the network device is gone: {0}")]
    Device(io::Error),
}

/// Sets what a client's connections need for tunnels.
pub fn set_transport(transport: &mut TransportConfig) {
    transport.datagram_send_buffer = SEND_BUFFER;
    split::set_windows(transport);
    transport.keep_alive.get_or_insert(KEEP_ALIVE);
    if let Some(multipath) = &mut transport.multipath {
        multipath.keep_alive.get_or_insert(KEEP_ALIVE);
    }
}

impl Session {
    /// Opens a tunnel, and waits for its addresses and routes. Without a token, the certificate of the client proves who its user is.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(
        client: Arc<Client>,
        origin: &Origin,
        token: impl Into<Option<&str>>,
        mode: Mode,
        counters: Arc<Counters>,
    ) -> Result<Self, OpenError> {
        let token = token.into();
        let connection = client.connect(origin).await?;
        let (capsules, content) = Capsules::new();
        let asked = Asked {
            protocol: PROTOCOL,
            path: UNLIMITED_PATH,
        };
        let mut request = request(origin, token, asked, Body::new(content))?;
        // Bytes of networks with a cap are not sent twice.
        let rules = client.config().paths.iter();
        let has_cap = rules
            .flat_map(|policy| &policy.rules)
            .any(|rule| rule.cap_bytes.is_some());
        if !has_cap {
            copies::announce(request.headers_mut(), mode.copied());
        }
        let authorization = request.headers().get(AUTHORIZATION).cloned();
        let response = connection.request(origin, request).await?;
        let response = accepted(origin, response).await?;
        let offer = response.headers().get(split::FIELD);
        let is_split = offer.is_some_and(|offer| offer == split::STREAMS);
        let resolvers = dns::announced(response.headers());
        let datagrams = response.extensions().get::<Datagrams>().cloned();
        let copies = copies::announced(response.headers()).filter(|_| !has_cap);
        let copies = copies.map(|_| mode.copied());
        let content = response.into_body();
        let datagrams = datagrams.filter(|datagrams| datagrams.max_len().is_some());
        let datagrams = datagrams.ok_or(OpenError::NoDatagrams)?;
        let connection = Arc::new(connection);
        let proxy =
            is_split.then(|| Proxy::new(Arc::clone(&connection), origin.clone(), authorization));
        let mut session = Self {
            proxy,
            link: Link::new(datagrams, capsules, counters, copies),
            content,
            parser: capsule_parser(),
            addresses: Vec::new(),
            ranges: Vec::new(),
            resolvers,
            mtu: MIN_MTU,
            connection,
            _client: client,
        };
        session.configure().await?;
        session.mtu = session.link.mtu();
        Ok(session)
    }

    /// Requests an address of each family, and waits for the addresses and routes.
    async fn configure(&mut self) -> Result<(), OpenError> {
        let any = [(1, "0.0.0.0/32"), (2, "::/128")].map(|(request, any)| {
            let prefix = any.parse().ok();
            prefix.map(|prefix| Address { request, prefix })
        });
        let any: Vec<_> = any.into_iter().flatten().collect();
        self.link.capsules.send(&address::request(&any)).await;
        let deadline = Instant::now() + ASSIGN_TIMEOUT;
        while self.addresses.is_empty() || self.ranges.is_empty() {
            let next = timeout_at(deadline, next_change(&mut self.content, &mut self.parser));
            let change = next.await.map_err(|_| OpenError::NoAddress)?;
            match change.map_err(OpenError::Ended)? {
                Change::Addresses(addresses) => self.addresses = addresses,
                Change::Routes(ranges) => self.ranges = ranges,
                // Nobody can have sent it to an address that is not known.
                Change::Datagram(_) => self.link.counters.on_dropped(Dropped::OtherDestination),
            }
        }
        Ok(())
    }

    /// Its addresses, with the lengths of their prefixes.
    pub fn addresses(&self) -> &[IpNet] {
        &self.addresses
    }

    /// The destinations that the server carries packets to.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// The resolvers that the server announces.
    pub fn resolvers(&self) -> &[IpAddr] {
        &self.resolvers
    }

    /// The largest packet that was carried when it was opened, in bytes. [`run`](Self::run) reports each change since.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Whether the server offers to carry connections of TCP as streams.
    pub fn offers_streams(&self) -> bool {
        self.proxy.is_some()
    }

    /// The address of the server.
    pub fn server(&self) -> IpAddr {
        let quic = self.connection.quic();
        let remote = quic.map(marline::Connection::remote_address);
        remote.map_or(std::net::Ipv4Addr::UNSPECIFIED.into(), |remote| {
            remote.ip().to_canonical()
        })
    }

    /// Carries packets until the tunnel ends; `on_mtu` learns when the largest packet is not [`mtu`](Self::mtu) any more.
    pub async fn run(self, device: &dyn Device, on_mtu: impl FnMut(u16)) -> Ended {
        self.run_with(device, None, on_mtu).await
    }

    /// Carries packets, and the connections of `splitter` as streams, until the tunnel ends.
    pub(crate) async fn run_with(
        mut self,
        device: &dyn Device,
        splitter: Option<Arc<Splitter>>,
        on_mtu: impl FnMut(u16),
    ) -> Ended {
        let splitting = splitter.zip(self.proxy.take());
        let splitting = splitting.map(|(splitter, proxy)| Splitting::new(splitter, proxy));
        let Self {
            link,
            content,
            parser,
            addresses,
            ranges,
            mtu,
            connection,
            ..
        } = &mut self;
        let quic = connection.quic();
        let closed = async {
            match quic {
                Some(quic) => Ended::Lost(explain(&quic.closed().await)),
                None => std::future::pending().await,
            }
        };
        let accept = |header: &Header| accept(header, addresses);
        let sent = send_from(device, link, splitting, Allowed { addresses, ranges });
        tokio::select! {
            ended = closed => ended,
            () = link.send_all(device, &[]) => Ended::Finished,
            () = link.receive_all(device, accept) => Ended::Finished,
            error = sent => Ended::Device(error),
            ended = follow(content, parser, Followed { link, device, addresses, ranges }) => ended,
            () = follow_mtu(|| link.mtu(), *mtu, on_mtu) => Ended::Finished,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(quic) = self.connection.quic() {
            quic.close(ErrorCode::NO_ERROR.value(), b"");
        }
    }
}

/// The tunnel that a request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The protocol of extended CONNECT.
    pub(crate) protocol: &'static str,
    /// The path, of the default template of the protocol.
    pub(crate) path: &'a str,
}

/// A request of extended CONNECT by the user with this token, or with the certificate of the client.
///
/// # Errors
/// [`OpenError::Token`].
pub(crate) fn request(
    origin: &Origin,
    token: Option<&str>,
    asked: Asked<'_>,
    content: Body,
) -> Result<Request<Body>, OpenError> {
    let Asked { protocol, path } = asked;
    // A field that ends with a space is malformed.
    let is_token =
        |token: &str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !token.is_none_or(is_token) {
        return Err(OpenError::Token);
    }
    let url = format!("{origin}{path}");
    let mut request = Request::new(content);
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = url.parse::<Uri>().map_err(|_| OpenError::Token)?;
    let fields = request.headers_mut();
    if let Some(token) = token {
        let token = HeaderValue::try_from(format!("Bearer {token}"));
        let mut token = token.map_err(|_| OpenError::Token)?;
        token.set_sensitive(true);
        fields.insert(AUTHORIZATION, token);
    }
    fields.insert(CAPSULE_PROTOCOL, HeaderValue::from_static("?1"));
    if let Some(protocol) = Protocol::new(protocol) {
        request.extensions_mut().insert(protocol);
    }
    Ok(request)
}

/// A response that accepts a request.
///
/// # Errors
/// The response refuses it.
pub(crate) async fn accepted(
    origin: &Origin,
    response: Response<Download>,
) -> Result<Response<Download>, OpenError> {
    match response.status() {
        status if status.is_success() => Ok(response),
        StatusCode::UNAUTHORIZED => Err(OpenError::Unauthorized),
        status @ (StatusCode::NOT_FOUND
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::NOT_IMPLEMENTED) => {
            let host = origin.host().to_owned();
            Err(OpenError::NoTunnel { host, status })
        }
        status => {
            let field = response.headers().get(PROXY_STATUS);
            let field = field.and_then(|field| field.to_str().ok());
            let reason = match field.and_then(|text| text.split_once("error=")) {
                Some((_, error)) => error.to_owned(),
                None => reason(&mut response.into_body()).await,
            };
            Err(OpenError::Refused { status, reason })
        }
    }
}

/// The content of a refusal, as far as it is shown.
async fn reason(content: &mut Download) -> String {
    let mut text = Vec::new();
    while text.len() < MAX_REASON {
        match content.chunk().await {
            Ok(Some(chunk)) => text.extend_from_slice(&chunk),
            _ => break,
        }
    }
    text.truncate(MAX_REASON);
    String::from_utf8_lossy(&text).escape_debug().to_string()
}

fn explain(error: &ConnectionError) -> String {
    match error {
        ConnectionError::IdleTimeout => "the server does not answer on any path".to_owned(),
        error => error.to_string(),
    }
}

/// Whether a packet of the server passes.
fn accept(header: &Header, addresses: &[IpNet]) -> Result<(), Dropped> {
    if !is_routable(header.source) {
        return Err(Dropped::Unroutable);
    }
    match addresses
        .iter()
        .any(|own| own.contains(&header.destination))
    {
        true => Ok(()),
        false => Err(Dropped::OtherDestination),
    }
}

/// The packets that a client may send.
struct Allowed<'a> {
    addresses: &'a [IpNet],
    ranges: &'a [Range],
}

impl Allowed<'_> {
    /// Whether a packet with this header is sent.
    fn check(&self, header: &Header) -> Result<(), Dropped> {
        if !is_routable(header.source) || !is_routable(header.destination) {
            return Err(Dropped::Unroutable);
        }
        let is_own = |own: &IpNet| own.contains(&header.source);
        if !self.addresses.iter().any(is_own) {
            return Err(Dropped::ForgedSource);
        }
        match self.has_route(header) {
            true => Ok(()),
            false => Err(Dropped::NoRoute),
        }
    }

    fn has_route(&self, header: &Header) -> bool {
        self.ranges.iter().any(|range| range.allows(header))
    }
}

/// Queues the packets of the device, or has them split; returns when it is gone.
async fn send_from(
    device: &dyn Device,
    link: &Link,
    mut splitting: Option<Splitting>,
    allowed: Allowed<'_>,
) -> io::Error {
    let (mut burst, mut single) = (Burst::default(), Burst::default());
    loop {
        let mut packets = 0;
        while packets < BATCH {
            let not_split = async {
                match &mut splitting {
                    Some(splitting) => splitting.not_split().await,
                    None => std::future::pending().await,
                }
            };
            let read = tokio::select! {
                biased;
                packet = not_split => {
                    single.fill(&packet);
                    packets += queue(link, &mut single, &allowed);
                    continue;
                }
                read = read(device, &mut burst) => read,
            };
            if let Err(error) = read {
                return error;
            }
            if let Some(splitting) = &mut splitting
                && let Ok(header) = Header::parse(burst.packet())
                && splitting.handle(&mut burst, &header, allowed.has_route(&header))
            {
                packets += 1;
                continue;
            }
            packets += queue(link, &mut burst, &allowed);
        }
        tokio::task::yield_now().await;
    }
}

/// Queues the packets of a burst if they are allowed. Returns their number, of at least one.
fn queue(link: &Link, burst: &mut Burst, allowed: &Allowed<'_>) -> usize {
    let header = Header::parse(burst.packet()).map_err(|_| Dropped::Malformed);
    let packets = match header.and_then(|header| allowed.check(&header).map(|()| header)) {
        Ok(header) => link.push_all(&header, burst),
        Err(why) => {
            link.counters.on_dropped(why);
            0
        }
    };
    packets.max(1)
}

/// Lets `on_mtu` know the largest packet whenever it has changed from the `known` one.
async fn follow_mtu(mtu: impl Fn() -> u16, mut known: u16, mut on_mtu: impl FnMut(u16)) {
    let mut checks = interval(MTU_CHECK);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        checks.tick().await;
        let now = mtu();
        if now != known {
            known = now;
            on_mtu(now);
        }
    }
}

/// The state with which later capsules of a server are compared.
struct Followed<'a> {
    link: &'a Link,
    device: &'a dyn Device,
    addresses: &'a [IpNet],
    ranges: &'a [Range],
}

/// Follows the capsules of the server until it changes something, or ends the tunnel.
async fn follow(
    content: &mut Download,
    parser: &mut CapsuleParser,
    followed: Followed<'_>,
) -> Ended {
    let Followed {
        link,
        device,
        addresses,
        ranges,
    } = followed;
    loop {
        match next_change(content, parser).await {
            Ok(Change::Addresses(now)) if now == addresses => {}
            Ok(Change::Routes(now)) if now == ranges => {}
            Ok(Change::Datagram(datagram)) => {
                link.receive(&datagram, device, &|header: &Header| {
                    accept(header, addresses)
                });
            }
            Ok(_) => return Ended::Changed,
            Err(ended) => return ended,
        }
    }
}

/// The change that a capsule makes.
enum Change {
    Addresses(Vec<IpNet>),
    Routes(Vec<Range>),
    Datagram(bytes::Bytes),
}

async fn next_change(content: &mut Download, parser: &mut CapsuleParser) -> Result<Change, Ended> {
    let malformed = |error: MalformedCapsule| Ended::from(error);
    loop {
        let capsule = parser.next_capsule().map_err(MalformedCapsule::from);
        let Some(capsule) = capsule.map_err(malformed)? else {
            match content.chunk().await {
                Ok(Some(bytes)) => parser.push(bytes),
                Ok(None) => {
                    let finished = parser.finish().map_err(MalformedCapsule::from);
                    finished.map_err(malformed)?;
                    return Err(Ended::Finished);
                }
                Err(error) => return Err(Ended::Lost(error.to_string())),
            }
            continue;
        };
        match capsule.kind {
            ADDRESS_ASSIGN => {
                let assigned = address::decode_assign(&capsule.value);
                let assigned = assigned
                    .map_err(MalformedCapsule::from)
                    .map_err(malformed)?;
                let prefixes = assigned.into_iter().map(|address| address.prefix);
                // Zeros refuse a request.
                let prefixes = prefixes.filter(|prefix| !prefix.addr().is_unspecified());
                return Ok(Change::Addresses(prefixes.collect()));
            }
            ROUTE_ADVERTISEMENT => {
                let ranges = route::decode(&capsule.value);
                let ranges = ranges.map_err(MalformedCapsule::from).map_err(malformed)?;
                return Ok(Change::Routes(ranges));
            }
            CapsuleType::DATAGRAM => return Ok(Change::Datagram(capsule.value)),
            // Requests for addresses of this end are not answered.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_mtu_that_has_grown_before_the_first_check_is_reported() {
        let (mtu, reported) = (Cell::new(1400), RefCell::default());
        let follow = follow_mtu(
            || mtu.get(),
            1280,
            |mtu| RefCell::<Vec<_>>::borrow_mut(&reported).push(mtu),
        );
        let change = async {
            tokio::time::sleep(3 * MTU_CHECK).await;
            mtu.set(1350);
            tokio::time::sleep(3 * MTU_CHECK).await;
        };
        tokio::select! {
            () = follow => {}
            () = change => {}
        }
        assert_eq!(*reported.borrow(), [1400, 1350]);
    }
}
