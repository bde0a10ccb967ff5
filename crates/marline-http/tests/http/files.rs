//! Files of a directory over each version of HTTP.

use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::common::{self, TestServer, VERSIONS, directory_of, pattern};
use http::{HeaderValue, Method, StatusCode};
use marline_http::client::{ClientError, HttpVersion};
use marline_http::server::directory;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

/// Dates of HTTP begin with 1970 and end with 9999.
#[tokio::test]
async fn files_of_any_time_are_served() {
    let root = directory_of(&[("f", b"content")]);
    let server = TestServer::files(root.path()).await;
    let at = |seconds: i64| {
        let span = Duration::from_secs(seconds.unsigned_abs());
        match seconds < 0 {
            true => SystemTime::UNIX_EPOCH - span,
            false => SystemTime::UNIX_EPOCH + span,
        }
    };
    for (seconds, has_date) in [
        (-2_000_000_000, false),
        (-1, false),
        (0, true),
        (15_000_000_000, true),
    ] {
        let file = File::open(root.path().join("f")).unwrap();
        file.set_modified(at(seconds)).unwrap();
        for version in VERSIONS {
            let visitor = server.connect(version).await;
            for range in [
                &[][..],
                &[("range", "bytes=1-3")],
                &[("range", "bytes=1-3,5-6")],
            ] {
                let (head, content) = visitor.get("/f", range).await;
                assert!(
                    head.status().is_success(),
                    "{seconds} {version:?}: {head:?}"
                );
                assert!(!content.is_empty());
                let (tag, date) = (&head.headers()["etag"], head.headers().get("last-modified"));
                assert_eq!(date.is_some(), has_date, "{seconds}");
                if let Some(date) = date {
                    let parse = |value: &HeaderValue| {
                        httpdate::parse_http_date(value.to_str().unwrap()).unwrap()
                    };
                    assert!(parse(date) <= parse(&head.headers()["date"]), "{head:?}");
                }
                let condition = [("if-none-match", tag.to_str().unwrap())];
                assert_eq!(visitor.get("/f", &condition).await.0.status(), 304);
                assert_eq!(
                    visitor.get("/f", &[("if-match", "*")]).await.0.status(),
                    200
                );
            }
        }
    }
}

/// RFC 9110, section 14.1.2.
#[tokio::test]
async fn ranges_of_files_with_no_byte_and_one() {
    let root = directory_of(&[("none", b""), ("one", b"x")]);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        for (path, range, status, content_range) in [
            ("/none", "bytes=0-", 416, Some("bytes */0")),
            ("/none", "bytes=0-0", 416, Some("bytes */0")),
            ("/none", "bytes=-0", 416, Some("bytes */0")),
            ("/none", "bytes=-5", 200, None),
            ("/one", "bytes=0-", 206, Some("bytes 0-0/1")),
            ("/one", "bytes=0-9", 206, Some("bytes 0-0/1")),
            ("/one", "bytes=-9", 206, Some("bytes 0-0/1")),
            ("/one", "bytes=1-", 416, Some("bytes */1")),
            ("/one", "bytes=-0", 416, Some("bytes */1")),
            ("/one", "bytes=0-0,0-0,-1", 200, None),
            ("/one", "bytes=5-9,0-0", 206, Some("bytes 0-0/1")),
            ("/one", "bytes=1-0", 200, None),
            ("/one", "bytes=a-b", 200, None),
            (
                "/one",
                "bytes=0-18446744073709551616",
                206,
                Some("bytes 0-0/1"),
            ),
            ("/one", "lines=0-0", 200, None),
        ] {
            let (head, _) = visitor.get(path, &[("range", range)]).await;
            assert_eq!(head.status(), status, "{version:?} {path} {range}");
            let found = head.headers().get("content-range");
            assert_eq!(
                found.map(|value| value.to_str().unwrap()),
                content_range,
                "{range}"
            );
            let head = visitor.send(Method::HEAD, path, &[("range", range)]).await;
            assert_eq!(head.status(), 200, "{version:?} {path} {range}");
        }
    }
}

