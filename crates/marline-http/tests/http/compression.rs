//! Compression of responses.

use std::io::Read;

use http::{HeaderMap, Method, Response, StatusCode};
use marline_http::Body;
use marline_http::server::{Compression, Site, compressed, directory};
use tower::service_fn;

use crate::common::{TestConnection, TestServer, VERSIONS, directory_of};

fn text() -> Vec<u8> {
    "a page of words, a page of words again; "
        .repeat(500)
        .into_bytes()
}

fn unzipped(content: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(content)
        .read_to_end(&mut text)
        .unwrap();
    text
}

async fn get(visitor: &TestConnection, path: &str, accepted: &str) -> (HeaderMap, Vec<u8>) {
    let (head, content) = visitor.get(path, &[("accept-encoding", accepted)]).await;
    assert_eq!(head.status(), StatusCode::OK, "{path}");
    (head.headers().clone(), content)
}

fn coding(headers: &HeaderMap) -> Option<&str> {
    headers
        .get("content-encoding")
        .map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn text_is_compressed_as_clients_accept_it() {
    let text = text();
    let root = directory_of(&[
        ("page.html", &text),
        ("short.html", b"<p>"),
        ("picture.png", &text),
    ]);
    let server = TestServer::site(compressed(
        directory(root.path(), false).unwrap(),
        Compression::new(None),
    ))
    .await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        // The second response is of what the first one left.
        for _ in 0..2 {
            let (headers, content) = get(&visitor, "/page.html", "gzip").await;
            assert_eq!(coding(&headers), Some("gzip"), "{version:?}");
            assert_eq!(headers["vary"], "accept-encoding");
            assert!(headers["etag"].as_bytes().starts_with(b"W/\""));
            assert!(content.len() < text.len() / 10);
            assert_eq!(unzipped(&content), text);
        }
        let (headers, content) = get(&visitor, "/page.html", "gzip").await;
        assert_eq!(headers["content-length"], content.len().to_string());
        for (accepted, chosen, magic) in [
            ("gzip, zstd", "zstd", &b"\x28\xb5\x2f\xfd"[..]),
            ("br", "br", b""),
            ("gzip;q=1, br;q=0.5", "gzip", b"\x1f\x8b"),
        ] {
            let (headers, content) = get(&visitor, "/page.html", accepted).await;
            assert_eq!(coding(&headers), Some(chosen), "{accepted}");
            assert!(content.starts_with(magic), "{accepted}");
            assert!(content.len() < text.len() / 10);
        }
        for (path, accepted) in [
            ("/page.html", "identity"),
            ("/page.html", "gzip;q=0"),
            ("/short.html", "gzip"),
            ("/picture.png", "gzip"),
        ] {
            let (headers, content) = get(&visitor, path, accepted).await;
            assert_eq!(coding(&headers), None, "{path} {accepted}");
            assert_eq!(headers["content-length"], content.len().to_string());
            assert!(headers["etag"].as_bytes().starts_with(b"\""));
        }
        let fields = [("accept-encoding", "gzip")];
        let head = visitor.send(Method::HEAD, "/page.html", &fields).await;
        assert_eq!(coding(head.headers()), Some("gzip"));
        assert_ne!(
            head.headers().get("content-length"),
            Some(&text.len().into())
        );
    }
}

#[tokio::test]
async fn ranges_and_conditions_are_those_of_the_file() {
    let text = text();
    let root = directory_of(&[("page.html", &text)]);
    let server = TestServer::site(compressed(
        directory(root.path(), false).unwrap(),
        Compression::new(None),
    ))
    .await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let accepted = ("accept-encoding", "gzip");
        let (headers, _) = get(&visitor, "/page.html", "gzip").await;
        let tag = headers["etag"].to_str().unwrap();
        let (head, _) = visitor
            .get("/page.html", &[accepted, ("if-none-match", tag)])
            .await;
        assert_eq!(head.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(head.headers()["vary"], "accept-encoding");
        let (head, content) = visitor
            .get("/page.html", &[accepted, ("range", "bytes=2-5")])
            .await;
        assert_eq!(head.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!((coding(head.headers()), &*content), (None, &text[2..6]));
        // A weak tag does not name the bytes of a range.
        let fields = [accepted, ("range", "bytes=2-5"), ("if-range", tag)];
        assert_eq!(
            visitor.get("/page.html", &fields).await.0.status(),
            StatusCode::OK
        );
    }
}

#[tokio::test]
async fn content_that_changed_is_compressed_again() {
    let root = directory_of(&[("page.html", &text())]);
    let server = TestServer::site(compressed(
        directory(root.path(), false).unwrap(),
        Compression::new(None),
    ))
    .await;
    let visitor = server.connect(VERSIONS[0]).await;
    assert_eq!(
        unzipped(&get(&visitor, "/page.html", "gzip").await.1),
        text()
    );
    let other = [text(), b"one more line".to_vec()].concat();
    std::fs::write(root.path().join("page.html"), &other).unwrap();
    assert_eq!(
        unzipped(&get(&visitor, "/page.html", "gzip").await.1),
        other
    );
}

#[tokio::test]
async fn responses_that_must_not_change_are_left_alone() {
    let site = Site::new(service_fn(async |request: http::Request<Body>| {
        let (name, value) = match request.uri().path() {
            "/no-transform" => ("cache-control", "public, no-transform"),
            "/encoded" => ("content-encoding", "br"),
            "/events" => ("content-type", "text/event-stream"),
            "/partial" => ("content-range", "bytes 0-19999/30000"),
            _ => ("x-plain", "1"),
        };
        let mut response = Response::new(Body::full(text()));
        let headers = response.headers_mut();
        headers.insert(
            "content-type",
            "application/json; charset=utf-8".parse().unwrap(),
        );
        headers.insert(name, value.parse().unwrap());
        Ok::<_, std::convert::Infallible>(response)
    }));
    let server = TestServer::site(compressed(site, Compression::new(None))).await;
    let visitor = server.connect(VERSIONS[0]).await;
    for path in ["/no-transform", "/encoded", "/events", "/partial"] {
        let (_, content) = get(&visitor, path, "gzip").await;
        assert_eq!(content, text(), "{path}");
    }
    let (headers, content) = get(&visitor, "/", "gzip").await;
    assert_eq!(
        (coding(&headers), unzipped(&content)),
        (Some("gzip"), text())
    );
    assert!(!headers.contains_key("etag"));
}
