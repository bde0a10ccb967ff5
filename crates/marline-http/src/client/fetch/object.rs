//! Fetches one object: in one response, resumed, or in ranges.

use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
    LOCATION, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use http_body::Body as _;
use marline::Instant;

use super::exchange::Got;
use super::{FetchOptions, Job, Queue};
use crate::client::pace::{Pace, SpeedCheck};
use crate::client::plan::{Planner, SplitPolicy};
use crate::client::progress::Progress;
use crate::client::range::{ContentRange, range};
use crate::client::save::{Piece, Pieces, ResumePoint, Saved, Sink, Validator, Writer};
use crate::client::split::{self, Outcome, Split, StartedRange, Store};
use crate::client::{ClientError, Connection, Decoding, Destination, ObjectReport, file_name};
use crate::runtime::RuntimeHandle;

/// The response to the request for an object's first bytes.
enum Beginning {
    /// The requested range.
    Range {
        started: StartedRange,
        /// The size of the object.
        size: u64,
        /// The URI after redirects.
        uri: Uri,
    },
    /// Another response, to be used as it is.
    Other(Response<Decoding>),
    /// A response that further ranges cannot be added to.
    Unusable,
}

/// Stores pieces, and updates the progress.
struct Counting {
    pieces: Arc<Writer<Pieces>>,
    progress: Arc<Progress>,
}

impl Store for Counting {
    fn write(&self, offset: u64, bytes: Bytes) -> BoxFuture<'_, Result<(), ClientError>> {
        Box::pin(async move {
            let len = bytes.len() as u64;
            self.pieces.write(Piece { offset, bytes }).await?;
            self.progress.received.fetch_add(len, Relaxed);
            Ok(())
        })
    }
}

impl Queue {
    /// Fetches the object of `job`; the first request is sent on `pooled`.
    pub(super) async fn fetch_one(
        self: &Arc<Self>,
        pooled: usize,
        job: &Job,
        object: &mut ObjectReport,
    ) -> Result<(), ClientError> {
        let (destination, runtime) = (&job.target.destination, self.client.runtime());
        if let Destination::Named { directory, name } = destination {
            let Got { response, .. } = self.get(pooled, job, &HeaderMap::new(), object).await?;
            let path = file_name::path(directory, name, response.headers())?;
            let destination = Destination::File(path);
            let sink = Sink::open_for_reader(&destination, false, runtime).await?;
            return self.receive(job, response, None, sink, object).await;
        }
        let opened = Sink::open_for_reader(destination, self.options.resume, runtime);
        let mut sink = opened.await?;
        let Some(threshold) = self.split_threshold(job, &sink) else {
            return self.fetch_whole(pooled, job, sink, object).await;
        };
        if let Some(size) = job.target.size {
            self.check_size(size)?;
        }
        let (size, started, uri) = match job.target.size {
            Some(size) if size <= threshold => {
                return self.fetch_whole(pooled, job, sink, object).await;
            }
            Some(size) => (size, None, job.first.uri.clone()),
            None => match self.begin(pooled, job, threshold, object).await? {
                Beginning::Range { started, size, uri } => {
                    self.check_size(size)?;
                    (size, Some(started), uri)
                }
                Beginning::Other(response) => {
                    return self.receive(job, response, None, sink, object).await;
                }
                Beginning::Unusable => return self.fetch_whole(pooled, job, sink, object).await,
            },
        };
        match self
            .fetch_split(job, uri, size, started, &mut sink, object)
            .await?
        {
            Outcome::Complete => {
                let hashing = move || sink.end_pieces(size).map(|()| sink);
                let sink = runtime.unblock(hashing).await?;
                finish(sink, object, self.options, runtime).await
            }
            Outcome::Other(answer) => {
                self.record_response(object, &answer.connection, answer.response.status());
                self.receive(
                    job,
                    answer.response.map(Decoding::plain),
                    None,
                    sink,
                    object,
                )
                .await
            }
            Outcome::Whole => self.fetch_whole(pooled, job, sink, object).await,
        }
    }

