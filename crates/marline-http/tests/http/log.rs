//! The access log.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response};
use marline::Profile;
use marline_http::Body;
use marline_http::client::{HttpVersion, ParsedUrl, parse_url};
use marline_http::server::{AccessLog, Site, directory};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{TestServer, VERSIONS, client, client_with, directory_of, read};
use crate::metrics::wait_for;

#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Waits until there are `count` lines, and returns them.
    pub(crate) async fn wait(&self, count: usize) -> Vec<Value> {
        let read = || {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            lines.collect::<Vec<_>>()
        };
        let written = async {
            while read().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), written).await;
        assert!(waited.is_ok(), "{:?}", read());
        read()
    }
}

#[tokio::test]
async fn requests_are_logged_and_counted() {
    let root = directory_of(&[("file", b"12345")]);
    let lines = Lines::default();
    let site = directory(root.path(), false).unwrap();
    let server = TestServer::with(site, |config| {
        config.access_log = Some(AccessLog::new(lines.clone()));
        config.metrics = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        visitor.get("/file", &[]).await;
    }
    let mut versions: Vec<_> = lines
        .wait(4)
        .await
        .iter()
        .map(|line| {
            assert_eq!(line["method"], "GET");
            assert_eq!(line["path"], "/file");
            assert_eq!(line["status"], 200);
            assert_eq!(line["bytes"], 5);
            assert_eq!(line["complete"], true);
            assert!(line["time"].as_f64().unwrap() > 1.0e9);
            assert!(line["duration_s"].is_f64() && line["connection"].is_string());
            assert!(line["bundle"].is_null());
            assert!(line["client"].as_str().unwrap().starts_with("127.0.0.1:"));
            line["http_version"].as_str().unwrap().to_owned()
        })
        .collect();
    // In the order in which their clients have acknowledged them.
    versions.sort();
    assert_eq!(versions, ["1.1", "1.1", "2", "3"]);

    let url = format!("http://{}/metrics", server.metrics_address.unwrap());
    let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http11Cleartext).unwrap();
    let client = client(HttpVersion::Http11Cleartext);
    let scraper = client.connect(&origin).await.unwrap();
    let page = scraper.get(&origin, &uri, &HeaderMap::new()).await.unwrap();
    let page = String::from_utf8(read(page.into_body()).await).unwrap();
    assert!(
        page.contains("marline_http_response_bytes_total{version=\"3\"} 5\n"),
        "{page}"
    );
}

#[tokio::test]
async fn requests_that_cannot_be_read_are_logged_and_counted() {
    let root = directory_of(&[("file", b"12345")]);
    let lines = Lines::default();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.access_log = Some(AccessLog::new(lines.clone()));
    })
    .await;
    let huge = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nno field\r\n\r\n", "400"),
        (&huge, "431"),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // The connection may be reset while the rest is sent.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert!(answer.ends_with(status.as_bytes()), "{answer:?}");
    }
    let visitor = server.connect(HttpVersion::Http3).await;
    let huge = "a".repeat(100_000);
    let response = visitor.send(Method::GET, "/", &[("x", &huge)]).await;
    assert_eq!(response.status(), 431);
    // HEADERS without any pseudo-header field.
    let quic = visitor.connection.quic().unwrap();
    let (mut send, mut receive) = quic.open_bi().await.unwrap();
    send.write_all(&[1, 2, 0, 0]).await.unwrap();
    send.finish().unwrap();
    assert!(receive.read_chunk(1).await.is_err(), "it is reset");

    let logged = lines.wait(4).await;
    let statuses: Vec<_> = logged
        .iter()
        .map(|line| {
            assert!(line["method"].is_null() && line["path"].is_null(), "{line}");
            line["status"].as_u64()
        })
        .collect();
    assert_eq!(statuses, [Some(400), Some(431), Some(431), None]);
    wait_for(
        &server,
        "marline_http_unreadable_requests_total{version=\"1.1\"} 2",
    )
    .await;
    wait_for(
        &server,
        "marline_http_unreadable_requests_total{version=\"3\"} 2",
    )
    .await;
    wait_for(
        &server,
        "marline_http_responses_total{version=\"3\",status=\"4xx\"} 1",
    )
    .await;
}

