//! The applications behind a reverse proxy: their connections and their health.

mod addresses;
mod dial;
mod endpoint;
mod stream;

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, Version};
use tokio::time::{Instant, timeout, timeout_at};

use self::addresses::Addresses;
use self::dial::{DialError, Dialer};
use self::endpoint::{Lease, LeaseError, Need};
use super::config::{ClientFields, ProxyConfig};
use super::content::Guard;
use super::failure::{Failure, cause, is_lost_connection, is_too_large};
use super::request_body::HeldBody;
use super::request_slots::{NoSlot, RequestSlot, RequestSlots, SlotHolders};
use super::tls::{TlsConnectors, UpstreamTlsError};
use super::upstream_metrics::{Counters, InFlight, UpstreamMetrics};
use super::url::UpstreamUrl;
use crate::body::Body;
use crate::limits;
use crate::server::Stopped;

/// The time for which a client that sends `Expect: 100-continue` waits for the answer of the
/// application.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// One application.
pub(super) struct Upstream {
    url: UpstreamUrl,
    addresses: Arc<Addresses>,
    places: RequestSlots,
    place_timeout: Duration,
    max_header_bytes: usize,
    max_header_fields: usize,
    connect_timeout: Duration,
    response_timeout: Duration,
    fail_time: Duration,
    /// The time until which it gets no requests because it could not be reached.
    failed_until: Mutex<Option<Instant>>,
    /// Whether its last health check failed.
    is_sick: AtomicBool,
    counters: Arc<Counters>,
}

/// The place of one request at an application.
pub(super) struct Slot {
    place: RequestSlot,
    _counted: InFlight,
}

impl Slot {
    /// Completes when the request has to end for those of other networks.
    pub(super) fn evicted(&self) -> Stopped {
        self.place.evicted()
    }
}

impl Guard for Slot {
    fn evicted(&self) -> Option<Stopped> {
        Some(self.evicted())
    }
}

/// The reason why an application gave no response.
pub(super) struct SendError {
    pub(super) failure: Failure,
    /// Whether the application got nothing of the request.
    pub(super) is_unsent: bool,
    /// Whether the connection ended before a response: it may have been closed while it was idle.
    pub(super) is_lost: bool,
}

impl Upstream {
    /// The application at `url`, which is reached by `tls` if its protocol has TLS.
    ///
    /// # Errors
    /// The settings of TLS cannot be used.
    fn new(
        url: UpstreamUrl,
        config: &ProxyConfig,
        tls: Option<&TlsConnectors>,
        counters: Arc<Counters>,
    ) -> Result<Self, UpstreamTlsError> {
        let holders = match config.client_fields {
            ClientFields::Append => SlotHolders::Anyone,
            ClientFields::Replace => SlotHolders::Networks,
        };
        let dialer = Dialer::new(&url, config, tls)?;
        Ok(Self {
            addresses: Arc::new(Addresses::new(&url, config, dialer)),
            url,
            places: RequestSlots::new(config.max_requests, holders),
            place_timeout: config.place_timeout,
            max_header_bytes: config.max_header_bytes,
            max_header_fields: config.max_header_fields,
            connect_timeout: config.connect_timeout,
            response_timeout: config.response_timeout,
            fail_time: config.fail_time,
            failed_until: Mutex::new(None),
            is_sick: AtomicBool::new(false),
            counters,
        })
    }

    pub(super) fn url(&self) -> &UpstreamUrl {
        &self.url
    }

    /// The counters of its requests.
    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The target of a request for `path` over HTTP/2 that names `host`, or the host of its URL.
    pub(super) fn target(&self, host: Option<&HeaderValue>, path: PathAndQuery) -> Uri {
        let host = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let scheme = match self.url.protocol().is_encrypted() {
            true => Scheme::HTTPS,
            false => Scheme::HTTP,
        };
        let uri = Uri::builder()
            .scheme(scheme)
            .authority(host.unwrap_or_else(|| self.url.authority()))
            .path_and_query(path);
        // All three parts are there, and valid.
        uri.build().unwrap_or_default()
    }