    /// Fetches the object, or the missing part of it, in one response.
    async fn fetch_whole(
        self: &Arc<Self>,
        pooled: usize,
        job: &Job,
        mut sink: Sink,
        object: &mut ObjectReport,
    ) -> Result<(), ClientError> {
        let mut headers = HeaderMap::new();
        let may_resume = job.first.message.method == Method::GET && !self.asks_for_ranges(job);
        let resumed_from = sink.resume_point().filter(|_| may_resume);
        if let Some(point) = &resumed_from {
            request_rest(&mut headers, point);
        }
        let Got { response, .. } = self.get(pooled, job, &headers, object).await?;
        // The saved part is outdated or already complete: the whole object is fetched.
        if resumed_from.is_some() && response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            sink.start_over(Validator::default())?;
            let none = HeaderMap::new();
            let Got { response, .. } = self.get(pooled, job, &none, object).await?;
            return self.receive(job, response, None, sink, object).await;
        }
        self.receive(job, response, resumed_from.as_ref(), sink, object)
            .await
    }

    pub(super) fn seconds_at(&self, moment: Instant) -> f64 {
        moment.saturating_since(self.start).as_secs_f64()
    }

    /// Records that a response has started.
    pub(super) fn record_response(
        &self,
        object: &mut ObjectReport,
        connection: &Connection,
        status: StatusCode,
    ) {
        object.first_byte_s.get_or_insert(self.elapsed_s());
        object.connection = Some(connection.id);
        object.http_version = connection.version().label();
        object.status = Some(status.as_u16());
    }

    /// The size in bytes above which an object is split into ranges, if it may be.
    fn split_threshold(&self, job: &Job, sink: &Sink) -> Option<u64> {
        let threshold = self.options.split?.get();
        let may_split = self.pool.is_none()
            && self.pooled_connections.len() > 1
            && sink.takes_pieces()
            && job.first.message.method == Method::GET
            && job.first.message.upload.is_none()
            && !self.client.config().decompress
            && !self.options.heads
            && !self.asks_for_ranges(job);
        may_split.then_some(threshold)
    }

    /// Whether the user requests ranges with a header field.
    fn asks_for_ranges(&self, job: &Job) -> bool {
        job.first.message.headers.contains_key(RANGE)
    }

    /// Requests the first bytes of an object, to learn its size.
    async fn begin(
        self: &Arc<Self>,
        pooled: usize,
        job: &Job,
        bytes: u64,
        object: &mut ObjectReport,
    ) -> Result<Beginning, ClientError> {
        let headers = HeaderMap::from_iter([(RANGE, range(0, Some(bytes - 1)))]);
        let asked = self.client.runtime().now();
        let Got { response, uri } = self.get(pooled, job, &headers, object).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {}
            // The object is empty.
            StatusCode::RANGE_NOT_SATISFIABLE => return Ok(Beginning::Unusable),
            _ => return Ok(Beginning::Other(response)),
        }
        let got = ContentRange::of(response.headers()).filter(|got| got.first == 0);
        let validator = Validator::of(response.headers()).0;
        // Ranges are requested from the server of the first request.
        let Some(uri) = uri else {
            return Ok(Beginning::Unusable);
        };
        let Some((end, size)) = got.and_then(|got| Some((got.last + 1, got.size?))) else {
            return Ok(Beginning::Unusable);
        };
        if validator.is_none() && end < size {
            return Ok(Beginning::Unusable);
        }
        let Some(download) = response.into_body().into_plain() else {
            return Ok(Beginning::Unusable);
        };
        let started = StartedRange {
            pooled,
            asked,
            at: self.client.runtime().now(),
            download,
            end,
            validator,
        };
        Ok(Beginning::Range { started, size, uri })
    }

    /// Fetches the part of an object's `size` bytes that is not requested yet, over all pooled connections.
    async fn fetch_split(
        &self,
        job: &Job,
        uri: Uri,
        size: u64,
        started: Option<StartedRange>,
        sink: &mut Sink,
        object: &mut ObjectReport,
    ) -> Result<Outcome, ClientError> {
        let Some(pieces) = sink.begin_pieces()? else {
            return Ok(Outcome::Whole);
        };
        let runtime = self.client.runtime();
        let pieces = Arc::new(Writer::new(pieces, runtime));
        let rest = started.as_ref().map_or(0, |started| started.end)..size;
        let pooled_connections =
            NonZeroUsize::new(self.pooled_connections.len()).unwrap_or(NonZeroUsize::MIN);
        let planner = Planner::new(SplitPolicy::File, pooled_connections, NonZeroU64::MIN);
        let requests = planner.split(rest).collect();
        let split = Split::new(split::Object {
            client: Arc::clone(&self.client),
            pooled_connections: self.pooled_connections.clone(),
            uri,
            headers: self.fields(job),
            size,
            ranges: self.options.ranges,
            store: Box::new(Counting {
                pieces: Arc::clone(&pieces),
                progress: Arc::clone(&self.progress),
            }),
        });
        self.progress.expected.fetch_add(size, Relaxed);
        let outcome = split.run(requests, started).await;
        if let Some(first) = split.first() {
            object
                .connected_s
                .get_or_insert(self.seconds_at(first.connected));
            object.first_byte_s.get_or_insert(self.seconds_at(first.at));
            object.connection.get_or_insert(first.connection);
            object.status.get_or_insert(first.status.as_u16());
        }
        let stored = split.stored();
        drop(split);
        if let Some(pieces) = Arc::into_inner(pieces) {
            // The reason why they could not be written, if so.
            pieces.end().await?;
        }
        match outcome {
            Ok(Outcome::Other(_) | Outcome::Whole) => {
                self.progress.expected.fetch_sub(size, Relaxed);
                self.progress.received.fetch_sub(stored, Relaxed);
            }
            Ok(Outcome::Complete) | Err(_) => {}
        }
        outcome
    }

    fn exceeds(&self, size: u64) -> bool {
        self.options.max_size.is_some_and(|limit| size > limit)
    }

    fn check_size(&self, size: u64) -> Result<(), ClientError> {
        match self.exceeds(size) {
            true => Err(self.too_large(Some(size))),
            false => Ok(()),
        }
    }

    fn too_large(&self, size: Option<u64>) -> ClientError {
        ClientError::TooLarge {
            limit: self.options.max_size.unwrap_or(u64::MAX),
            size,
        }
    }

    /// Copies the response into the sink: the object, or the rest from the resume point on.
    async fn receive(
        &self,
        job: &Job,
        response: Response<Decoding>,
        resumed_from: Option<&ResumePoint>,
        mut sink: Sink,
        object: &mut ObjectReport,
    ) -> Result<(), ClientError> {
        let (parts, mut download) = response.into_parts();
        if parts.status == StatusCode::NOT_MODIFIED && is_conditional(&job.first.message.headers) {
            sink.discard_content();
        } else if !parts.status.is_success() {
            object.error = Some(explain_status(parts.status, &parts.headers));
            let is_repeated = job.may_retry && self.options.retry.covers_status(parts.status);
            match self.options.keep_errors && !self.options.resume && !is_repeated {
                true => sink.start_over(Validator::default())?,
                // A part to be resumed is kept.
                false => sink.discard_content(),
            }
        } else if let (StatusCode::PARTIAL_CONTENT, Some(point)) = (parts.status, resumed_from) {
            let length = length_of_rest(&parts.headers, point)?;
            if let Some(download) = download.plain_mut() {
                download.expect(length)?;
            }
        } else if parts.status == StatusCode::PARTIAL_CONTENT && !self.asks_for_ranges(job) {
            let text = "it is a part of the object, which was requested whole";
            return Err(ClientError::WrongRange(text.to_owned()));
        } else {
            sink.start_over(Validator::of(&parts.headers))?;
        }
        let announced = download.size_hint().exact();
        if let Some(expected) = announced {
            self.check_size(sink.len().saturating_add(expected))?;
        }
        let expected = announced.unwrap_or(0);
        self.progress.expected.fetch_add(expected, Relaxed);
        if let (Some(pipe), Some(expected)) = (&job.pipe, announced) {
            pipe.on_size(expected);
        }
        let len = sink.len();
        if self.options.heads && len == 0 {
            let heads = object.exchanges.iter().flat_map(|one| one.head());
            sink.prefix(&heads.collect::<Vec<_>>())?;
        }
        let runtime = self.client.runtime();
        let writer = Writer::new(sink, runtime);
        let copied = self.copy(job, &mut download, &writer, len, object).await;
        // The reason why it could not be written, if so.
        let sink = writer.end().await?;
        job.has_streamed.store(sink.has_streamed(), Relaxed);
        copied?;
        finish(sink, object, self.options, runtime).await
    }

    /// Passes the content of `download` to `writer`, which has `len` bytes so far.
    async fn copy(
        &self,
        job: &Job,
        download: &mut Decoding,
        writer: &Writer<Sink>,
        mut len: u64,
        object: &mut ObjectReport,
    ) -> Result<(), ClientError> {
        let runtime = self.client.runtime();
        let pace = self.options.rate.map(|rate| Pace::new(rate.get()));
        let low_speed = self.options.low_speed;
        let mut speed = low_speed.map(|limit| SpeedCheck::new(limit, runtime.now()));
        loop {
            let chunk = match &mut speed {
                None => download.chunk().await,
                Some(speed) => next_in_time(download, speed, runtime).await,
            };
            object.bytes = len;
            let Some(chunk) = chunk? else { return Ok(()) };
            if let Some(pace) = &pace {
                pace.wait(runtime, chunk.len()).await;
            }
            let bytes = chunk.len() as u64;
            if self.exceeds(len + bytes) {
                return Err(self.too_large(None));
            }
            writer.write(chunk).await?;
            len += bytes;
            if let Some(pipe) = &job.pipe {
                pipe.on_received(bytes);
            }
            self.progress.received.fetch_add(bytes, Relaxed);
        }
    }
}

