//! The requests for an object, through the layers of the configuration; failed attempts are repeated.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::header::COOKIE;
use http::{HeaderMap, Request, Response, Uri};
use tower::{Service, ServiceExt};

use super::{First, Job, Queue};
use crate::client::layers::{self, FinalUri, ResponseFuture};
use crate::client::pace::Pace;
use crate::client::pooled::{Answer, Outgoing};
use crate::client::{
    Client, ClientError, Decoding, Download, Exchange, ObjectReport, Origin, Upload, parse_url,
};

/// The response after all redirects.
pub(super) struct Got {
    pub(super) response: Response<Decoding>,
    /// The URI that it is for, if that is of the server of the first.
    pub(super) uri: Option<Uri>,
}

impl Client {
    /// `url` with `https` if its host is only reached over TLS.
    pub(super) fn upgraded(&self, url: String) -> String {
        let hsts = self.config().hsts.as_ref();
        let now = self.runtime().unix_time();
        hsts.and_then(|hsts| hsts.upgraded(&url, now))
            .unwrap_or(url)
    }
}

impl Queue {
    /// Fetches the object of `job`, and repeats what fails for a reason that may pass.
    pub(super) async fn fetch_until_done(
        self: &Arc<Self>,
        pooled: usize,
        job: &mut Job,
        object: &mut ObjectReport,
    ) -> Result<(), ClientError> {
        let retry = &self.options.retry;
        let mut attempt = 0;
        loop {
            let is_late = |limit| self.client.runtime().now().saturating_since(self.start) >= limit;
            job.may_retry = attempt < retry.times
                && job.first.message.upload.is_repeatable()
                && !retry.max_time.is_some_and(is_late);
            let fetched = self.fetch_one(pooled, job, object).await;
            let passes = match &fetched {
                Err(error) => retry.covers_error(error),
                Ok(()) => object
                    .exchanges
                    .last()
                    .is_some_and(|last| object.error.is_some() && retry.covers_status(last.status)),
            };
            let has_streamed = job.has_streamed.load(Relaxed);
            if !passes || !job.may_retry || has_streamed {
                return fetched;
            }
            attempt += 1;
            let last = object.exchanges.last().map(|last| &last.response);
            let now = SystemTime::UNIX_EPOCH + self.client.runtime().unix_time();
            let delay = retry.delay(attempt, last.filter(|_| fetched.is_ok()), now);
            self.client.runtime().sleep(delay).await;
            *object = ObjectReport {
                url: std::mem::take(&mut object.url),
                http_version: object.http_version,
                start_s: object.start_s,
                ..ObjectReport::default()
            };
        }
    }

    /// Requests the object of `job`, with the fields of `more`, through the layers of the configuration.
    pub(super) async fn get(
        self: &Arc<Self>,
        pooled: usize,
        job: &Job,
        more: &HeaderMap,
        object: &mut ObjectReport,
    ) -> Result<Got, ClientError> {
        let First {
            origin,
            uri,
            message,
        } = &job.first;
        let mut request = Request::new(message.upload.clone());
        *request.method_mut() = message.method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = message.headers.clone();
        request.headers_mut().extend(more.clone());
        if let Some(credentials) = message.credentials.clone() {
            request.extensions_mut().insert(credentials);
        }
        let log = Log {
            done: Arc::default(),
            object,
        };
        let sender = Sender {
            queue: Arc::clone(self),
            pooled,
            origin: origin.clone(),
            done: Arc::clone(&log.done),
        };
        let response = self.client.layers(sender).oneshot(request).await?;
        let last = response.extensions().get::<FinalUri>();
        let uri = last.map(|last| last.0.clone());
        let version = self.client.config().version;
        let is_here = |uri: &Uri| {
            parse_url(&uri.to_string(), version).is_ok_and(|parsed| parsed.origin.is_same(origin))
        };
        Ok(Got {
            uri: uri.filter(is_here),
            response,
        })
    }

    /// Sends a request over the connection of a job, or over another if it is not for `origin`.
    async fn send(
        &self,
        pooled: usize,
        origin: &Origin,
        request: Request<Upload>,
    ) -> Result<Exchanged, ClientError> {
        let parsed = parse_url(&request.uri().to_string(), self.client.config().version)?;
        let elsewhere;
        let connection = match parsed.origin.is_same(origin) {
            true => &self.pooled_connections[pooled],
            false => {
                elsewhere = self.elsewhere.to(&self.client, &parsed.origin);
                &elsewhere
            }
        };
        let pace = self
            .options
            .rate
            .map(|rate| Arc::new(Pace::new(rate.get())));
        let (parts, upload) = request.into_parts();
        let outgoing = Outgoing {
            method: &parts.method,
            uri: &parsed.uri,
            headers: &parts.headers,
            extensions: &parts.extensions,
            upload: &upload,
            pace: pace.as_ref(),
        };
        let Answer {
            connection,
            connected,
            content_length,
            response,
        } = connection.send(&self.client, outgoing).await?;
        let record = Record {
            connected_s: self.seconds_at(connected),
            first_byte_s: self.elapsed_s(),
            exchange: Exchange {
                uri: parsed.uri,
                method: parts.method,
                request: parts.headers,
                content_length,
                connection: connection.id,
                http_version: connection.version().label(),
                status: response.status(),
                response: response.headers().clone(),
            },
        };
        Ok(Exchanged { response, record })
    }

    /// The header fields for ranges of the object of `job`, with credentials and cookies.
    pub(super) fn fields(&self, job: &Job) -> HeaderMap {
        let config = self.client.config();
        let First { uri, message, .. } = &job.first;
        let mut headers = message.headers.clone();
        let own = message.credentials.as_ref();
        layers::authorize(own, &config.credentials, uri, &mut headers);
        if let Some(jar) = &config.cookies
            && let Some(value) = jar.field(uri, headers.get(COOKIE))
        {
            headers.insert(COOKIE, value);
        }
        headers
    }
}

/// The service below the layers of one object: it sends requests over the connections of a queue, and keeps records.
#[derive(Clone)]
struct Sender {
    queue: Arc<Queue>,
    pooled: usize,
    /// The server of the first request.
    origin: Origin,
    done: Arc<Mutex<Vec<Record>>>,
}

impl Service<Request<Upload>> for Sender {
    type Response = Response<Download>;
    type Error = ClientError;
    type Future = ResponseFuture<Download>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Upload>) -> Self::Future {
        let Self {
            queue,
            pooled,
            origin,
            done,
        } = self.clone();
        Box::pin(async move {
            let Exchanged { response, record } = queue.send(pooled, &origin, request).await?;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push(record);
            Ok(response)
        })
    }
}

/// A response, and its record.
struct Exchanged {
    response: Response<Download>,
    record: Record,
}

/// The record of a response.
struct Record {
    /// When the connection was open for the request.
    connected_s: f64,
    first_byte_s: f64,
    exchange: Exchange,
}

/// Adds records to the report of an object, also when its request is dropped.
struct Log<'a> {
    done: Arc<Mutex<Vec<Record>>>,
    object: &'a mut ObjectReport,
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        for record in done.drain(..) {
            let Record {
                connected_s,
                first_byte_s,
                exchange,
            } = record;
            let object = &mut *self.object;
            object.connected_s.get_or_insert(connected_s);
            object.first_byte_s.get_or_insert(first_byte_s);
            object.connection = Some(exchange.connection);
            object.http_version = exchange.http_version;
            object.status = Some(exchange.status.as_u16());
            object.exchanges.push(exchange);
        }
    }
}
