//! The server: connections to the destinations of CONNECT requests (RFC 9110, section 9.3.6).

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::PROXY_AUTHENTICATE;
use http::uri::Authority;
use http::{HeaderValue, Request, Response, StatusCode};
use ipnet::IpNet;
use marline_http::Body;
use marline_http::server::{Tunnel, metric_head};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::relay::{Joined, Stream};
use super::{FIELD, PACKETS, PROXY_STATUS};
use crate::counters::{SplitBytes, SplitCarried};
use crate::packet::is_routable;
use crate::routing::Routing;
use crate::tokens::{Tokens, User};

/// Streams of a client at a time.
pub(crate) const MAX_STREAMS: u64 = 1024;

/// Connections of one user at a time.
const MAX_OF_USER: usize = 2048;

/// Connections of one user that are being opened at a time.
const MAX_DIALS: usize = 256;

/// Connections of all users at a time.
const MAX_OF_ALL: usize = 16_384;

/// The time for a destination to answer.
const DIAL: Duration = Duration::from_secs(20);

/// Opens connections for users.
pub(crate) struct Dialer {
    destinations: Vec<IpNet>,
    pool: Vec<IpNet>,
    users: Arc<Users>,
    bytes: Arc<SplitBytes>,
    outcomes: [AtomicU64; Outcome::ALL.len()],
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Opened,
    Unauthorized,
    /// The target is no host with a port, or not resolved.
    Target,
    /// It is not allowed.
    Prohibited,
    /// It is this host, or a client: packets reach it as others do, with the address of their sender.
    Packets,
    /// There are too many connections.
    Limit,
    Refused,
    Unroutable,
    Timeout,
}

impl Outcome {
    const ALL: [Self; 9] = [
        Self::Opened,
        Self::Unauthorized,
        Self::Target,
        Self::Prohibited,
        Self::Packets,
        Self::Limit,
        Self::Refused,
        Self::Unroutable,
        Self::Timeout,
    ];