/// The next bytes, unless they are too slow.
async fn next_in_time(
    download: &mut Decoding,
    speed: &mut SpeedCheck,
    runtime: &RuntimeHandle,
) -> Result<Option<Bytes>, ClientError> {
    loop {
        let left = speed.left(runtime.now());
        let chunk = runtime.timeout(left, download.chunk()).await;
        if let Ok(chunk) = chunk {
            let bytes = chunk.as_ref().ok().and_then(Option::as_ref);
            speed.on_bytes(bytes.map_or(0, Bytes::len));
            speed.check(runtime.now())?;
            return chunk;
        }
        speed.check(runtime.now())?;
    }
}

/// Whether a request with these fields may be answered with 304 (RFC 9110, section 13.1).
fn is_conditional(headers: &HeaderMap) -> bool {
    [
        IF_MODIFIED_SINCE,
        IF_NONE_MATCH,
        IF_UNMODIFIED_SINCE,
        IF_MATCH,
    ]
    .iter()
    .any(|name| headers.contains_key(name))
}

async fn finish(
    sink: Sink,
    object: &mut ObjectReport,
    options: FetchOptions,
    runtime: &RuntimeHandle,
) -> Result<(), ClientError> {
    object.bytes = sink.len();
    let last = object.exchanges.last().filter(|_| options.remote_time);
    let modified = last
        .and_then(|last| last.response.get(LAST_MODIFIED)?.to_str().ok())
        .and_then(|date| httpdate::parse_http_date(date).ok());
    let saving = move || {
        let saved = sink.finish()?;
        if let (Some(modified), Some(path)) = (modified, &saved.file) {
            // A file system without times keeps the content.
            let file = std::fs::File::options().append(true).open(path);
            let _ = file.and_then(|file| file.set_modified(modified));
        }
        Ok::<Saved, ClientError>(saved)
    };
    let saved = runtime.unblock(saving).await?;
    object.sha256 = saved.sha256;
    object.file = saved.file;
    Ok(())
}

