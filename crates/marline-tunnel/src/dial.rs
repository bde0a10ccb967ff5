//! Destinations that a server reaches for its users: which are allowed, how many at a time, and how a request for one ends.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::PROXY_AUTHENTICATE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use ipnet::IpNet;
use marline_http::Body;

use crate::packet::is_routable;
use crate::routing::Routing;

/// The field with the reason of a proxy's refusal (RFC 9209).
pub(crate) const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The destinations behind a server.
#[derive(Debug)]
pub(crate) struct Destinations {
    allowed: Vec<IpNet>,
    /// Those of clients, which have packets.
    pool: Vec<IpNet>,
}

impl Destinations {
    /// Those of `allowed`, except those of `pool`, which are clients.
    pub(crate) fn new(allowed: Vec<IpNet>, pool: Vec<IpNet>) -> Arc<Self> {
        Arc::new(Self { allowed, pool })
    }

    /// The addresses of a target that may be connected to. A name is resolved once: what is checked is what is used.
    pub(crate) async fn allowed(&self, target: &str) -> Result<Vec<SocketAddr>, Outcome> {
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
        if !is_routable(address) || !is_in(&self.allowed) {
            return Err(Outcome::Prohibited);
        }
        let is_local = || Routing::open().and_then(|mut routing| routing.is_local(address));
        match is_in(&self.pool) || is_local().map_err(|_| Outcome::Unroutable)? {
            // A service of this host could take its own address for a sign of trust.
            true => Err(Outcome::Packets),
            false => Ok(()),
        }
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
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
    pub(crate) const ALL: [Self; 9] = [
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
    pub(crate) fn of(error: &io::Error) -> Self {
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
    pub(crate) fn response(self) -> Response<Body> {
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
        if self == Self::Unauthorized {
            fields.insert(PROXY_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The number of requests of each outcome.
#[derive(Debug, Default)]
pub(crate) struct Outcomes([AtomicU64; Outcome::ALL.len()]);

impl Outcomes {
    pub(crate) fn count(&self, outcome: Outcome) {
        self.0[outcome as usize].fetch_add(1, Relaxed);
    }

    /// Writes the samples of the counter `name`.
    pub(crate) fn write(&self, out: &mut String, name: &str) -> fmt::Result {
        for outcome in Outcome::ALL {
            let (result, count) = (outcome.name(), &self.0[outcome as usize]);
            writeln!(out, "{name}{{result=\"{result}\"}} {}", count.load(Relaxed))?;
        }
        Ok(())
    }
}

/// The numbers of connections at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Those of one user.
    pub(crate) of_user: usize,
    /// Of these, those that are being opened.
    pub(crate) dials: usize,
    /// Those of all users.
    pub(crate) of_all: usize,
}

/// The connections of the users.
pub(crate) struct Users {
    limits: Limits,
    counts: Mutex<Counts>,
}

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
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let counts = Mutex::default();
        Arc::new(Self { limits, counts })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections that are open, or being opened.
    pub(crate) fn open(&self) -> usize {
        self.lock().open
    }

    /// A place for a connection that is being opened.
    ///
    /// # Errors
    /// [`Outcome::Limit`].
    pub(crate) fn place(self: &Arc<Self>, user: &str) -> Result<Place, Outcome> {
        let mut counts = self.lock();
        let count = counts.users.get(user).copied().unwrap_or_default();
        let Limits {
            of_user,
            dials,
            of_all,
        } = self.limits;
        if counts.open >= of_all || count.open >= of_user || count.dials >= dials {
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
pub(crate) struct Place {
    users: Arc<Users>,
    user: Arc<str>,
    is_open: std::sync::atomic::AtomicBool,
}

impl Place {
    /// The connection is open.
    pub(crate) fn opened(&self) {
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
        let behind = |allowed: &[&str]| Destinations::new(nets(allowed), nets(&["10.77.0.0/24"]));
        let all = behind(&["0.0.0.0/0", "::/0"]);
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
        let some = behind(&["192.0.2.0/24"]);
        let refused = some.allowed("198.51.100.1:80").await.unwrap_err();
        assert_eq!(refused, Outcome::Prohibited);
    }

    #[test]
    fn a_user_has_no_more_connections_than_are_allowed() {
        let limits = Limits {
            of_user: 9,
            dials: 4,
            of_all: 100,
        };
        let users = Users::new(limits);
        let limit = |user: &str| users.place(user).map(drop).unwrap_err();
        let mut places: Vec<_> = (0..limits.dials)
            .map(|_| users.place("anna").unwrap())
            .collect();
        assert_eq!(limit("anna"), Outcome::Limit);
        assert!(users.place("bob").is_ok());
        while places.len() < limits.of_user {
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
