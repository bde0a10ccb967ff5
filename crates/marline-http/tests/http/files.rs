//! Files of a directory over each version of HTTP.

use crate::common::{self, TestServer, VERSIONS, directory_of, pattern};
use http::{Method, StatusCode};
use marline_http::client::{ClientError, HttpVersion};
use marline_http::server::directory;

#[tokio::test]
async fn files_have_types_and_lengths() {
    let root = directory_of(&[
        ("index.html", b"<p>hello"),
        ("a/style.css", b"p {}"),
        ("empty", b""),
    ]);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let (head, content) = visitor.get("/", &[]).await;
        assert_eq!(head.status(), StatusCode::OK, "{version:?}");
        assert_eq!(head.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(head.headers()["content-length"], "8");
        assert!(head.headers().contains_key("date"));
        assert!(head.headers().contains_key("etag"));
        assert!(head.headers().contains_key("last-modified"));
        assert_eq!(content, b"<p>hello");
        assert_eq!(
            head.headers().get("alt-svc").is_some(),
            version != HttpVersion::Http3,
            "responses over TCP have Alt-Svc"
        );

        let (head, content) = visitor.get("/a/style.css", &[]).await;
        assert_eq!(head.headers()["content-type"], "text/css; charset=utf-8");
        assert_eq!(content, b"p {}");
        let (head, content) = visitor.get("/empty", &[]).await;
        assert_eq!((head.status(), content.len()), (StatusCode::OK, 0));
        let (head, _) = visitor.get("/nothing", &[]).await;
        assert_eq!(head.status(), StatusCode::NOT_FOUND);
        let (head, _) = visitor.get("/a", &[]).await;
        assert_eq!(head.status(), StatusCode::TEMPORARY_REDIRECT);

        let head = visitor.send(Method::HEAD, "/", &[]).await;
        assert_eq!(head.headers()["content-length"], "8");
        assert!(common::read(head.into_body()).await.is_empty());
        let post = visitor.send(Method::POST, "/", &[]).await;
        assert_eq!(post.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn types_are_those_that_are_registered_and_text_is_utf_8() {
    let types = [
        ("a.txt", "text/plain; charset=utf-8"),
        ("a.html", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("A.MJS", "text/javascript; charset=utf-8"),
        ("a.csv", "text/csv; charset=utf-8"),
        ("a.md", "text/markdown; charset=utf-8"),
        ("a.vtt", "text/vtt; charset=utf-8"),
        ("a.ics", "text/calendar; charset=utf-8"),
        ("a.vcf", "text/vcard; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.jsonld", "application/ld+json"),
        ("a.webmanifest", "application/manifest+json"),
        ("a.yaml", "application/yaml"),
        ("a.toml", "application/toml"),
        ("a.wasm", "application/wasm"),
        ("a.svg", "image/svg+xml"),
        ("a.png", "image/png"),
        ("a.webp", "image/webp"),
        ("a.avif", "image/avif"),
        ("a.woff", "font/woff"),
        ("a.woff2", "font/woff2"),
        ("a.ttf", "font/ttf"),
        ("a.otf", "font/otf"),
        ("a.ttc", "font/collection"),
        ("a.m3u8", "application/vnd.apple.mpegurl"),
        ("a.ts", "video/mp2t"),
        ("a", "application/octet-stream"),
    ];
    let root = directory_of(&types.map(|(name, _)| (name, &b"content"[..])));
    let server = TestServer::files(root.path()).await;
    let visitor = server.connect(HttpVersion::Http3).await;
    for (name, expected) in types {
        let (head, _) = visitor.get(&format!("/{name}"), &[]).await;
        assert_eq!(head.headers()["content-type"], expected, "{name}");
    }
}

#[tokio::test]
async fn names_that_no_file_can_have_are_not_found() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        // Longer than a name, longer with the suffix of a precompressed file only, longer than a path.
        for path in [
            format!("/{}", "a".repeat(256)),
            format!("/{}", "a".repeat(254)),
            "/aaaaaaaaa".repeat(500),
        ] {
            let coding = ("accept-encoding", "gzip");
            let (head, _) = visitor.get(&path, &[coding]).await;
            assert_eq!(head.status(), StatusCode::NOT_FOUND, "{version:?} {path}");
        }
    }
}

#[tokio::test]
async fn conditional_requests_are_answered() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let (head, _) = visitor.get("/file", &[]).await;
        let tag = head.headers()["etag"].to_str().unwrap().to_owned();
        let date = head.headers()["last-modified"].to_str().unwrap().to_owned();
        for (name, value, status) in [
            ("if-none-match", tag.as_str(), 304),
            ("if-none-match", "\"other\"", 200),
            ("if-match", tag.as_str(), 200),
            ("if-match", "\"other\"", 412),
            ("if-modified-since", date.as_str(), 304),
            ("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT", 412),
        ] {
            let (head, _) = visitor.get("/file", &[(name, value)]).await;
            assert_eq!(head.status(), status, "{version:?} {name}: {value}");
        }
    }
}

