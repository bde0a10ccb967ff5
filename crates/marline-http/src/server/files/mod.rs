//! Static files of one directory.
//!
//! tower-http's `ServeDir` handles paths, content types and precompressed variants. Its file system is [`root::Root`], which
//! contains only the directory. [`validators`] has conditional requests, and [`ranges::Ranges`] adds range requests,
//! including those for several ranges.

mod body;
mod kept;
mod names;
mod open_file;
mod ranges;
mod root;
mod validators;
mod whole;

use std::convert::Infallible;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, LOCATION, RETRY_AFTER, VARY,
};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use tower::{Service, ServiceExt};
use tower_http::services::ServeDir;

use self::body::FileBody;
use self::open_file::{Chosen, Modified, Place};
pub(super) use self::ranges::{ByteRange, Ranges};
use self::root::Root;
use self::validators::Validators;
use self::whole::WholeFile;
use super::Site;
use super::open_files::is_exhaustion;
use super::resources::Origin;
use crate::body::Body;
use crate::content::content_length;
use crate::limits;

/// A service that answers GET and HEAD with the files of `directory`.
///
/// Types of text are declared to be UTF-8. Precompressed variants of a file (`.br`, `.zst`, `.gz`) are sent to clients that accept them. With
/// `follow_links`, symbolic links may lead out of the directory.
///
/// # Errors
/// The directory does not exist, is not a directory, or may not be read.
pub fn directory(directory: &Path, follow_links: bool) -> io::Result<Site> {
    Directory::open(directory, follow_links).map(|directory| directory.site())
}

/// A directory whose files are served, and which can be listed.
#[derive(Clone, Debug)]
pub struct Directory(Root);

/// A file or a directory in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: OsString,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// The size of a file, in bytes.
    pub bytes: u64,
    /// When its content was changed, if the file system knows.
    pub modified: Option<SystemTime>,
}

impl Directory {
    /// The directory at `path`. With `follow_links`, symbolic links may lead out of it.
    ///
    /// # Errors
    /// It does not exist, is not a directory, or may not be read.
    pub fn open(path: &Path, follow_links: bool) -> io::Result<Self> {
        Root::open(path, follow_links).map(Self)
    }

    /// The service that [`directory`] makes.
    pub fn site(&self) -> Site {
        Site::new(Ranges::new(Files(self.0.clone())))
    }

    /// The response to `request`: that of its [`site`](Self::site).
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let files = Files(self.0.clone());
        match Ranges::<Files>::concern(&request) {
            true => {
                let Ok(response) = Ranges::new(files).oneshot(request).await;
                response
            }
            false => files.answer(request).await,
        }
    }

    /// The files and directories at the `path` of a request, `limit` of them at most. What is neither, or leads out of the
    /// directory, is left out.
    ///
    /// # Errors
    /// There is no such directory, or it may not be read.
    pub async fn list(&self, path: &str, limit: usize) -> io::Result<Vec<DirectoryEntry>> {
        self.0.list(names::relative(path)?, limit).await
    }
}

/// The fields of conditional requests, but for `If-Range`.
const CONDITIONS: [HeaderName; 4] = [
    IF_MATCH,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
    IF_UNMODIFIED_SINCE,
];

/// `ServeDir` with the body type of this crate. Also answers requests that it handles wrongly, and by itself those for whole files.
#[derive(Clone)]
struct Files(Root);

impl Service<Request<Body>> for Files {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let files = self.clone();
        Box::pin(async move { Ok(files.answer(request).await) })
    }
}