    /// Its name in metrics.
    const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Unauthorized => "unauthorized",
            Self::Target => "target",
            Self::Prohibited => "prohibited",
            Self::Packets => "packets",
            Self::Limit => "limit",
            Self::Refused => "refused",
            Self::Unroutable => "unroutable",
            Self::Timeout => "timeout",
        }
    }

    /// That of a connection that failed.
    fn of(error: &io::Error) -> Self {
        // ENFILE and EMFILE.
        if matches!(error.raw_os_error(), Some(23 | 24)) {
            return Self::Limit;
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Self::Refused,
            io::ErrorKind::TimedOut => Self::Timeout,
            _ => Self::Unroutable,
        }
    }

    /// The refusal (RFC 9209, section 2.3).
    fn response(self) -> Response<Body> {
        let (status, proxy_status) = match self {
            Self::Unauthorized => (StatusCode::PROXY_AUTHENTICATION_REQUIRED, None),
            Self::Target => (StatusCode::BAD_GATEWAY, Some("dns_error")),
            Self::Prohibited | Self::Packets => {
                (StatusCode::FORBIDDEN, Some("destination_ip_prohibited"))
            }
            Self::Limit => (
                StatusCode::SERVICE_UNAVAILABLE,
                Some("connection_limit_reached"),
            ),
            Self::Refused => (StatusCode::BAD_GATEWAY, Some("connection_refused")),
            Self::Unroutable | Self::Opened => {
                (StatusCode::BAD_GATEWAY, Some("destination_ip_unroutable"))
            }
            Self::Timeout => (StatusCode::GATEWAY_TIMEOUT, Some("connection_timeout")),
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        let fields = response.headers_mut();
        if let Some(error) = proxy_status
            && let Ok(value) = HeaderValue::try_from(format!("marline; error={error}"))
        {
            fields.insert(PROXY_STATUS, value);
        }
        match self {
            Self::Unauthorized => {
                fields.insert(PROXY_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Packets => {
                fields.insert(FIELD, HeaderValue::from_static(PACKETS));
            }
            _ => {}
        }
        response
    }
}

impl Dialer {
    /// A dialer to `destinations`, except those of `pool`, which are clients.
    pub(crate) fn new(destinations: Vec<IpNet>, pool: Vec<IpNet>, bytes: Arc<SplitBytes>) -> Self {
        Self {
            destinations,
            pool,
            users: Arc::default(),
            bytes,
            outcomes: Default::default(),
        }
    }

    /// Answers a CONNECT request of `user`, if it has a valid token. The connection ends when that is not among `tokens` any more.
    pub(crate) async fn answer(
        &self,
        user: Option<User>,
        mut tokens: watch::Receiver<Tokens>,
        request: Request<Body>,
    ) -> Response<Body> {
        let opened = match user {
            Some(user) => {
                let target = request.uri().authority().cloned();
                let opened = self.open(user.name(), target.as_ref()).await;
                opened.map(|stream| (stream, user))
            }
            // First, so that others learn nothing more.
            None => Err(Outcome::Unauthorized),
        };
        let outcome = opened.as_ref().err().copied().unwrap_or(Outcome::Opened);
        self.outcomes[outcome as usize].fetch_add(1, Relaxed);
        match opened {
            Ok((stream, user)) => {
                let revoked = async move {
                    let _ = tokens.wait_for(|tokens| !tokens.has(&user)).await;
                };
                let joined = Joined::new(stream, request.into_body(), revoked);
                let mut response = Response::new(Body::new(joined));
                response.extensions_mut().insert(Tunnel);
                response
            }
            Err(refusal) => refusal.response(),
        }
    }

    async fn open(
        &self,
        user: &str,
        target: Option<&Authority>,
    ) -> Result<Arc<Stream<Place>>, Outcome> {
        let target = target.ok_or(Outcome::Target)?;
        let place = self.users.place(user)?;
        let opening = async {
            let allowed = self.allowed(target.as_str()).await?;
            TcpStream::connect(&*allowed)
                .await
                .map_err(|error| Outcome::of(&error))
        };
        let opened = timeout(DIAL, opening).await;
        let tcp = opened.unwrap_or(Err(Outcome::Timeout))?;
        place.opened();
        Ok(Stream::new(tcp, Arc::clone(&self.bytes), place))
    }

    /// The addresses of a target that may be connected to. A name is resolved once: what is checked is what is used.
    async fn allowed(&self, target: &str) -> Result<Vec<SocketAddr>, Outcome> {
        let found: Vec<SocketAddr> = match target.parse() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = tokio::net::lookup_host(target).await;
                found.map_err(|_| Outcome::Target)?.collect()
            }
        };
        let mut refusal = Outcome::Target;
        let mut allowed = Vec::new();
        for address in found {
            match self.check(address.ip()) {
                Ok(()) => allowed.push(address),
                Err(why) => refusal = why,
            }
        }
        match allowed.is_empty() {
            true => Err(refusal),
            false => Ok(allowed),
        }
    }

    /// Whether packets to `address` would pass, and would leave this host for one that is no client.
    fn check(&self, address: IpAddr) -> Result<(), Outcome> {
        let is_in = |nets: &[IpNet]| nets.iter().any(|net| net.contains(&address));
        if !is_routable(address) || !is_in(&self.destinations) {
            return Err(Outcome::Prohibited);
        }
        let is_local = || Routing::open().and_then(|mut routing| routing.is_local(address));
        match is_in(&self.pool) || is_local().map_err(|_| Outcome::Unroutable)? {
            // A service of this host could take its own address for a sign of trust.
            true => Err(Outcome::Packets),
            false => Ok(()),
        }
    }

    /// Writes its metrics.
    pub(crate) fn write(&self, out: &mut String, carried: SplitCarried) -> fmt::Result {
        let name = "marline_tunnel_split_connections";
        let about = "Connections of TCP that are streams of clients now.";
        metric_head(out, name, "gauge", about)?;
        writeln!(out, "{name} {}", self.users.lock().open)?;
        let name = "marline_tunnel_split_connections_total";
        let about = "Connections of TCP that clients have requested as streams, by the result.";
        metric_head(out, name, "counter", about)?;
        for outcome in Outcome::ALL {
            let (result, count) = (outcome.name(), &self.outcomes[outcome as usize]);
            writeln!(out, "{name}{{result=\"{result}\"}} {}", count.load(Relaxed))?;
        }
        let name = "marline_tunnel_split_bytes_total";
        let about = "Bytes of connections of TCP that were streams.";
        metric_head(out, name, "counter", about)?;
        for (direction, bytes) in [
            ("to_client", carried.sent),
            ("from_client", carried.received),
        ] {
            writeln!(out, "{name}{{direction=\"{direction}\"}} {bytes}")?;
        }
        Ok(())
    }
}