/// RFC 9110, section 15.4.5.
#[tokio::test]
async fn a_304_response_varies_as_the_200_response_does() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let (head, _) = visitor.get("/file", &[]).await;
        let vary = head.headers().get("vary").cloned();
        assert!(vary.is_some());
        let tag = head.headers()["etag"].to_str().unwrap().to_owned();
        let (head, _) = visitor.get("/file", &[("if-none-match", &tag)]).await;
        assert_eq!(head.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(head.headers().get("vary"), vary.as_ref(), "{version:?}");
    }
}

#[tokio::test]
async fn a_range_is_served() {
    let content = pattern(10_000);
    let root = directory_of(&[("file", &content)]);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let (head, _) = visitor.get("/file", &[]).await;
        let tag = head.headers()["etag"].to_str().unwrap().to_owned();
        for (range, first, last) in [
            ("bytes=0-99", 0, 99),
            ("bytes=9900-", 9900, 9999),
            ("bytes=-1", 9999, 9999),
            ("bytes=-20000", 0, 9999),
            ("bytes=5-99999", 5, 9999),
        ] {
            let (head, part) = visitor.get("/file", &[("range", range)]).await;
            assert_eq!(
                head.status(),
                StatusCode::PARTIAL_CONTENT,
                "{version:?} {range}"
            );
            let expected = format!("bytes {first}-{last}/10000");
            assert_eq!(head.headers()["content-range"], expected.as_str());
            assert_eq!(part, content[first..=last]);
        }
        let (head, _) = visitor.get("/file", &[("range", "bytes=10000-")]).await;
        assert_eq!(head.status(), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(head.headers()["content-range"], "bytes */10000");
        for ignored in ["lines=1-2", "bytes=9-1", "bytes=x-"] {
            let (head, whole) = visitor.get("/file", &[("range", ignored)]).await;
            assert_eq!(
                (head.status(), whole.len()),
                (StatusCode::OK, 10_000),
                "{ignored}"
            );
        }
        let range = ("range", "bytes=0-0");
        let (head, _) = visitor.get("/file", &[range, ("if-range", &tag)]).await;
        assert_eq!(head.status(), StatusCode::PARTIAL_CONTENT);
        let (head, whole) = visitor
            .get("/file", &[range, ("if-range", "\"old\"")])
            .await;
        assert_eq!((head.status(), whole.len()), (StatusCode::OK, 10_000));
    }
}