/// Requests the rest, on condition that the representation is the same (RFC 9110 sections 14.2 and 13.1.5).
fn request_rest(headers: &mut HeaderMap, from: &ResumePoint) {
    headers.insert(RANGE, range(from.offset, None));
    headers.insert(IF_RANGE, from.validator.clone());
}

/// The length in bytes of a response that must continue at `point` and extend to the end of the same representation
/// (RFC 9110, sections 14.4 and 15.3.7).
fn length_of_rest(headers: &HeaderMap, point: &ResumePoint) -> Result<u64, ClientError> {
    let wrong = |what: String| Err(ClientError::WrongRange(what));
    let offset = point.offset;
    let Some(range) = ContentRange::of(headers).filter(|range| range.first == offset) else {
        return wrong(format!("it does not continue at {offset}"));
    };
    let end = range.last + 1;
    if range.size != Some(end) {
        return wrong(format!("it ends at {end}, before the end of the object"));
    }
    // A date and an entity tag cannot be compared.
    let is_tag = |value: &HeaderValue| value.as_bytes().starts_with(b"\"");
    match Validator::of(headers).0 {
        Some(other) if other != point.validator && is_tag(&other) == is_tag(&point.validator) => {
            wrong("it is of another version of the object".to_owned())
        }
        _ => Ok(end - offset),
    }
}

fn explain_status(status: StatusCode, headers: &HeaderMap) -> String {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    match location.filter(|_| status.is_redirection()) {
        Some(location) => format!(
            "{status}: it is at {}, which is fetched if redirects are followed",
            location.escape_debug()
        ),
        None => format!("the server responded with {status}"),
    }
}