#[tokio::test]
async fn a_request_whose_client_leaves_before_the_response_is_no_error_of_the_server() {
    for version in VERSIONS {
        let lines = Lines::default();
        let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
        let site = Site::new(tower::service_fn(move |_: Request<Body>| {
            let arrived = arrived.clone();
            async move {
                arrived.send(()).unwrap();
                std::future::pending::<Result<Response<Body>, Infallible>>().await
            }
        }));
        let server = TestServer::with(site, |config| {
            config.access_log = Some(AccessLog::new(lines.clone()));
        })
        .await;
        let visitor = server.connect(version).await;
        let request = tokio::spawn(async move { visitor.get("/slow", &[]).await });
        arrivals.recv().await.unwrap();
        request.abort();
        let logged = lines.wait(1).await;
        assert_eq!(logged[0]["path"], "/slow");
        assert!(logged[0]["status"].is_null(), "{version:?}: {logged:?}");
        assert_eq!(logged[0]["complete"], false);
        let page = server.metrics.render();
        let number = logged[0]["http_version"].as_str().unwrap();
        let unanswered =
            format!("marline_http_unanswered_requests_total{{version=\"{number}\"}} 1\n");
        assert!(page.contains(&unanswered), "{page}");
        assert_eq!(server.metrics.responses(), 0);
    }
}

#[tokio::test]
async fn cleartext_where_tls_is_expected_is_logged_and_counted() {
    let root = directory_of(&[("file", b"12345")]);
    let lines = Lines::default();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.access_log = Some(AccessLog::new(lines.clone()));
        config.protocols.cleartext = false;
    })
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();
    // It is logged before the client closes its side.
    let line = lines.wait(1).await.remove(0);
    assert!(line["method"].is_null() && line["path"].is_null(), "{line}");
    assert_eq!((&line["status"], &line["bytes"]), (&400.into(), &42.into()));
    let page = server.metrics.render();
    let counted = "marline_http_unreadable_requests_total{version=\"1.1\"} 1\n";
    assert!(page.contains(counted), "{page}");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("https URL.\n"),
        "{answer}"
    );
}

/// The values of `bundle` in the log: a row of three connections for each client, with two requests on each.
async fn bundles(profile: Profile, announced: &[bool]) -> Vec<[Value; 3]> {
    let root = directory_of(&[("file", b"12345")]);
    let log = Lines::default();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.access_log = Some(AccessLog::new(log.clone()));
        config.quic.transport = Arc::new(profile.config());
    })
    .await;
    let url = server.url(HttpVersion::Http3, "/file");
    let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http3).unwrap();
    let announces = |&bundle: &bool| client_with(|config| config.bundle = bundle);
    let clients: Vec<_> = announced.iter().map(announces).collect();
    let mut connections = Vec::new();
    for client in clients.iter().flat_map(|client| [client; 3]) {
        connections.push(client.connect(&origin).await.unwrap());
    }
    let mut lines = Vec::new();
    for connection in connections.iter().flat_map(|connection| [connection; 2]) {
        let response = connection.get(&origin, &uri, &HeaderMap::new()).await;
        read(response.unwrap().into_body()).await;
        lines = log.wait(lines.len() + 1).await;
    }
    let numbers: Vec<_> = lines.iter().map(|line| line["bundle"].clone()).collect();
    let rows = numbers.chunks(6).map(|row| {
        [0, 2, 4].map(|first| {
            assert_eq!(row[first], row[first + 1], "one connection, one bundle");
            row[first].clone()
        })
    });
    rows.collect()
}

#[tokio::test]
async fn the_log_names_the_bundle_of_a_connection() {
    let log = bundles(Profile::Bundle, &[true, false, true]).await;
    for [a, b, c] in &log {
        assert!(a == b && b == c, "{log:?}");
    }
    let [first, alone, second] = [0, 1, 2].map(|client| &log[client][0]);
    assert!(first.is_u64() && second.is_u64(), "{log:?}");
    assert_ne!(first, second);
    assert!(alone.is_null(), "{alone}");
}

#[tokio::test]
async fn the_log_of_a_server_without_bundles_names_none() {
    let log = bundles(Profile::Default, &[true]).await;
    assert!(log[0].iter().all(Value::is_null), "{log:?}");
}