impl Files {
    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        if let Some(whole) = WholeFile::of(&request) {
            let origin = request.extensions().get::<Origin>().cloned();
            let root = self.0.for_request(origin, Chosen::default());
            if let Some(response) = whole.answer(&root, request.headers()).await {
                return response;
            }
        }
        // Rare, and large.
        Box::pin(self.answer_by_serve_dir(request)).await
    }

    async fn answer_by_serve_dir(&self, request: Request<Body>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let path = names::textual(parts.uri.path());
        // For a directory `x`, a redirect of `//x` would be one to `//x/`, which browsers take for the host `x`.
        if path.starts_with("//") {
            return not_found();
        }
        let asked = match Uri::try_from(path) {
            Ok(textual) => std::mem::replace(&mut parts.uri, textual),
            // That of no file, as `*`.
            Err(_) => parts.uri.clone(),
        };
        let mut conditions = HeaderMap::new();
        for name in CONDITIONS {
            for value in parts.headers.get_all(&name) {
                conditions.append(name.clone(), value.clone());
            }
            parts.headers.remove(&name);
        }
        let request = Request::from_parts(parts, body);
        let origin = request.extensions().get::<Origin>().cloned();
        let chosen = Chosen::default();
        let root = self.0.for_request(origin.clone(), chosen.clone());
        let mut files = ServeDir::with_backend(".", root)
            .precompressed_br()
            .precompressed_zstd()
            .precompressed_gzip()
            .with_buf_chunk_size(1);
        let mut response = match files.try_call(request).await {
            Ok(response) => response,
            Err(error) => return failed(&error),
        };
        if response.status() == StatusCode::TEMPORARY_REDIRECT {
            let target = names::directory(asked.path(), asked.query());
            return HeaderValue::try_from(target).map_or_else(
                |_| not_found(),
                |target| {
                    response.headers_mut().insert(LOCATION, target);
                    response.map(Body::new)
                },
            );
        }
        let has_content = matches!(
            response.status(),
            StatusCode::OK | StatusCode::PARTIAL_CONTENT
        );
        let Some(modified) = chosen.modified().filter(|_| has_content) else {
            return response.map(Body::new);
        };
        let Modified { time, len } = modified;
        let headers = response.headers_mut();
        let now = origin.as_ref().and_then(Origin::unix_time);
        let validators = Validators::new(time, len, headers.get(CONTENT_ENCODING), now);
        match validators.check(&conditions) {
            Some(status) => return unmet(status, &validators),
            None => validators.add_to(headers),
        }
        declare_type(headers);
        let length = content_length(headers);
        let (Some(Place { file, position }), Some(length)) = (chosen.take(), length) else {
            return response.map(Body::new);
        };
        match FileBody::begin(file, position, length, origin).await {
            Ok(body) => response.map(|_| Body::new(body)),
            Err(error) => failed(&io::Error::other(error)),
        }
    }
}

/// The response to a request whose conditions are not met; `status` is that of [`Validators::check`].
fn unmet(status: StatusCode, validators: &Validators) -> Response<Body> {
    if status != StatusCode::NOT_MODIFIED {
        return without_content(status);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    validators.add_to(response.headers_mut());
    // As on the response with the content (RFC 9110 section 15.4.5).
    response.headers_mut().insert(VARY, VARIES);
    response
}

/// The field of a request by which responses with files differ.
const VARIES: HeaderValue = HeaderValue::from_static("accept-encoding");

/// Types of the database of `ServeDir`, and those that were registered for the same files since.
const REGISTERED: [(&str, &str); 9] = [
    // Modules: RFC 9239.
    ("application/javascript", "text/javascript"),
    // WOFF, and with the extension otf OpenType: RFC 8081.
    ("application/font-woff", "font/woff"),
    ("application/font-sfnt", "font/otf"),
    // RFC 7763.
    ("text/x-markdown", "text/markdown"),
    // RFC 9512.
    ("text/x-yaml", "application/yaml"),
    ("text/x-toml", "application/toml"),
    // RFC 6350.
    ("text/x-vcard", "text/vcard"),
    // Playlists and segments: RFC 8216.
    ("audio/x-mpegurl", "application/vnd.apple.mpegurl"),
    ("video/vnd.dlna.mpeg-tts", "video/mp2t"),
];

/// Replaces a type by the one that is registered, and adds the encoding to types of text. Without it, browsers guess, and take
/// English for windows-1252. Other types have none: that of JSON is UTF-8 (RFC 8259, section 11), XML and SVG state theirs.
fn declare_type(headers: &mut HeaderMap) {
    let Some(Ok(guessed)) = headers.get(CONTENT_TYPE).map(HeaderValue::to_str) else {
        return;
    };
    if let Some(declared) = declared_type(guessed) {
        headers.insert(CONTENT_TYPE, declared);
    }
}

/// The type to declare for one that `ServeDir` or its database guesses.
fn declared_type(guessed: &str) -> Option<HeaderValue> {
    let registered = REGISTERED.iter().find(|(old, _)| *old == guessed);
    let kind = registered.map_or(guessed, |(_, kind)| *kind);
    let declared = match kind.starts_with("text/") && !kind.contains(';') {
        true => HeaderValue::try_from(format!("{kind}; charset=utf-8")),
        false => HeaderValue::try_from(kind),
    };
    declared.ok()
}

fn not_found() -> Response<Body> {
    without_content(StatusCode::NOT_FOUND)
}

/// The response to a request whose file cannot be opened.
fn failed(error: &io::Error) -> Response<Body> {
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::NotADirectory => not_found(),
        _ if is_exhaustion(error) => {
            let mut response = without_content(StatusCode::SERVICE_UNAVAILABLE);
            let seconds = limits::RETRY_AFTER.as_secs();
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
            response
        }
        _ => without_content(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

pub(super) fn without_content(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let length = HeaderValue::from_static("0");
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}