    /// Whether it is expected to respond.
    pub(super) fn is_healthy(&self) -> bool {
        let failed_until = *self.failed();
        let has_failed = failed_until.is_some_and(|until| Instant::now() < until);
        !has_failed && !self.is_sick.load(Relaxed)
    }

    /// A health check has ended.
    pub(super) fn set_health(&self, works: bool) {
        self.is_sick.store(!works, Relaxed);
    }

    fn failed(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.failed_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that wait for a place.
    pub(super) fn waited_for(&self) -> u64 {
        self.places.waited_for()
    }

    fn slot_at(&self, place: RequestSlot) -> Slot {
        Slot {
            place,
            _counted: self.counters.begin(),
        }
    }

    /// A place for one more request of `client`, if one is free. Without a client it has no share.
    pub(super) fn free_slot(&self, client: Option<IpAddr>) -> Option<Slot> {
        let place = self.places.try_take(client)?;
        Some(self.slot_at(place))
    }

    /// A place for one more request, as [`free_slot`](Self::free_slot), when one is free.
    ///
    /// # Errors
    /// [`Failure::Busy`]: no place became free in time.
    pub(super) async fn slot(&self, client: Option<IpAddr>) -> Result<Slot, Failure> {
        let place = self.places.take(client, self.place_timeout).await;
        let place = place.map_err(|NoSlot| Failure::Busy)?;
        Ok(self.slot_at(place))
    }

    /// Sends a request with `content`, whose header for a version of HTTP `head` is, and waits for the header of the response. A
    /// request for an Upgrade is sent over HTTP/1.1.
    ///
    /// # Errors
    /// There is no response, or not in time.
    pub(super) async fn send(
        &self,
        head: impl Fn(Version) -> Request<()>,
        content: &HeldBody,
        is_upgrade: bool,
    ) -> Result<Response<Body>, SendError> {
        let mut stale = 0;
        loop {
            let need = match is_upgrade {
                true => Need::Http1,
                // Connections that were idle may all have ended.
                false if stale >= limits::MAX_ATTEMPTS => Need::New,
                false => Need::Any,
            };
            let lease = self.lease(need).await?;
            let is_reused = lease.is_reused();
            let request = head(lease.version());
            let request = request.map(|()| content.to_body());
            match self.send_on(lease, request, content).await {
                Err(error) if error.is_unsent && is_reused && content.is_whole() => stale += 1,
                Err(error) => return Err(error),
                Ok(response) => {
                    *self.failed() = None;
                    return Ok(response);
                }
            }
        }
    }

    async fn send_on(
        &self,
        lease: Lease,
        request: Request<Body>,
        content: &HeldBody,
    ) -> Result<Response<Body>, SendError> {
        let begun = Instant::now();
        let mut response = pin!(lease.send(request));
        let mut expected = Some(begun + CONTINUE_TIMEOUT);
        loop {
            let last = begun.max(content.progressed()) + self.response_timeout;
            let deadline = expected.map_or(last, |expected| expected.min(last));
            match timeout_at(deadline, response.as_mut()).await {
                Ok(answered) => return answered.map_err(|error| self.explain(&error, content)),
                Err(_) if expected.take().is_some() => content.open(),
                Err(_)
                    if begun.max(content.progressed()) + self.response_timeout > Instant::now() => {
                }
                Err(_) => {
                    return Err(SendError {
                        failure: Failure::ResponseTimeout(self.response_timeout),
                        is_unsent: false,
                        is_lost: false,
                    });
                }
            }
        }
    }

    /// A connection for one request, at one of its addresses.
    async fn lease(&self, need: Need) -> Result<Lease, SendError> {
        let connected = timeout(self.connect_timeout, self.lease_of_one(need)).await;
        let error = match connected {
            Ok(Ok(lease)) => return Ok(lease),
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        *self.failed() = Some(Instant::now() + self.fail_time);
        self.addresses.on_failure();
        Err(SendError {
            failure: match error {
                Some(error) => error.into_failure(self.connect_timeout),
                None => Failure::ConnectTimeout(self.connect_timeout),
            },
            is_unsent: true,
            is_lost: false,
        })
    }

    async fn lease_of_one(&self, need: Need) -> Result<Lease, DialError> {
        let deadline = Instant::now() + self.connect_timeout;
        let endpoints = self.addresses.in_turn().await?;
        let mut error = DialError::from(io::Error::from(io::ErrorKind::NotFound));
        for (index, endpoint) in endpoints.iter().enumerate() {
            // The others get their part of the time as well.
            let left = u32::try_from(endpoints.len() - index).unwrap_or(u32::MAX);
            let limit = deadline.saturating_duration_since(Instant::now()) / left;
            error = match timeout(limit, endpoint.lease(need)).await {
                Ok(Ok(lease)) => return Ok(lease),
                Ok(Err(error)) => error,
                Err(_) => io::Error::from(io::ErrorKind::TimedOut).into(),
            };
            endpoint.on_failure(self.fail_time);
        }
        Err(error)
    }

    fn explain(&self, error: &LeaseError, content: &HeldBody) -> SendError {
        let LeaseError { error, is_unsent } = error;
        SendError {
            failure: match content.failure() {
                Some(failure) => Failure::Content(failure),
                None if is_too_large(error) => Failure::Response(format!(
                    "its header has more than {} bytes or {} fields",
                    self.max_header_bytes, self.max_header_fields
                )),
                None => Failure::Response(cause(error)),
            },
            is_unsent: *is_unsent,
            is_lost: is_lost_connection(error),
        }
    }
}

/// All applications of a proxy.
pub(super) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    turn: AtomicUsize,
}

impl Upstreams {
    /// The applications of `config`, which `metrics` shows from now on.
    ///
    /// # Errors
    /// The settings of TLS cannot be used.
    pub(super) fn new(
        config: &ProxyConfig,
        metrics: &UpstreamMetrics,
    ) -> Result<Self, UpstreamTlsError> {
        let urls = config.upstreams.iter();
        let has_tls = urls.clone().any(|url| url.protocol().is_encrypted());
        let tls = has_tls.then(|| config.tls.connectors()).transpose()?;
        let mut all = Vec::with_capacity(urls.len());
        for url in urls {
            let counters = metrics.counters(&url.to_string());
            let upstream = Upstream::new(url.clone(), config, tls.as_ref(), counters)?;
            all.push(Arc::new(upstream));
        }
        metrics.show(&all);
        Ok(Self {
            all,
            turn: AtomicUsize::new(0),
        })
    }

