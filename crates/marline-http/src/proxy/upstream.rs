//! The applications behind a reverse proxy: their connections and their health.

mod addresses;
mod dial;
mod endpoint;
mod http3;
mod stream;

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, Version};
use tokio::time::{Instant, timeout, timeout_at};

use self::addresses::Addresses;
use self::dial::{DialError, Dialer};
use self::endpoint::{Endpoint, Lease, LeaseError, Need};
use super::balance::{Candidate, Key, slow_start_part};
use super::config::{ClientFields, ProxyConfig};
use super::content::Guard;
use super::failure::{Failure, cause, is_lost_connection, is_too_large, lacks_connect};
use super::health::HealthPath;
use super::request_body::HeldBody;
use super::request_slots::{NoSlot, RequestSlot, RequestSlots, SlotHolders};
use super::retry::Setback;
use super::tls::{Secured, UpstreamTlsError};
use super::upstream_metrics::{Counters, InFlight};
use super::url::{UpstreamProtocol, UpstreamUrl, WeightedUpstream};
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
    weight: u32,
    slow_start: Option<Duration>,
    /// The path of its checks, if there are any.
    health_path: Option<HealthPath>,
    /// The hash of its URL.
    id: Key,
    health: Mutex<Health>,
    counters: Arc<Counters>,
}

/// The health that requests and checks have shown.
#[derive(Debug, Default)]
struct Health {
    /// The time until which it gets no requests because it could not be reached.
    failed_until: Option<Instant>,
    /// Whether the last check failed.
    is_sick: bool,
    /// The time of its last response after a failure, or of the first check that succeeded again.
    recovered: Option<Instant>,
}

impl Health {
    fn is_healthy(&self, now: Instant) -> bool {
        !self.is_sick && self.failed_until.is_none_or(|until| until <= now)
    }

    /// Returns whether this is news.
    fn on_check(&mut self, works: bool, now: Instant) -> bool {
        if works && self.is_sick {
            self.recovered = Some(now);
        }
        let was_sick = std::mem::replace(&mut self.is_sick, !works);
        was_sick == works
    }

    fn on_failure(&mut self, until: Instant) {
        self.failed_until = Some(until);
    }

    fn on_response(&mut self, now: Instant) {
        if let Some(until) = self.failed_until.take() {
            self.recovered = Some(until.min(now));
        }
    }

    /// The time since when it gets requests again, after a failure.
    fn works_since(&self, now: Instant) -> Option<Instant> {
        let failed_until = self.failed_until.filter(|until| *until <= now);
        self.recovered.max(failed_until)
    }
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
    /// Why the request could be sent again, if it could.
    pub(super) setback: Option<Setback>,
    /// Whether it should be sent on another connection.
    is_stale: bool,
}

impl Upstream {
    /// The application `upstream`, which is reached as `secured` says if its protocol has TLS.
    ///
    /// # Errors
    /// The settings of TLS cannot be used.
    pub(super) fn new(
        upstream: WeightedUpstream,
        config: &ProxyConfig,
        secured: &Secured,
        counters: Arc<Counters>,
    ) -> Result<Self, UpstreamTlsError> {
        let holders = match config.client_fields {
            ClientFields::Append => SlotHolders::Anyone,
            ClientFields::Replace => SlotHolders::Networks,
        };
        let WeightedUpstream { url, weight } = upstream;
        let dialer = Dialer::new(&url, config, secured)?;
        Ok(Self {
            addresses: Arc::new(Addresses::new(&url, config, dialer)),
            id: Key::of(url.to_string().as_bytes()),
            weight,
            url,
            places: RequestSlots::new(config.max_requests, holders),
            place_timeout: config.place_timeout,
            max_header_bytes: config.max_header_bytes,
            max_header_fields: config.max_header_fields,
            connect_timeout: config.connect_timeout,
            response_timeout: config.response_timeout,
            fail_time: config.fail_time,
            slow_start: config.slow_start,
            health_path: config.health_path.clone(),
            health: Mutex::default(),
            counters,
        })
    }

    pub(super) fn url(&self) -> &UpstreamUrl {
        &self.url
    }

    /// The path of its checks, if there are any.
    pub(super) fn health_path(&self) -> Option<&HealthPath> {
        self.health_path.as_ref()
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
        self.health().is_healthy(Instant::now())
    }

