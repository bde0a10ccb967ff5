//! Static files of one directory.
//!
//! tower-http's `ServeDir` handles paths, content types, precompressed variants and conditional requests. Its
//! file system is [`root::Root`], which contains only the directory. [`ranges::Ranges`] adds range requests,
//! including those for several ranges.

mod open_file;
mod ranges;
mod root;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::{HeaderValue, VARY};
use http::{Request, Response, StatusCode};
use tower::Service;
use tower_http::services::ServeDir;
use tower_http::services::fs::DefaultServeDirFallback;

pub(super) use self::ranges::{ByteRange, Ranges};
use self::root::Root;
use super::Site;
use crate::body::Body;
use crate::limits;

/// A service that answers GET and HEAD with the files of `directory`.
///
/// Precompressed variants of a file (`.br`, `.zst`, `.gz`) are sent to clients that accept them. With
/// `follow_links`, symbolic links may lead out of the directory.
///
/// # Errors
/// The directory does not exist, is not a directory, or may not be read.
pub fn directory(directory: &Path, follow_links: bool) -> io::Result<Site> {
    let root = Root::open(directory, follow_links)?;
    let files = ServeDir::with_backend(".", root)
        .precompressed_br()
        .precompressed_zstd()
        .precompressed_gzip()
        .with_buf_chunk_size(limits::FILE_CHUNK_BYTES);
    Ok(Site::new(Ranges::new(Files(files))))
}

/// `ServeDir` with the body type of this crate. Also answers requests that it handles wrongly.
#[derive(Clone)]
struct Files(ServeDir<DefaultServeDirFallback, Root>);

impl Service<Request<Body>> for Files {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // For a directory `x`, `ServeDir` redirects `//x` to `//x/`, which browsers take for the host `x`.
        if request.uri().path().starts_with("//") {
            return Box::pin(std::future::ready(Ok(not_found())));
        }
        let response = self.0.call(request);
        Box::pin(async move {
            let mut response = response.await?;
            if response.status() == StatusCode::NOT_MODIFIED {
                // As on the response with the content (RFC 9110 section 15.4.5).
                let vary = HeaderValue::from_static("accept-encoding");
                response.headers_mut().entry(VARY).or_insert(vary);
            }
            Ok(response.map(Body::new))
        })
    }
}

fn not_found() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
