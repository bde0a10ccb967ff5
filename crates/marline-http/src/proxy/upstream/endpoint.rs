//! One address of an application, and the connections to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::{Request, Response, Version};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use tokio::sync::Mutex as Turns;
use tokio::time::{Instant, sleep};

use super::dial::{Address, DialError, Dialer, Sender};
use crate::body::{Body, with_source};

/// An address of an application. Connections to it are kept while they are idle, and shared if they are of HTTP/2.
#[derive(Debug)]
pub(super) struct Endpoint {
    address: Address,
    dialer: Arc<Dialer>,
    keep_alive: Duration,
    max_idle: usize,
    state: Mutex<State>,
    /// Held while a connection opens that may be shared.
    opening: Turns<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Connections of HTTP/1.1 without a request, the one that was used last at the end.
    idle: Vec<Kept<http1::SendRequest<Body>>>,
    /// The connection that requests share.
    shared: Option<Kept<Sender>>,
    /// Whether connections carry one request at a time; unknown before the first.
    is_http1: Option<bool>,
    /// The time until which other addresses are preferred, as it could not be reached.
    failed_until: Option<Instant>,
    /// Whether a task closes connections that are idle for too long.
    is_swept: bool,
}

/// A connection that is kept, and the time when it was last used.
#[derive(Debug)]
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
    pub(super) error: hyper::Error,
    /// Whether nothing of the request was sent.
    pub(super) is_unsent: bool,
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
        let opening = match may_share() {
            true => Some(self.opening.lock().await),
            false => None,
        };
        // Another request may have opened one in the meantime.
        if opening.is_some()
            && let Some(sender) = kept()
        {
            return Ok(self.leased(sender, true));
        }
        let _opening = opening.filter(|_| may_share());
        let sender = self.dialer.dial(&self.address, need == Need::Http1).await?;
        let mut state = self.state();
        state.failed_until = None;
        if need != Need::Http1 {
            state.is_http1 = Some(matches!(sender, Sender::Http1(_)));
        }
        if let Some(sender) = sender.to_share() {
            state.shared = Some(Kept::now(sender));
            self.sweep(&mut state);
        }
        drop(state);
        Ok(self.leased(sender, false))
    }

    fn leased(self: &Arc<Self>, sender: Sender, is_reused: bool) -> Lease {
        Lease {
            sender,
            is_reused,
            endpoint: Arc::downgrade(self),
        }
    }

    /// The connection that requests share, if it is open.
    fn shared(&self) -> Option<Sender> {
        let mut state = self.state();
        let shared = state.shared.as_mut()?;
        if shared.sender.is_closed() || shared.used.elapsed() >= self.keep_alive {
            state.shared = None;
            return None;
        }
        shared.used = Instant::now();
        shared.sender.to_share()
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

    /// Keeps a connection whose request is over.
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
            .take_if(|shared| shared.used.elapsed() >= self.keep_alive);
        state.is_swept = !state.idle.is_empty() || state.shared.is_some();
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

impl Sender {
    /// The same connection for another request, if it carries several at a time.
    fn to_share(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(sender) => Some(Self::Http2(sender.clone())),
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

impl Lease {
    /// The version of HTTP that it uses.
    pub(super) fn version(&self) -> Version {
        match &self.sender {
            Sender::Http1(_) => Version::HTTP_11,
            Sender::Http2(_) => Version::HTTP_2,
        }
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
                sender.ready().await.map_err(LeaseError::unsent)?;
                sender.try_send_request(request).await
            }
        };
        let response = response.map_err(|mut error| LeaseError {
            is_unsent: error.take_message().is_some(),
            error: error.into_error(),
        })?;
        Ok(response.map(|body| Body::new(body.map_err(with_source))))
    }
}

impl LeaseError {
    fn unsent(error: hyper::Error) -> Self {
        Self {
            error,
            is_unsent: true,
        }
    }
}

/// Keeps a connection as soon as its response is over; it ends instead if the response was not read to its end.
async fn keep_when_ready(mut sender: http1::SendRequest<Body>, endpoint: Weak<Endpoint>) {
    if sender.ready().await.is_ok()
        && let Some(endpoint) = endpoint.upgrade()
    {
        endpoint.keep(sender);
    }
}
