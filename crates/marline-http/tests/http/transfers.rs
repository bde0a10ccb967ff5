//! Fetches of complete objects, and errors about incomplete ones.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{self, TestServer, VERSIONS, client, directory_of, discarded, pattern};
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::StreamBody;
use marline::Sha256;
use marline_http::client::{
    Assignment, ClientError, Destination, FetchOptions, HttpVersion, Message, Progress, Ranges,
    Target,
};
use marline_http::server::Site;
use marline_http::{Body, BoxError};
use tempfile::TempDir;

fn sha256(content: &[u8]) -> String {
    Sha256::of(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_small_files_arrive() {
    let root = TempDir::new().unwrap();
    let content = |i: usize| format!("file number {i} {}", "x".repeat(i % 700)).into_bytes();
    for i in 0..2000 {
        std::fs::write(root.path().join(i.to_string()), content(i)).unwrap();
    }
    let server = TestServer::files(root.path()).await;
    for (version, connections) in [
        (HttpVersion::Http11, 6),
        (HttpVersion::Http2, 1),
        (HttpVersion::Http3, 1),
        (HttpVersion::Http3, 3),
    ] {
        let targets = (0..2000).map(|i| discarded(server.url(version, &format!("/{i}"))));
        let options = FetchOptions {
            connections,
            ..FetchOptions::default()
        };
        let progress = Arc::new(Progress::default());
        let report = client(version)
            .fetch(targets.collect(), options, &progress)
            .await;
        assert_eq!(report.objects.len(), 2000);
        assert_eq!(report.connections.len(), connections, "{version:?}");
        for (i, object) in report.objects.iter().enumerate() {
            assert_eq!(object.error, None, "{version:?} {i}");
            assert_eq!(object.sha256.as_deref(), Some(&*sha256(&content(i))), "{i}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_alternate_between_connections_however_large_they_are() {
    let (large, small) = (pattern(3 << 20), pattern(10));
    let names: Vec<_> = (0..7).map(|i| i.to_string()).collect();
    let files = names.iter().enumerate().map(|(i, name)| {
        let content = if i % 2 == 0 { &large } else { &small };
        (name.as_str(), content.as_slice())
    });
    let root = directory_of(&files.collect::<Vec<_>>());
    let server = TestServer::files(root.path()).await;
    let version = HttpVersion::Http2;
    let targets = names
        .iter()
        .map(|name| discarded(server.url(version, &format!("/{name}"))));
    let options = FetchOptions {
        connections: 2,
        assignment: Assignment::Alternate,
        ..FetchOptions::default()
    };
    let report = client(version)
        .fetch(targets.collect(), options, &Arc::default())
        .await;
    assert!(report.is_complete(), "{report:?}");
    let first = report.objects[0].connection;
    for (i, object) in report.objects.iter().enumerate() {
        assert_eq!(object.connection == first, i % 2 == 0, "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_megabytes_arrive_over_every_version() {
    let content = pattern(50 << 20);
    let expected = sha256(&content);
    let root = directory_of(&[("big", &content)]);
    drop(content);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let target = discarded(server.url(version, "/big"));
        let report = client(version)
            .fetch(vec![target], FetchOptions::default(), &Arc::default())
            .await;
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(report.objects[0].bytes, 50 << 20);
        assert_eq!(report.objects[0].sha256.as_deref(), Some(&*expected));
        assert_eq!(report.connections[0].bytes_received, 50 << 20);
    }
}

/// A site that announces 1000 bytes and sends fewer, then fails or ends.
fn truncating_site(fails: bool) -> Site {
    Site::new(tower::service_fn(move |_: Request<Body>| async move {
        let mut frames: Vec<Result<_, BoxError>> =
            vec![Ok(http_body::Frame::data(vec![7; 400].into()))];
        if fails {
            frames.push(Err(io::Error::other("disk failure").into()));
        }
        let body = StreamBody::new(tokio_stream(frames));
        let response = Response::builder()
            .header("content-length", "1000")
            .body(Body::new(body.boxed_unsync()));
        Ok::<_, Infallible>(response.unwrap())
    }))
}

fn tokio_stream<T: Unpin>(items: Vec<T>) -> impl futures_core::Stream<Item = T> {
    struct Items<T>(std::vec::IntoIter<T>);
    impl<T: Unpin> futures_core::Stream for Items<T> {
        type Item = T;
        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<T>> {
            std::task::Poll::Ready(self.0.next())
        }
    }
    Items(items.into_iter())
}

#[tokio::test]
async fn a_short_response_is_an_error() {
    for fails in [true, false] {
        let server = TestServer::site(truncating_site(fails)).await;
        for version in VERSIONS {
            let visitor = server.connect(version).await;
            let response = visitor.try_send(http::Method::GET, "/", &[]).await;
            let mut download = match response {
                Ok(response) => response.into_body(),
                // The connection failed before the header was sent, which is an error as well.
                Err(error) => {
                    assert!(matches!(error, ClientError::NoResponse { .. }), "{error}");
                    continue;
                }
            };
            let error = loop {
                match download.chunk().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{version:?} accepted an incomplete object"),
                    Err(error) => break error,
                }
            };
            let ClientError::Truncated {
                received, expected, ..
            } = &error
            else {
                panic!("{error}");
            };
            assert!(*received <= 400, "{version:?} {error}");
            assert_eq!(*expected, Some(1000));
        }
    }
}

#[tokio::test]
async fn files_appear_when_they_are_complete() {
    let content = pattern(100_000);
    let root = directory_of(&[("file", &content)]);
    let good = TestServer::files(root.path()).await;
    let bad = TestServer::site(truncating_site(true)).await;
    let out = TempDir::new().unwrap();
    for version in VERSIONS {
        let path = out.path().join("target");
        let fetch = async |url: String, path: &std::path::Path| {
            let target = Target {
                url,
                destination: Destination::File(path.to_owned()),
                size: None,
                message: Message::default(),
            };
            client(version)
                .fetch(vec![target], FetchOptions::default(), &Arc::default())
                .await
        };
        let report = fetch(good.url(version, "/file"), &path).await;
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(report.objects[0].file.as_deref(), Some(&*path));
        assert!(std::fs::read(&path).unwrap() == content);
        std::fs::remove_file(&path).unwrap();

        for url in [bad.url(version, "/file"), good.url(version, "/missing")] {
            let report = fetch(url, &path).await;
            assert!(!report.is_complete());
            let left: Vec<_> = std::fs::read_dir(out.path()).unwrap().collect();
            assert!(left.is_empty(), "{version:?} {left:?}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_whose_reader_has_stopped_delays_neither_time_limits_nor_other_objects() {
    let content = pattern(2_000_000);
    let root = directory_of(&[("file", &content)]);
    let server = TestServer::files(root.path()).await;
    let out = TempDir::new().unwrap();
    let pipe = out.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut options = std::fs::OpenOptions::new();
    let reader = options.read(true).write(true).open(&pipe).unwrap();
    for version in VERSIONS {
        let target = |destination| Target {
            url: server.url(version, "/file"),
            destination,
            size: None,
            message: Message::default(),
        };
        let options = FetchOptions {
            connections: 2,
            time_limit: Some(Duration::from_millis(500)),
            ..FetchOptions::default()
        };
        let stopped = target(Destination::File(pipe.clone()));
        let client = client(version);
        let progress = Arc::default();
        let fetched = client.fetch(vec![stopped], options, &progress);
        let other = async {
            let other = target(Destination::File(out.path().join("other")));
            let without_limit = FetchOptions::default();
            client.fetch(vec![other], without_limit, &progress).await
        };
        let (fetched, other) = tokio::join!(fetched, other);
        let error = fetched.objects[0].error.as_deref().unwrap();
        assert!(error.contains("0.5 s"), "{version:?} {error}");
        assert_eq!(other.objects[0].error, None, "{version:?}");
    }
    drop(reader);
}

#[tokio::test]
async fn interrupted_downloads_are_resumed() {
    let content = pattern(100_000);
    let root = directory_of(&[("file", &content)]);
    let server = TestServer::files(root.path()).await;
    let out = TempDir::new().unwrap();
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let (head, _) = visitor.get("/file", &[]).await;
        let tag = head.headers()["etag"].to_str().unwrap().to_owned();
        for (tag, new_bytes) in [(tag.as_str(), 60_000), ("\"stale\"", 100_000)] {
            std::fs::write(out.path().join(".file.part"), &content[..40_000]).unwrap();
            std::fs::write(out.path().join(".file.part.tag"), tag).unwrap();
            let target = Target {
                url: server.url(version, "/file"),
                destination: Destination::File(out.path().join("file")),
                size: None,
                message: Message::default(),
            };
            let options = FetchOptions {
                resume: true,
                ..FetchOptions::default()
            };
            let progress = Arc::new(Progress::default());
            let report = client(version)
                .fetch(vec![target], options, &progress)
                .await;
            assert!(report.is_complete(), "{report:?}");
            assert_eq!(report.objects[0].bytes, 100_000);
            assert_eq!(
                report.objects[0].sha256.as_deref(),
                Some(&*sha256(&content))
            );
            assert_eq!(report.connections[0].bytes_received, new_bytes);
            assert!(std::fs::read(out.path().join("file")).unwrap() == content);
            assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1);
        }
    }
}

/// A site that responds with pieces at intervals.
fn slow(pieces: usize) -> Site {
    Site::new(tower::service_fn(move |_: Request<Body>| async move {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<_, BoxError>>(1);
        tokio::spawn(async move {
            for _ in 0..pieces {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let _ = sender
                    .send(Ok(http_body::Frame::data(vec![1; 1000].into())))
                    .await;
            }
        });
        struct Pieces(
            tokio::sync::mpsc::Receiver<Result<http_body::Frame<bytes::Bytes>, BoxError>>,
        );
        impl futures_core::Stream for Pieces {
            type Item = Result<http_body::Frame<bytes::Bytes>, BoxError>;
            fn poll_next(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<Self::Item>> {
                self.0.poll_recv(cx)
            }
        }
        let body = StreamBody::new(Pieces(receiver));
        Ok::<_, Infallible>(Response::new(Body::new(body.boxed_unsync())))
    }))
}

#[tokio::test]
async fn responses_in_progress_finish_after_a_shutdown() {
    for version in VERSIONS {
        let server = TestServer::site(slow(20)).await;
        let visitor = server.connect(version).await;
        let response = visitor.send(http::Method::GET, "/", &[]).await;
        server.handle.shut_down();
        let content = common::read(response.into_body()).await;
        assert_eq!(content.len(), 20_000, "{version:?}");
        tokio::time::timeout(Duration::from_secs(60), server.task)
            .await
            .expect("it stops when everything is sent")
            .unwrap()
            .unwrap();
        let url = format!("https://{}", server.address);
        let parsed = marline_http::client::parse_url(&url, HttpVersion::Http2).unwrap();
        let again = client(HttpVersion::Http2).connect(&parsed.origin).await;
        assert!(
            matches!(again, Err(ClientError::Connect { .. })),
            "{again:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_files_are_fetched_in_ranges_over_all_connections() {
    let content = pattern(1_000_003);
    let root = directory_of(&[
        ("large", &content),
        ("small", &content[..999]),
        ("empty", b""),
    ]);
    let server = TestServer::files(root.path()).await;
    let out = TempDir::new().unwrap();
    let sizes = [1_000_003, 999, 0];
    let ways = VERSIONS.into_iter().flat_map(|version| {
        [
            (version, Ranges::Equal, false),
            (version, Ranges::Equal, true),
            (version, Ranges::Handed, false),
            (version, Ranges::Handed, true),
        ]
    });
    for (version, ranges, known) in ways {
        let targets = ["large", "small", "empty"].into_iter().zip(sizes);
        let targets = targets.map(|(name, size)| Target {
            url: server.url(version, &format!("/{name}")),
            destination: Destination::File(out.path().join(name)),
            size: known.then_some(size),
            message: Message::default(),
        });
        let options = FetchOptions {
            connections: 3,
            split: std::num::NonZeroU64::new(1000),
            ranges,
            ..FetchOptions::default()
        };
        let report = client(version)
            .fetch(targets.collect(), options, &Arc::default())
            .await;
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(
            report.objects[0].sha256.as_deref(),
            Some(&*sha256(&content))
        );
        assert_eq!(report.objects[1].bytes, 999);
        assert_eq!(report.objects[2].bytes, 0);
        assert!(std::fs::read(out.path().join("large")).unwrap() == content);
        // A response of HTTP/1.1 that is stopped ends its connection, which another one replaces. Of an object of
        // unknown size the first is stopped where other connections continue; how often a range is handed over depends
        // on how fast the connections are.
        let opened = report.connections.len();
        let most = match (version, ranges) {
            (HttpVersion::Http2 | HttpVersion::Http3, _) => 3,
            (_, Ranges::Handed) => usize::MAX,
            _ => 3 + usize::from(!known),
        };
        assert!(
            (3..=most).contains(&opened),
            "{opened}, {version:?}, {ranges:?}, {known}"
        );
        for connection in &report.connections {
            let fair = connection.bytes_received > 300_000;
            assert!(fair || ranges == Ranges::Handed, "{connection:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_opened_in_advance_are_used() {
    let root = directory_of(&[("a", b"1"), ("b", b"22")]);
    let server = TestServer::files(root.path()).await;
    for version in VERSIONS {
        let client = client(version);
        let urls = ["/a", "/b"].map(|path| server.url(version, path));
        client.open(&urls[0], 2).await.unwrap();
        let options = FetchOptions {
            connections: 2,
            ..FetchOptions::default()
        };
        let targets = urls.map(common::discarded).to_vec();
        let report = client.fetch(targets, options, &Arc::default()).await;
        assert!(report.is_complete(), "{report:?}");
        let ids: Vec<_> = report.connections.iter().map(|c| c.id).collect();
        assert_eq!(ids, [0, 1], "{version:?}: other connections were opened");
    }
}