/// RFC 9110, section 13.1.5.
#[tokio::test]
async fn a_range_is_of_the_state_that_if_range_names() {
    let root = directory_of(&[("f", b"0123456789")]);
    let server = TestServer::files(root.path()).await;
    let file = File::options()
        .write(true)
        .open(root.path().join("f"))
        .unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    file.set_modified(long_ago).unwrap();
    let visitor = server.connect(HttpVersion::Http2).await;
    let (head, _) = visitor.get("/f", &[]).await;
    let value = |name| head.headers()[name].to_str().unwrap().to_owned();
    let (tag, date) = (value("etag"), value("last-modified"));
    let weak = format!("W/{tag}");
    let get = async |if_range: &str| {
        let fields = [("range", "bytes=2-3"), ("if-range", if_range)];
        visitor.get("/f", &fields).await.0.status().as_u16()
    };
    assert_eq!(
        (get(&tag).await, get(&weak).await, get(&date).await),
        (206, 200, 206)
    );
    let other = httpdate::fmt_http_date(long_ago + Duration::from_secs(2));
    assert_eq!(get(&other).await, 200);
    assert_eq!(get("\"other\"").await, 200);
    // Conditions come first.
    let fields = [("range", "bytes=20-"), ("if-none-match", &*tag)];
    assert_eq!(visitor.get("/f", &fields).await.0.status(), 304);
    let fields = [("range", "bytes=2-3"), ("if-match", &*weak)];
    assert_eq!(visitor.get("/f", &fields).await.0.status(), 412);
    // A time that is still to come is sent as the present one: the file may change again within the second.
    let to_come = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    file.set_modified(to_come).unwrap();
    let (head, _) = visitor.get("/f", &[]).await;
    assert_eq!(
        get(head.headers()["last-modified"].to_str().unwrap()).await,
        200
    );
    assert_eq!((get(&tag).await, get(&date).await), (200, 200));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn names_are_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let root = directory_of(&[("dir with %2F, + and \\/index.html", b"index")]);
    let names: [&[u8]; 7] = [
        b"caf\xe9.txt",
        b"\xff\xfe",
        b"100%+ a",
        b"%41",
        "\u{10ffe9}.html".as_bytes(),
        "\u{fc}".as_bytes(),
        b"a\xe9/b\xe9",
    ];
    let escaped = |name: &[u8]| -> String {
        let escape = |byte: &u8| match byte {
            b'/' => "/".to_owned(),
            byte => format!("%{byte:02x}"),
        };
        name.iter().map(escape).collect()
    };
    for name in names {
        let path = root.path().join(OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        for name in names {
            let path = format!("/{}", escaped(name));
            let (head, content) = visitor.get(&path, &[]).await;
            assert_eq!((head.status(), &*content), (StatusCode::OK, name), "{path}");
        }
        let (head, content) = visitor
            .get("/caf%e9.txt", &[("range", "bytes=0-2,4-5")])
            .await;
        assert_eq!(head.status(), StatusCode::PARTIAL_CONTENT);
        assert!(String::from_utf8_lossy(&content).contains("bytes 4-5/8"));
        for missing in [
            "/caf%c3%a9.txt",
            "/%00",
            "/..%2f..%2fetc%2fpasswd",
            "/%2f%2fhost",
        ] {
            let (head, _) = visitor.get(missing, &[]).await;
            assert_eq!(head.status(), StatusCode::NOT_FOUND, "{missing}");
        }
        let path = format!("/{}", escaped(b"dir with %2F, + and \\"));
        let (head, _) = visitor.get(&format!("{path}?a=%20"), &[]).await;
        assert_eq!(
            head.headers()["location"],
            format!("{path}/?a=%20"),
            "{version:?}"
        );
        let (_, content) = visitor.get(&format!("{path}/"), &[]).await;
        assert_eq!(content, b"index");
        let (head, _) = visitor.get(&format!("/{}", escaped(b"a\xe9")), &[]).await;
        assert_eq!(head.headers()["location"], "/%61%e9/");
    }
}

/// A header with such a target cannot be built from it.
#[tokio::test]
async fn a_directory_is_redirected_to_also_from_a_path_that_is_not_escaped() {
    let root = directory_of(&[("e\u{fc}/index.html", b"index")]);
    let server = TestServer::files(root.path()).await;
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let request = "GET /e\u{fc}?\u{fc} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 307 "), "{response}");
    assert!(
        response.contains("location: /e%C3%BC/?%C3%BC\r\n"),
        "{response}"
    );
}

#[tokio::test]
async fn a_directory_is_no_variant_of_a_file() {
    let root = directory_of(&[("f.txt", b"plain"), ("f.txt.gz/index.html", b"index")]);
    let server = TestServer::files(root.path()).await;
    let visitor = server.connect(HttpVersion::Http2).await;
    for coding in ["gzip", "gzip;q=1.0"] {
        let (head, content) = visitor.get("/f.txt", &[("accept-encoding", coding)]).await;
        assert_eq!(head.status(), 200);
        assert!(!head.headers().contains_key("content-encoding"), "{head:?}");
        assert_eq!(content, b"plain"[..]);
    }
    let (_, content) = visitor.get("/f.txt.gz/", &[]).await;
    assert_eq!(content, b"index"[..]);
}

#[tokio::test]
async fn variants_have_entity_tags_of_their_own() {
    let root = directory_of(&[("f.txt", b"same"), ("f.txt.gz", b"size")]);
    for name in ["f.txt", "f.txt.gz"] {
        let file = File::options()
            .write(true)
            .open(root.path().join(name))
            .unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
            .unwrap();
    }
    let server = TestServer::files(root.path()).await;
    let visitor = server.connect(HttpVersion::Http2).await;
    let tag = async |coding| {
        let (head, _) = visitor.get("/f.txt", &[("accept-encoding", coding)]).await;
        head.headers()["etag"].clone()
    };
    assert_ne!(tag("identity").await, tag("gzip").await);
}