/// The connections of the users.
#[derive(Default)]
struct Users(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// Those of each user who has any.
    users: HashMap<Arc<str>, Count>,
    open: usize,
}

#[derive(Clone, Copy, Default)]
struct Count {
    open: usize,
    /// Of these, those that are being opened.
    dials: usize,
}

impl Users {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection that is being opened.
    fn place(self: &Arc<Self>, user: &str) -> Result<Place, Outcome> {
        let mut counts = self.lock();
        let count = counts.users.get(user).copied().unwrap_or_default();
        if counts.open >= MAX_OF_ALL || count.open >= MAX_OF_USER || count.dials >= MAX_DIALS {
            return Err(Outcome::Limit);
        }
        let user: Arc<str> = user.into();
        let count = counts.users.entry(Arc::clone(&user)).or_default();
        count.open += 1;
        count.dials += 1;
        counts.open += 1;
        drop(counts);
        Ok(Place {
            users: Arc::clone(self),
            user,
            is_open: false.into(),
        })
    }
}

/// The place of a connection, until this is dropped.
struct Place {
    users: Arc<Users>,
    user: Arc<str>,
    is_open: std::sync::atomic::AtomicBool,
}

impl Place {
    /// The connection is open.
    fn opened(&self) {
        if !self.is_open.swap(true, Relaxed)
            && let Some(count) = self.users.lock().users.get_mut(&self.user)
        {
            count.dials -= 1;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.opened();
        let mut counts = self.users.lock();
        counts.open -= 1;
        if let Some(count) = counts.users.get_mut(&self.user) {
            count.open -= 1;
            if count.open == 0 {
                counts.users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_destinations_behind_the_server_are_connected_to() {
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let dialer = |destinations: &[&str]| {
            Dialer::new(nets(destinations), nets(&["10.77.0.0/24"]), Arc::default())
        };
        let all = dialer(&["0.0.0.0/0", "::/0"]);
        for target in [
            "127.0.0.1:80",
            "127.9.9.9:80",
            "[::1]:80",
            "localhost:80",
            "169.254.169.254:80",
            "[fe80::1]:80",
            "[::ffff:127.0.0.1]:80",
            "0.0.0.0:80",
            "[::]:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
        ] {
            let refused = all.allowed(target).await.unwrap_err();
            assert_eq!(refused, Outcome::Prohibited, "{target}");
        }
        // Another client.
        let refused = all.allowed("10.77.0.9:80").await.unwrap_err();
        assert_eq!(refused, Outcome::Packets);
        for target in ["", "a", "192.0.2.1", "192.0.2.1:x", "192.0.2.1:99999"] {
            let refused = all.allowed(target).await.unwrap_err();
            assert_eq!(refused, Outcome::Target, "{target}");
        }
        let some = dialer(&["192.0.2.0/24"]);
        let refused = some.allowed("198.51.100.1:80").await.unwrap_err();
        assert_eq!(refused, Outcome::Prohibited);
    }

    #[test]
    fn a_user_has_no_more_connections_than_are_allowed() {
        let users = Arc::<Users>::default();
        let limit = |user: &str| users.place(user).map(drop).unwrap_err();
        let mut places: Vec<_> = (0..MAX_DIALS)
            .map(|_| users.place("anna").unwrap())
            .collect();
        assert_eq!(limit("anna"), Outcome::Limit);
        assert!(users.place("bob").is_ok());
        while places.len() < MAX_OF_USER {
            places.iter().for_each(Place::opened);
            places.push(users.place("anna").unwrap());
        }
        places.iter().for_each(Place::opened);
        assert_eq!(limit("anna"), Outcome::Limit);
        places.pop();
        assert!(users.place("anna").is_ok());
        drop(places);
        assert!(users.lock().users.is_empty());
        assert_eq!(users.lock().open, 0);
    }
}
