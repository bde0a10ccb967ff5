//! One address of an application, and the connections to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::{Request, Response, Version};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper::ext::Protocol;
use marline::ConnectionError;
use marline_h3::SendError;
use tokio::sync::Mutex as Turns;
use tokio::time::{Instant, sleep, timeout};

use super::dial::{Address, DialError, Dialed, Dialer, Sender, Shared};
use crate::body::{Body, BoxError, with_source};
use crate::client::ClientError;
use crate::http3::RequestError;
use crate::limits;

/// The round-trip time that is assumed before the first one is measured (RFC 9002, section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The first probe timeout in round-trip times: their variation is assumed to be a half (RFC 9002, section 6.2.1).
const PTO_IN_RTTS: u32 = 3;

/// Round trips of a handshake, and of its lost packets.
const ROUND_TRIPS: u32 = 4;

/// An address of an application. Connections to it are kept while they are idle, and shared if they are of HTTP/2 or
/// HTTP/3.
pub(super) struct Endpoint {
    address: Address,
    dialer: Arc<Dialer>,
    keep_alive: Duration,
    max_idle: usize,
    state: Mutex<State>,
    /// Held while a connection opens that may be shared.
    opening: Turns<()>,
}

#[derive(Default)]
struct State {
    /// Connections of HTTP/1.1 without a request, the one that was used last at the end.
    idle: Vec<Kept<http1::SendRequest<Body>>>,
    /// The connections that requests share, the newest first. There are several if requests are more than the application allows on
    /// one of HTTP/3.
    shared: Vec<Kept<Shared>>,
    /// Whether connections carry one request at a time; unknown before the first.
    is_http1: Option<bool>,
    /// The time until which other addresses are preferred, as it could not be reached.
    failed_until: Option<Instant>,
    /// Whether a task closes connections that are idle for too long.
    is_swept: bool,
    /// The round-trip time of its last connection of HTTP/3 as it was opened.
    rtt: Option<Duration>,
    /// How often nothing has arrived from it.
    silences: u64,
}

/// A connection that is kept, and the time when it was last used.
struct Kept<S> {
    sender: S,
    used: Instant,
}

/// The connection that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Any.
    Any,
    /// One that was not open before.
    New,
    /// One of HTTP/1.1, which can become a tunnel.
    Http1,
}

/// A connection for one request.
pub(super) struct Lease {
    sender: Sender,
    /// Whether it was open before.
    is_reused: bool,
    endpoint: Weak<Endpoint>,
}

/// A request had no response.
pub(super) struct LeaseError {
    pub(super) error: BoxError,
    /// Whether the application has processed nothing of the request.
    pub(super) is_unsent: bool,
    /// Whether it got the request, and refused to process it on this connection.
    pub(super) is_rejected: bool,
}

