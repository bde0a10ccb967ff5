//! A pooled connection: a connection to an origin that is opened when it is needed, and replaced when it fails.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::CONTENT_LENGTH;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, Uri};
use marline::Instant;
use tokio::sync::Mutex as Turns;

use super::fallback::both;
use super::pace::Pace;
use super::upload::{Failure, Upload};
use super::{Client, ClientError, Connection, Download, Origin};
use crate::body::Body;

/// The response to a request, and its connection.
pub(crate) struct Answer {
    pub(crate) connection: Arc<Connection>,
    /// When the connection was open for the request.
    pub(crate) connected: Instant,
    /// The length of the request's content, if it was known.
    pub(crate) content_length: Option<u64>,
    pub(crate) response: Response<Download>,
}

/// A request that can be sent more than once.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) headers: &'a HeaderMap,
    pub(super) extensions: &'a Extensions,
    pub(super) upload: &'a Upload,
    /// Limits the rate of the content.
    pub(super) pace: Option<&'a Arc<Pace>>,
}

/// A request whose content is ready to be sent.
struct OpenRequest {
    request: Request<Body>,
    content_length: Option<u64>,
    failure: Failure,
}

impl Outgoing<'_> {
    async fn open(&self, client: &Client) -> Result<OpenRequest, ClientError> {
        let opened = self.upload.open(client.runtime(), self.pace).await?;
        let mut request = Request::new(opened.body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        *request.extensions_mut() = self.extensions.clone();
        let content_length = opened.length.filter(|_| !self.upload.is_none());
        if let Some(length) = content_length {
            let headers = request.headers_mut();
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(OpenRequest {
            request,
            content_length,
            failure: opened.failure,
        })
    }
}

/// The connection for the next request.
struct Usable {
    connection: Arc<Connection>,
    /// Whether it was open before.
    is_reused: bool,
}

/// One connection to an origin at a time. When it fails, the next request opens another.
pub(crate) struct PooledConnection {
    origin: Origin,
    /// The number of pooled connections to its origin, including this one.
    count: usize,
    /// Held while it connects: one connection opens at a time.
    opening: Turns<()>,
    /// The connections that it has opened; the last is the one to use.
    opened: Mutex<Vec<Arc<Connection>>>,
}

impl PooledConnection {
    /// `count` pooled connections to `origin` that are used together.
    pub(crate) fn some(origin: &Origin, count: usize) -> impl Iterator<Item = Arc<Self>> {
        (0..count).map(move |_| {
            Arc::new(Self {
                origin: origin.clone(),
                count,
                opening: Turns::default(),
                opened: Mutex::default(),
            })
        })
    }

    /// Connects, unless it is connected. Returns the connection to use.
    pub(crate) async fn open(&self, client: &Client) -> Result<Arc<Connection>, ClientError> {
        let usable = self.connection(client).await?;
        Ok(usable.connection)
    }

    /// The connection to use, which is opened if there is none.
    async fn connection(&self, client: &Client) -> Result<Usable, ClientError> {
        let _opening = self.opening.lock().await;
        if let Some(connection) = self.current() {
            return Ok(Usable {
                connection,
                is_reused: true,
            });
        }
        let connection = match self.instead_of_failed(client).await {
            Some(connection) => connection,
            None => client.connect_one_of(&self.origin, self.count).await?,
        };
        let connection = Arc::new(connection);
        self.opened().push(Arc::clone(&connection));
        Ok(Usable {
            connection,
            is_reused: false,
        })
    }

    /// A connection over TCP or from another address, if there is one, instead of the last, if that has ended before its
    /// handshake: in 0-RTT another over QUIC would seem to be open as well.
    async fn instead_of_failed(&self, client: &Client) -> Option<Connection> {
        let last = self.opened().last().cloned();
        let early = last.filter(|last| client.may_replace(last))?;
        let other = client.connect_instead_of(&early, &self.origin).await;
        other.ok().flatten()
    }

    /// Completes when the pooled connection has another connection instead of `early`, whose handshake does not complete, or is not
    /// confirmed, in time.
    async fn replaced(&self, client: &Client, early: &Arc<Connection>) {
        if let Some(wait) = client.replacement_wait(early) {
            client.runtime().sleep(wait).await;
            if matches!(self.replace(client, early).await, Ok(true)) {
                return;
            }
        }
        pending::<()>().await;
    }

    /// Connects instead of `early`, if another may take its place. Returns whether the pooled connection has another connection.
    async fn replace(&self, client: &Client, early: &Arc<Connection>) -> Result<bool, ClientError> {
        let _opening = self.opening.lock().await;
        if !self.is_last(early) {
            return Ok(true);
        }
        if !client.may_replace(early) {
            return Ok(false);
        }
        let other = client.connect_instead_of(early, &self.origin).await?;
        let is_replaced = other.is_some();
        self.opened().extend(other.map(Arc::new));
        Ok(is_replaced)
    }

    /// Requests `uri` by GET, as [`send`](Self::send) does.
    pub(crate) async fn get(
        &self,
        client: &Client,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Answer, ClientError> {
        let request = Outgoing {
            method: &Method::GET,
            uri,
            headers,
            extensions: &Extensions::new(),
            upload: &Upload::default(),
            pace: None,
        };
        self.send(client, request).await
    }

    /// Sends a request; repeats it on a new connection if one that was open before fails, or if none has opened
    /// behind a request in 0-RTT. A request whose repetition could do harm, or whose content can be read once, is not repeated.
    pub(super) async fn send(
        &self,
        client: &Client,
        request: Outgoing<'_>,
    ) -> Result<Answer, ClientError> {
        let is_repeatable = request.upload.is_repeatable();
        let is_idempotent = request.method.is_idempotent();
        let mut retried = false;
        loop {
            let Usable {
                connection,
                is_reused,
            } = self.connection(client).await?;
            let connected = client.runtime().now();
            let may_replace = is_repeatable && (is_idempotent || connection.is_early());
            let opened = request.open(client).await?;
            let response = tokio::select! {
                biased;
                response = connection.request(&self.origin, opened.request) => response,
                () = self.replaced(client, &connection), if may_replace => continue,
            };
            let response = response.map_err(|error| opened.failure.take().unwrap_or(error));
            match response {
                Err(error)
                    if error.is_retriable()
                        && !retried
                        && may_replace
                        && client.may_replace(&connection) =>
                {
                    retried = true;
                    match self.replace(client, &connection).await {
                        Ok(true) => {}
                        Ok(false) => return Err(error),
                        Err(other) => return Err(both(error, other)),
                    }
                }
                Err(error)
                    if error.is_retriable()
                        && is_reused
                        && !retried
                        && is_repeatable
                        && is_idempotent =>
                {
                    retried = true;
                    let _opening = self.opening.lock().await;
                    if self.is_last(&connection) && !connection.is_closed() {
                        // The connection does not respond, but is not closed either.
                        let other = client.connect_one_of(&self.origin, self.count).await?;
                        self.opened().push(Arc::new(other));
                    }
                }
                response => {
                    return Ok(Answer {
                        connection,
                        connected,
                        content_length: opened.content_length,
                        response: response?,
                    });
                }
            }
        }
    }

    /// Its connection, if it is open.
    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        let opened = self.opened();
        opened.last().filter(|last| !last.is_closed()).cloned()
    }

    /// All connections that it has opened, but for those that it has forgotten.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        self.opened().clone()
    }

    /// Forgets connections that are closed.
    pub(crate) fn forget_closed(&self) {
        self.opened().retain(|connection| !connection.is_closed());
    }

    /// Closes its connections.
    pub(crate) fn close(&self) {
        for connection in self.connections() {
            connection.close();
        }
    }

    fn is_last(&self, connection: &Arc<Connection>) -> bool {
        let opened = self.opened();
        opened
            .last()
            .is_some_and(|last| Arc::ptr_eq(last, connection))
    }

    fn opened(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