#[tokio::test]
async fn several_ranges_are_served_as_multipart() {
    let content = pattern(200_000);
    let root = directory_of(&[("file.css", &content)]);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let range = ("range", "bytes=0-9, 100-199, -70000");
        let (head, body) = visitor.get("/file.css", &[range]).await;
        assert_eq!(head.status(), StatusCode::PARTIAL_CONTENT, "{version:?}");
        let kind = head.headers()["content-type"].to_str().unwrap();
        let boundary = kind
            .strip_prefix("multipart/byteranges; boundary=")
            .unwrap();
        let mut expected = Vec::new();
        for (first, last) in [(0, 9), (100, 199), (130_000, 199_999)] {
            let title = format!(
                "\r\n--{boundary}\r\nContent-Type: text/css; charset=utf-8\r\n\
                 Content-Range: bytes {first}-{last}/200000\r\n\r\n"
            );
            expected.extend_from_slice(title.as_bytes());
            expected.extend_from_slice(&content[first..=last]);
        }
        expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        assert_eq!(body.len(), expected.len());
        assert!(body == expected);

        let overlapping = ("range", "bytes=0-,0-");
        let (head, whole) = visitor.get("/file.css", &[overlapping]).await;
        assert_eq!((head.status(), whole.len()), (StatusCode::OK, 200_000));
    }
}

#[tokio::test]
async fn precompressed_files_are_preferred() {
    let root = directory_of(&[
        ("a.js", b"let long = 1;"),
        ("a.js.gz", b"gz"),
        ("a.js.br", b"b"),
        ("a.js.zst", b"zst"),
    ]);
    let server = TestServer::files(root.path()).await;
    let visitor = server.connect(HttpVersion::Http3).await;
    for (accepted, coding, content) in [
        ("gzip", Some("gzip"), &b"gz"[..]),
        ("gzip;q=0.5, br", Some("br"), b"b"),
        ("zstd", Some("zstd"), b"zst"),
        ("identity", None, b"let long = 1;"),
    ] {
        let (head, body) = visitor.get("/a.js", &[("accept-encoding", accepted)]).await;
        let chosen = head.headers().get("content-encoding");
        assert_eq!(chosen.map(|c| c.to_str().unwrap()), coding, "{accepted}");
        assert_eq!(body, content);
        assert_eq!(head.headers()["vary"], "accept-encoding");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn files_outside_the_directory_are_not_served() {
    use std::os::unix::fs::symlink;

    let outside = directory_of(&[("secret", b"secret"), ("public/inside", b"inside")]);
    let root = outside.path().join("public");
    symlink(outside.path().join("secret"), root.join("absolute")).unwrap();
    symlink("../secret", root.join("relative")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("inside", root.join("within")).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(root.join("pipe"))
        .status()
        .unwrap();
    assert!(pipe.success());

    let server = TestServer::files(&root).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        for path in [
            "/absolute",
            "/relative",
            "/up/secret",
            "/%2e%2e/secret",
            "/..%2fsecret",
            "/a/%2e%2e/%2e%2e/secret",
            "//public",
            "/secret%00",
            "/pipe",
        ] {
            let (head, body) = visitor.get(path, &[]).await;
            assert_eq!(head.status(), StatusCode::NOT_FOUND, "{version:?} {path}");
            assert!(body.is_empty());
        }
        let (head, body) = visitor.get("/within", &[]).await;
        assert_eq!((head.status(), &body[..]), (StatusCode::OK, &b"inside"[..]));
    }

    let server = TestServer::site(directory(&root, true).unwrap()).await;
    let visitor = server.connect(HttpVersion::Http2).await;
    let (_, body) = visitor.get("/relative", &[]).await;
    assert_eq!(body, b"secret", "links are followed with `follow_links`");
    let (head, _) = visitor.get("/..%2fsecret", &[]).await;
    assert_eq!(head.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn serving_a_path_that_is_no_directory_is_an_error() {
    let root = directory_of(&[("file", b"")]);
    assert!(directory(&root.path().join("file"), false).is_err());
    assert!(directory(&root.path().join("missing"), false).is_err());
}

#[tokio::test]
async fn huge_headers_are_refused() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    let huge = "a".repeat(100_000);
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        match visitor
            .try_send(Method::GET, "/file", &[("x", &huge)])
            .await
        {
            Ok(response) => assert_eq!(
                response.status(),
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "{version:?}"
            ),
            Err(error) => assert!(matches!(error, ClientError::NoResponse { .. }), "{error}"),
        }
        let (head, _) = server.connect(version).await.get("/file", &[]).await;
        assert_eq!(
            head.status(),
            StatusCode::OK,
            "other requests are not affected"
        );
    }
}