impl Endpoint {
    pub(super) fn new(
        address: Address,
        dialer: Arc<Dialer>,
        keep_alive: Duration,
        max_idle: usize,
    ) -> Self {
        Self {
            address,
            dialer,
            keep_alive,
            max_idle,
            state: Mutex::default(),
            opening: Turns::default(),
        }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it could not be reached a short time ago.
    pub(super) fn has_failed(&self) -> bool {
        let failed_until = self.state().failed_until;
        failed_until.is_some_and(|until| Instant::now() < until)
    }

    /// It could not be reached, and others are preferred for `time`.
    pub(super) fn on_failure(&self, time: Duration) {
        self.state().failed_until = Some(Instant::now() + time);
    }

    /// A connection for one request, which is opened if there is none.
    ///
    /// # Errors
    /// It does not open.
    pub(super) async fn lease(self: &Arc<Self>, need: Need) -> Result<Lease, DialError> {
        let kept = || match need {
            Need::Any => self.shared().or_else(|| self.idle()),
            Need::New => None,
            Need::Http1 => self.idle(),
        };
        if let Some(sender) = kept() {
            return Ok(self.leased(sender, true));
        }
        let may_share = || need != Need::Http1 && self.state().is_http1 != Some(true);
        let silences = self.state().silences;
        let opening = match may_share() {
            true => Some(self.opening.lock().await),
            false => None,
        };
        // Another request may have opened one in the meantime.
        if opening.is_some()
            && let Some(sender) = kept().or_else(|| self.crowded())
        {
            return Ok(self.leased(sender, true));
        }
        let opening = opening.filter(|_| may_share());
        if opening.is_some() && self.state().silences != silences {
            // Another one has waited for it meanwhile.
            return Err(DialError::Silent(self.patience()));
        }
        let dialed = self.dial(need).await?;
        let mut state = self.state();
        state.failed_until = None;
        if need != Need::Http1 {
            state.is_http1 = Some(matches!(dialed, Dialed::Http1(_)));
        }
        let sender = match dialed {
            Dialed::Http1(sender) => Sender::Http1(sender),
            Dialed::Shared(shared) => {
                state.rtt = shared.rtt().or(state.rtt);
                let (sender, most) = (shared.sender(), shared.most());
                state.shared.insert(0, Kept::now(shared));
                state.shared.truncate(most);
                self.sweep(&mut state);
                sender
            }
        };
        drop(state);
        Ok(self.leased(sender, false))
    }

    /// Opens a connection. No ICMP message ends the wait for an application over HTTP/3 that is not there.
    async fn dial(&self, need: Need) -> Result<Dialed, DialError> {
        let dialing = self.dialer.dial(&self.address, need == Need::Http1);
        if !self.dialer.is_http3() {
            return dialing.await;
        }
        let limit = self.patience();
        let dialed = timeout(limit, dialing).await;
        dialed.unwrap_or_else(|_| {
            self.state().silences += 1;
            Err(DialError::Silent(limit))
        })
    }

    /// The time in which an application over HTTP/3 answers if it is there. Its first packet is sent again once (RFC 9002,
    /// section 6.2.2), unless it was not there a short time ago.
    fn patience(&self) -> Duration {
        let has_failed = self.has_failed();
        let rtt = self.state().rtt.unwrap_or(INITIAL_RTT);
        let answer = limits::LEAST_UPSTREAM_ANSWER.max(rtt * ROUND_TRIPS);
        match has_failed {
            true => answer,
            false => INITIAL_RTT * PTO_IN_RTTS + 2 * answer,
        }
    }

    fn leased(self: &Arc<Self>, sender: Sender, is_reused: bool) -> Lease {
        Lease {
            sender,
            is_reused,
            endpoint: Arc::downgrade(self),
        }
    }

    /// A connection that requests share, if one is open and the application allows one more request on it.
    fn shared(&self) -> Option<Sender> {
        let mut state = self.state();
        let is_usable =
            |one: &Kept<Shared>| !one.sender.is_closed() && one.used.elapsed() < self.keep_alive;
        state.shared.retain(is_usable);
        state.shared.iter_mut().find_map(|one| {
            let sender = one.sender.try_sender()?;
            one.used = Instant::now();
            Some(sender)
        })
    }

    /// The connection among all that there may be that was not used for the longest time: a request waits for others there.
    fn crowded(&self) -> Option<Sender> {
        let mut state = self.state();
        let count = state.shared.len();
        let one = state.shared.iter_mut().min_by_key(|one| one.used)?;
        if count < one.sender.most() {
            return None;
        }
        one.used = Instant::now();
        Some(one.sender.sender())
    }

    /// A connection of HTTP/1.1 that is open and has no request.
    fn idle(&self) -> Option<Sender> {
        let mut state = self.state();
        while let Some(idle) = state.idle.pop() {
            if idle.sender.is_ready() && idle.used.elapsed() < self.keep_alive {
                return Some(Sender::Http1(idle.sender));
            }
        }
        None
    }

    /// Keeps a connection whose request has ended.
    fn keep(self: &Arc<Self>, sender: http1::SendRequest<Body>) {
        let mut state = self.state();
        state.idle.push(Kept::now(sender));
        if state.idle.len() > self.max_idle {
            state.idle.remove(0);
        }
        self.sweep(&mut state);
    }

    /// Closes connections that are idle for too long, in a task.
    fn sweep(self: &Arc<Self>, state: &mut State) {
        if !std::mem::replace(&mut state.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self), self.keep_alive));
        }
    }

    /// Closes connections that are idle for too long. Returns whether there are others.
    fn close_idle(&self) -> bool {
        let mut state = self.state();
        state
            .idle
            .retain(|idle| idle.used.elapsed() < self.keep_alive);
        state
            .shared
            .retain(|shared| shared.used.elapsed() < self.keep_alive);
        state.is_swept = !state.idle.is_empty() || !state.shared.is_empty();
        state.is_swept
    }
}

