//! Arbitrary `Range` and `If-Range` fields in requests for a file. Checks that each part of a response is the part of the file
//! that it claims to be, that lengths agree, and that no more is sent than the file has.
#![no_main]

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use http::header::{
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderValue, IF_RANGE, RANGE,
};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use libfuzzer_sys::fuzz_target;
use marline_http::Body;
use marline_http::limits::MAX_RANGES;
use marline_http::server::{Site, directory};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// Sizes in bytes of the files.
const SIZES: [usize; 4] = [0, 1, 1000, 70_000];

static WORLD: LazyLock<World> = LazyLock::new(World::new);

fuzz_target!(|input: &[u8]| {
    if let Some((&first, range)) = input.split_first() {
        WORLD.ask(first, range);
    }
});

struct World {
    runtime: Runtime,
    site: Site,
    content: Vec<u8>,
    _directory: TempDir,
}

/// A response as a client sees it.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let content: Vec<u8> = (0..SIZES[3]).map(|at| (at ^ at >> 8) as u8).collect();
        for size in SIZES {
            let path = root.path().join(size.to_string());
            std::fs::write(path, &content[..size]).expect("a file");
        }
        Self {
            runtime: Builder::new_current_thread().build().expect("a runtime"),
            site: directory(root.path(), false).expect("a site"),
            content,
            _directory: root,
        }
    }

    /// Bits 0 and 1 of `first` choose the file, bit 2 an `If-Range` that is true, bit 3 one that is not, and bit 4 leaves the
    /// unit to the input.
    fn ask(&self, first: u8, range: &[u8]) {
        let size = SIZES[usize::from(first & 3)];
        let unit: &[u8] = if first & 16 == 0 { b"bytes=" } else { b"" };
        let Ok(range) = HeaderValue::from_bytes(&[unit, range].concat()) else {
            return;
        };
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, range);
        if first & 4 != 0 {
            let plain = self.get(size, HeaderMap::new());
            if let Some(tag) = plain.headers.get(ETAG) {
                headers.insert(IF_RANGE, tag.clone());
            }
        }
        let is_outdated = first & 8 != 0;
        if is_outdated {
            headers.insert(IF_RANGE, HeaderValue::from_static("\"another\""));
        }
        let answer = self.get(size, headers);
        assert!(!is_outdated || answer.status == StatusCode::OK);
        answer.check(&self.content[..size]);
    }

    fn get(&self, size: usize, headers: HeaderMap) -> Answer {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = format!("/{size}").parse().expect("a path");
        *request.headers_mut() = headers;
        self.runtime.block_on(async {
            let Ok(response) = self.site.clone().oneshot(request).await;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.expect("the file can be read");
            Answer {
                status: parts.status,
                headers: parts.headers,
                body: body.to_bytes().to_vec(),
            }
        })
    }
}

impl Answer {
    /// Compares the response with the file.
    fn check(&self, file: &[u8]) {
        assert_eq!(
            self.field(CONTENT_LENGTH.as_str()),
            Some(&*self.body.len().to_string())
        );
        match (self.status, self.field(CONTENT_RANGE.as_str())) {
            (StatusCode::OK, None) => assert_eq!(self.body, file),
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(size)) => {
                assert!(self.body.is_empty());
                assert_eq!(size, format!("bytes */{}", file.len()));
            }
            (StatusCode::PARTIAL_CONTENT, Some(range)) => {
                assert_eq!(self.body, file[part(range, file.len())]);
            }
            (StatusCode::PARTIAL_CONTENT, None) => self.check_parts(file),
            other => panic!("{other:?}"),
        }
    }

    /// The parts of `multipart/byteranges` (RFC 9110, section 14.6).
    fn check_parts(&self, file: &[u8]) {
        let boundary = self
            .field(CONTENT_TYPE.as_str())
            .and_then(|kind| kind.strip_prefix("multipart/byteranges; boundary="))
            .expect("a boundary");
        let delimiter = format!("\r\n--{boundary}");
        let mut rest = &self.body[..];
        let (mut parts, mut sent) = (0, 0);
        while rest != format!("{delimiter}--\r\n").as_bytes() {
            rest = rest.strip_prefix(delimiter.as_bytes()).expect("a part");
            let end = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            let (head, content) = rest.split_at(end.expect("an end of the fields") + 4);
            let head = std::str::from_utf8(head).expect("text");
            let range = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Range: "))
                .expect("a range");
            let expected = &file[part(range, file.len())];
            rest = content
                .strip_prefix(expected)
                .expect("the part of the file");
            parts += 1;
            sent += expected.len();
        }
        assert!((2..=MAX_RANGES).contains(&parts));
        assert!(sent <= file.len());
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The bytes that `Content-Range` names.
fn part(range: &str, size: usize) -> RangeInclusive<usize> {
    let range = range.strip_prefix("bytes ").expect("the unit");
    let range = range.strip_suffix(&format!("/{size}")).expect("the size");
    let (first, last) = range.split_once('-').expect("two positions");
    let [first, last] = [first, last].map(|digits| digits.parse().expect("a number"));
    assert!(first <= last && last < size);
    first..=last
}
