//! The applications behind a reverse proxy: their connections and their health.

mod connector;

use std::error::Error as StdError;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};

use self::connector::Connector;
use super::config::{ClientFields, ProxyConfig, UpstreamUrl};
use super::content::Guard;
use super::failure::{Failure, cause, is_lost_connection, is_too_large};
use super::request_body::HeldBody;
use super::request_slots::{NoSlot, RequestSlot, RequestSlots, SlotHolders};
use super::upstream_metrics::{Counters, InFlight, UpstreamMetrics};
use crate::body::Body;
use crate::limits;
use crate::server::Stopped;

/// The time for which a client that sends `Expect: 100-continue` waits for the answer of the
/// application.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// One application.
pub(super) struct Upstream {
    url: UpstreamUrl,
    client: Client<Connector, Body>,
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
    pub(super) fn new(url: UpstreamUrl, config: &ProxyConfig, counters: Arc<Counters>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(config.connect_timeout));
        connector.set_nodelay(true);
        // As much as all streams together, so that unread ones do not block the others.
        let streams = u32::try_from(config.max_requests).unwrap_or(u32::MAX);
        let connection_window = limits::UPSTREAM_STREAM_WINDOW
            .saturating_mul(streams)
            .min(limits::LARGEST_HTTP2_WINDOW);
        // By then, the wait for the response has ended.
        let write_timeout = config.response_timeout.max(config.idle_timeout);
        let holders = match config.client_fields {
            ClientFields::Append => SlotHolders::Anyone,
            ClientFields::Replace => SlotHolders::Networks,
        };
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(config.keep_alive)
            .pool_max_idle_per_host(config.max_idle_connections)
            .http1_max_buf_size(config.max_header_bytes)
            .http1_max_headers(config.max_header_fields)
            .http2_only(url.is_http2())
            .http2_initial_stream_window_size(limits::UPSTREAM_STREAM_WINDOW)
            .http2_initial_connection_window_size(connection_window)
            .http2_max_header_list_size(u32::try_from(config.max_header_bytes).unwrap_or(u32::MAX))
            .http2_max_send_buf_size(limits::HTTP2_SEND_BUFFER)
            .set_host(false)
            .build(Connector::new(connector, write_timeout));
        Self {
            url,
            client,
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
        }
    }

    pub(super) fn url(&self) -> &UpstreamUrl {
        &self.url
    }

    /// The counters of its requests.
    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The target of a request for `path`.
    pub(super) fn target(&self, path: PathAndQuery) -> Uri {
        let uri = Uri::builder()
            .scheme("http")
            .authority(self.url.authority().clone())
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

    /// Sends `request`, whose content is `content`, and waits for the header of the response.
    ///
    /// # Errors
    /// There is no response, or not in time.
    pub(super) async fn send(
        &self,
        request: Request<()>,
        content: &HeldBody,
    ) -> Result<Response<Incoming>, SendError> {
        let begun = Instant::now();
        let extensions = request.extensions().clone();
        let mut request = request.map(|()| content.to_body());
        *request.extensions_mut() = extensions;
        let mut response = pin!(self.client.request(request));
        let mut expected = Some(begun + CONTINUE_TIMEOUT);
        loop {
            let last = begun.max(content.progressed()) + self.response_timeout;
            let deadline = expected.map_or(last, |expected| expected.min(last));
            match timeout_at(deadline, response.as_mut()).await {
                Ok(Ok(response)) => {
                    *self.failed() = None;
                    return Ok(response);
                }
                Ok(Err(error)) => return Err(self.explain(&error, content)),
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

    fn explain(&self, error: &hyper_util::client::legacy::Error, content: &HeldBody) -> SendError {
        let cause = cause(error);
        if error.is_connect() {
            *self.failed() = Some(Instant::now() + self.fail_time);
            return SendError {
                failure: match is_timeout(error) {
                    true => Failure::ConnectTimeout(self.connect_timeout),
                    false => Failure::Connect(cause),
                },
                is_unsent: true,
                is_lost: false,
            };
        }
        SendError {
            failure: match content.failure() {
                Some(failure) => Failure::Content(failure),
                None if is_too_large(error) => Failure::Response(format!(
                    "its header has more than {} bytes or {} fields",
                    self.max_header_bytes, self.max_header_fields
                )),
                None => Failure::Response(cause),
            },
            is_unsent: false,
            is_lost: is_lost_connection(error),
        }
    }
}

fn is_timeout(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>()
            && error.kind() == io::ErrorKind::TimedOut
        {
            return true;
        }
        if error.is::<tokio::time::error::Elapsed>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// All applications of a proxy.
pub(super) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    turn: AtomicUsize,
}

impl Upstreams {
    /// The applications of `config`, which `metrics` shows from now on.
    pub(super) fn new(config: &ProxyConfig, metrics: &UpstreamMetrics) -> Self {
        let urls = config.upstreams.iter();
        let all: Vec<_> = urls
            .map(|url| {
                let counters = metrics.counters(&url.to_string());
                Arc::new(Upstream::new(url.clone(), config, counters))
            })
            .collect();
        metrics.show(&all);
        Self {
            all,
            turn: AtomicUsize::new(0),
        }
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
