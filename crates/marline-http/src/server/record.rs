//! One record per response: a line of the access log, and the counts of the metrics.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Method, Response, StatusCode, Version};
use http_body::{Body as _, Frame, SizeHint};
use marline::Instant;
use serde::Serialize;

use super::access_log::AccessLog;
use super::metrics::{Metrics, version_name};
use super::progress::Progress;
use crate::body::{Body, BoxError};
use crate::content::{content_length, is_bodiless};
use crate::runtime::RuntimeHandle;

/// The fields of a line. Their names are a stable interface, except `complete`.
#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since 1970, when the request's header had arrived.
    time: f64,
    client: SocketAddr,
    /// Nothing if the request could not be read.
    method: Option<&'a str>,
    path: Option<&'a str>,
    /// Nothing if a malformed request was answered with a reset of its stream, or if its client or connection was gone before
    /// the response.
    status: Option<u16>,
    /// Bytes of content that were passed to the connection.
    bytes: u64,
    http_version: &'static str,
    connection: &'a str,
    /// The number of the QUIC connection's bundle in this process, if it has one.
    bundle: Option<u64>,
    /// The initial window of the QUIC connection's path, in bytes.
    initial_window: Option<u64>,
    /// The paths that the QUIC connection has, including recently closed ones.
    paths: Option<usize>,
    duration_s: f64,
    /// Whether the whole response was passed to the connection.
    complete: bool,
    /// Where the response is from, if the request was passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    /// Why there was no response from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_error: Option<&'a str>,
    /// The pipe that carried the response, from 0, if the request was passed on over a pool of pipes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pipe: Option<usize>,
}

/// The extension of a response that says where its request was passed on to. The access log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOn {
    upstream: String,
    error: Option<String>,
    pipe: Option<usize>,
}

impl PassedOn {
    /// The request was passed on to `upstream`; `error` says why there was no response.
    pub fn to(upstream: impl Into<String>, error: Option<String>) -> Self {
        Self {
            upstream: upstream.into(),
            error,
            pipe: None,
        }
    }

    /// The same over the pipe with this number, from 0, of a [pool](crate::pipes).
    #[must_use]
    pub fn over_pipe(self, pipe: Option<usize>) -> Self {
        Self { pipe, ..self }
    }
}

/// State that is shared by the records of one connection.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) runtime: RuntimeHandle,
    pub(super) metrics: Arc<Metrics>,
    pub(super) client: SocketAddr,
    pub(super) connection: String,
    /// Whether requests make progress, if it is a connection over TCP.
    pub(super) progress: Option<Arc<Progress>>,
    /// The connection, if it is QUIC: it may join a bundle after its first request.
    pub(super) quic: Option<marline::Connection>,
}

impl Recorder {
    /// Content has moved.
    pub(super) fn on_content(&self, bytes: usize) {
        if let Some(progress) = &self.progress {
            progress.on_content(bytes);
        }
    }
}

/// A request that could be read.
struct Request {
    method: Method,
    /// Empty without a log.
    path: String,
}

/// The part of a record that is known before the response.
pub(super) struct Record {
    recorder: Arc<Recorder>,
    log: Option<AccessLog>,
    start: Instant,
    time: f64,
    request: Option<Request>,
    version: Version,
    status: Option<StatusCode>,
    bytes: u64,
    expected: Option<u64>,
    complete: bool,
    passed_on: Option<PassedOn>,
}

impl Record {
    pub(super) fn new(
        recorder: &Arc<Recorder>,
        log: Option<AccessLog>,
        method: &Method,
        path: &str,
        version: Version,
    ) -> Self {
        let path = match &log {
            Some(_) => path.to_owned(),
            None => String::new(),
        };
        let request = Request {
            method: method.clone(),
            path,
        };
        let mut record = Self::unreadable(recorder, log, version);
        record.request = Some(request);
        record
    }

    /// A record of a request that is malformed or too large.
    pub(super) fn unreadable(
        recorder: &Arc<Recorder>,
        log: Option<AccessLog>,
        version: Version,
    ) -> Self {
        if let Some(progress) = &recorder.progress {
            progress.on_request();
        }
        Self {
            recorder: Arc::clone(recorder),
            log,
            start: recorder.runtime.now(),
            time: recorder.runtime.unix_time().as_secs_f64(),
            request: None,
            version,
            status: None,
            bytes: 0,
            expected: None,
            complete: false,
            passed_on: None,
        }
    }

    /// The whole response is `status` with this many `bytes` of content.
    pub(super) fn answered(mut self, status: StatusCode, bytes: u64) {
        self.status = Some(status);
        self.bytes = bytes;
        self.complete = true;
    }

    /// Records `response` when its last byte has been read, or when it is dropped.
    pub(super) fn follow(mut self, response: Response<Body>) -> Response<Body> {
        self.status = Some(response.status());
        self.passed_on = response.extensions().get().cloned();
        self.expected = content_length(response.headers());
        let request = self.request.as_ref();
        let status = response.status();
        let is_bodiless = request.is_some_and(|request| is_bodiless(&request.method, status));
        response.map(|body| {
            self.complete = is_bodiless || body.is_end_stream();
            let (inner, record) = (body, self);
            Body::new(Recorded { inner, record })
        })
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let recorder = &self.recorder;
        let duration = recorder.runtime.now() - self.start;
        let metrics = &recorder.metrics;
        let has_failed = self.status.is_none() && std::thread::panicking();
        let status = match has_failed {
            true => Some(StatusCode::INTERNAL_SERVER_ERROR),
            false => self.status,
        };
        if let Some(status) = status {
            metrics.responded(self.version, status, self.bytes, duration);
        }
        match (&self.request, status) {
            (None, _) => metrics.request_unreadable(self.version),
            (Some(_), None) => metrics.request_unanswered(self.version),
            (Some(_), Some(_)) => {}
        }
        if let Some(progress) = &recorder.progress {
            progress.on_response_end();
        }
        let Some(log) = &self.log else { return };
        let request = self.request.as_ref();
        let line = Line {
            time: self.time,
            // One socket may take both families.
            client: SocketAddr::new(recorder.client.ip().to_canonical(), recorder.client.port()),
            method: request.map(|request| request.method.as_str()),
            path: request.map(|request| &*request.path),
            status: status.map(|status| status.as_u16()),
            bytes: self.bytes,
            http_version: version_name(self.version),
            connection: &recorder.connection,
            bundle: recorder.quic.as_ref().and_then(marline::Connection::bundle),
            initial_window: recorder
                .quic
                .as_ref()
                .map(marline::Connection::initial_window),
            paths: recorder.quic.as_ref().map(paths),
            duration_s: duration.as_secs_f64(),
            complete: self.complete,
            upstream: self.passed_on.as_ref().map(|passed| &*passed.upstream),
            upstream_error: self
                .passed_on
                .as_ref()
                .and_then(|passed| passed.error.as_deref()),
            pipe: self.passed_on.as_ref().and_then(|passed| passed.pipe),
        };
        log.write(self.time, &line);
    }
}

fn paths(connection: &marline::Connection) -> usize {
    match connection.is_multipath() {
        true => connection.paths().len(),
        false => 1,
    }
}

struct Recorded {
    inner: Body,
    record: Record,
}

impl http_body::Body for Recorded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                this.record.bytes += bytes as u64;
                this.record.recorder.on_content(bytes);
                // With a known length, the body is not polled for its end.
                let all = Some(this.record.bytes) == this.record.expected;
                this.record.complete = all || this.inner.is_end_stream();
            }
            Some(Err(_)) => this.record.complete = false,
            None => this.record.complete = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