    /// A health check has ended. Returns whether its outcome is another than before.
    pub(super) fn set_health(&self, works: bool) -> bool {
        self.health().on_check(works, Instant::now())
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How policies see it, at place `index` among all.
    pub(super) fn candidate(&self, index: usize) -> Candidate {
        let now = Instant::now();
        let works_since = self.health().works_since(now);
        let part = match (works_since, self.slow_start) {
            (Some(since), Some(slow_start)) => slow_start_part(now - since, slow_start),
            _ => 1.0,
        };
        Candidate {
            index,
            weight: f64::from(self.weight) * part,
            in_flight: self.counters.in_flight(),
            id: self.id,
        }
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
    /// request for an Upgrade is sent over HTTP/1.1, or is extended CONNECT to an application of HTTP/3 or `h2c://`; its content follows
    /// the response, except over HTTP/3.
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
            let protocol = self.url.protocol();
            let has_connect = matches!(protocol, UpstreamProtocol::H3 | UpstreamProtocol::H2c);
            let need = match is_upgrade && !has_connect {
                true => Need::Http1,
                // Connections that were idle may all have ended.
                false if stale >= limits::MAX_ATTEMPTS => Need::New,
                false => Need::Any,
            };
            let lease = self.lease(need).await?;
            if !lease.is_reused() {
                self.counters.on_connected(lease.version());
            }
            let request = head(lease.version());
            let follows = is_upgrade && protocol != UpstreamProtocol::H3;
            let request = request.map(|()| match follows {
                true => Body::empty(),
                false => content.to_body(),
            });
            match self.send_on(lease, request, content, stale).await {
                Err(error) if error.is_stale && content.is_whole() => stale += 1,
                Err(error) => return Err(error),
                Ok(response) => {
                    self.health().on_response(Instant::now());
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
        stale: usize,
    ) -> Result<Response<Body>, SendError> {
        let begun = Instant::now();
        let is_reused = lease.is_reused();
        let endpoint = lease.endpoint();
        let mut response = pin!(lease.send(request));
        let mut expected = Some(begun + CONTINUE_TIMEOUT);
        loop {
            let last = begun.max(content.progressed()) + self.response_timeout;
            let deadline = expected.map_or(last, |expected| expected.min(last));
            match timeout_at(deadline, response.as_mut()).await {
                Ok(answered) => {
                    return answered.map_err(|error| {
                        if error.is_silent() {
                            self.on_silence(&endpoint);
                        }
                        let is_stale = error.is_unsent
                            && (is_reused || (error.is_rejected && stale < limits::MAX_ATTEMPTS));
                        SendError {
                            is_stale,
                            ..self.explain(&error, is_reused, content)
                        }
                    });
                }
                Err(_) if expected.take().is_some() => content.open(),
                Err(_)
                    if begun.max(content.progressed()) + self.response_timeout > Instant::now() => {
                }
                Err(_) => {
                    return Err(SendError {
                        failure: Failure::ResponseTimeout(self.response_timeout),
                        setback: None,
                        is_stale: false,
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
        self.health().on_failure(Instant::now() + self.fail_time);
        self.addresses.on_failure();
        Err(SendError {
            failure: match error {
                Some(error) => error.into_failure(self.connect_timeout),
                None => Failure::ConnectTimeout(self.connect_timeout),
            },
            setback: Some(Setback::Unsent),
            is_stale: false,
        })
    }

    /// A connection to `endpoint` ended because nothing arrived on it.
    fn on_silence(&self, endpoint: &Weak<Endpoint>) {
        if let Some(endpoint) = endpoint.upgrade() {
            endpoint.on_failure(self.fail_time);
        }
        if self.addresses.have_failed() {
            self.health().on_failure(Instant::now() + self.fail_time);
            self.addresses.on_failure();
        }
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

    fn explain(&self, error: &LeaseError, is_reused: bool, content: &HeldBody) -> SendError {
        let LeaseError {
            error, is_unsent, ..
        } = error;
        let error = &**error as &(dyn std::error::Error + 'static);
        SendError {
            is_stale: false,
            failure: match content.failure() {
                Some(failure) => failure,
                None if lacks_connect(error) => {
                    Failure::Refused("WebSockets to an application without extended CONNECT")
                }
                None if is_too_large(error) => Failure::Response(format!(
                    "its header has more than {} bytes or {} fields",
                    self.max_header_bytes, self.max_header_fields
                )),
                None => Failure::Response(cause(error)),
            },
            setback: match (is_unsent, is_lost_connection(error)) {
                (true, _) => Some(Setback::Unsent),
                (false, true) if is_reused => Some(Setback::Stale),
                (false, true) => Some(Setback::Lost),
                (false, false) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests;