    pub(super) fn all(&self) -> &[Arc<Upstream>] {
        &self.all
    }

    /// The application whose turn it is, of those that work and were not `tried`; else one that does not work, else one that
    /// was tried. `None` if there is none at all.
    pub(super) fn next(&self, tried: &[Arc<Upstream>]) -> Option<&Arc<Upstream>> {
        let turn = self.turn.fetch_add(1, Relaxed);
        let count = self.all.len();
        let in_turn = || (0..count).map(|i| &self.all[(turn + i) % count]);
        let is_new = |one: &&Arc<Upstream>| !tried.iter().any(|other| Arc::ptr_eq(one, other));
        in_turn()
            .filter(is_new)
            .find(|one| one.is_healthy())
            .or_else(|| in_turn().find(is_new))
            .or_else(|| in_turn().next())
    }

    /// One that works, was not `tried`, and has a free place for `client`.
    pub(super) fn free(
        &self,
        tried: &[Arc<Upstream>],
        client: Option<IpAddr>,
    ) -> Option<(&Arc<Upstream>, Slot)> {
        let mut all = self.all.iter();
        all.find_map(|one| {
            let is_new = !tried.iter().any(|other| Arc::ptr_eq(one, other));
            let slot = (is_new && one.is_healthy()).then(|| one.free_slot(client));
            Some((one, slot??))
        })
    }
}