async fn sweep(endpoint: Weak<Endpoint>, interval: Duration) {
    loop {
        sleep(interval).await;
        let Some(endpoint) = endpoint.upgrade() else {
            return;
        };
        if !endpoint.close_idle() {
            return;
        }
    }
}

impl<S> Kept<S> {
    fn now(sender: S) -> Self {
        Self {
            sender,
            used: Instant::now(),
        }
    }
}

impl Lease {
    /// The version of HTTP that it uses.
    pub(super) fn version(&self) -> Version {
        match &self.sender {
            Sender::Http1(_) => Version::HTTP_11,
            Sender::Http2(_) => Version::HTTP_2,
            Sender::Http3(_) => Version::HTTP_3,
        }
    }

    /// The address that it leads to, as long as that is used.
    pub(super) fn endpoint(&self) -> Weak<Endpoint> {
        Weak::clone(&self.endpoint)
    }

    /// Whether it was open before, so that it may have ended in the meantime.
    pub(super) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Sends a request, and waits for the header of its response. Dropping the response ends the request.
    ///
    /// # Errors
    /// There is no response.
    pub(super) async fn send(self, request: Request<Body>) -> Result<Response<Body>, LeaseError> {
        let response = match self.sender {
            Sender::Http1(mut sender) => {
                sender.ready().await.map_err(LeaseError::unsent)?;
                let response = sender.try_send_request(request).await;
                if response.is_ok() {
                    tokio::spawn(keep_when_ready(sender, self.endpoint));
                }
                response
            }
            Sender::Http2(mut sender) => {
                if request.extensions().get::<Protocol>().is_some()
                    && !sender.accepts_connect().await
                {
                    return Err(LeaseError {
                        error: RequestError::from(SendError::NoConnectProtocol).into(),
                        is_unsent: false,
                        is_rejected: false,
                    });
                }
                let requests = &mut sender.requests;
                requests.ready().await.map_err(LeaseError::unsent)?;
                requests.try_send_request(request).await
            }
            Sender::Http3(sender) => {
                let response = sender.send(request).await;
                return response.map_err(LeaseError::of_http3);
            }
        };
        let response = response.map_err(|mut error| LeaseError {
            is_unsent: error.take_message().is_some(),
            is_rejected: false,
            error: error.into_error().into(),
        })?;
        Ok(response.map(|body| Body::new(body.map_err(with_source))))
    }
}

impl LeaseError {
    fn unsent(error: hyper::Error) -> Self {
        Self {
            error: error.into(),
            is_unsent: true,
            is_rejected: false,
        }
    }

    /// Whether the connection ended because no packet of the application arrived any more.
    pub(super) fn is_silent(&self) -> bool {
        let lost = self.error.downcast_ref();
        matches!(lost, Some(RequestError::Lost(ConnectionError::IdleTimeout)))
    }

    fn of_http3(error: ClientError) -> Self {
        let error = match error {
            ClientError::NoResponse { cause } => cause,
            other => other.into(),
        };
        let cause = error.downcast_ref::<RequestError>();
        let is_unsent = cause.is_some_and(RequestError::is_unprocessed);
        Self {
            error,
            is_unsent,
            is_rejected: is_unsent,
        }
    }
}

/// Keeps a connection as soon as its response has ended; it ends instead if the response was not read to its end.
async fn keep_when_ready(mut sender: http1::SendRequest<Body>, endpoint: Weak<Endpoint>) {
    if sender.ready().await.is_ok()
        && let Some(endpoint) = endpoint.upgrade()
    {
        endpoint.keep(sender);
    }
}
