//! Multipath connections between addresses of this host.

use std::sync::Arc;

use http::HeaderMap;
use marline::{PathPolicy, Profile};
use marline_http::client::{Client, ClientConfig, ClientError, HttpVersion, ParsedUrl, parse_url};
use marline_http::server::{AccessLog, directory};

use crate::common::{TestServer, client_with, directory_of, read, until};
use crate::log::Lines;
use crate::metrics::wait_for;

/// A client whose connections have these paths.
fn client(rules: &[&str]) -> Arc<Client> {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    client_with(|config: &mut ClientConfig| {
        config.quic.transport = Arc::new(Profile::Multipath.config());
        config.paths = Some(PathPolicy {
            rules,
            ..PathPolicy::default()
        });
    })
}

async fn server(profile: Profile, log: &Lines) -> (TestServer, tempfile::TempDir) {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.quic.transport = Arc::new(profile.config());
        config.access_log = Some(AccessLog::new(log.clone()));
    });
    (server.await, root)
}

#[tokio::test]
async fn paths_are_counted_logged_and_reported() {
    let log = Lines::default();
    let (server, _root) = server(Profile::Multipath, &log).await;
    let client = client(&["127.0.0.2", "127.0.0.3,backup"]);
    let url = server.url(HttpVersion::Http3, "/file");
    let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http3).unwrap();
    wait_for(&server, "marline_multipath_connections_total 0").await;
    let connection = client.connect(&origin).await.unwrap();
    for line in [
        "marline_multipath_connections_total 1",
        "marline_paths_opened_total 1",
        "marline_paths_open{path=\"0\"} 1",
        "marline_paths_open{path=\"1\"} 1",
    ] {
        wait_for(&server, line).await;
    }
    let get = async || {
        let headers = HeaderMap::new();
        let response = connection.get(&origin, &uri, &headers).await.unwrap();
        read(response.into_body()).await
    };
    assert_eq!(get().await, b"content");
    assert_eq!(log.wait(1).await[0]["paths"], 2);
    let report = connection.report();
    assert!(report.multipath);
    let local = report.paths.iter().map(|path| path.local.ip().to_string());
    assert_eq!(local.collect::<Vec<_>>(), ["127.0.0.2", "127.0.0.3"]);
    assert!(report.paths.iter().all(|path| path.closed.is_none()));

    let quic = connection.quic().unwrap();
    let why = marline::ErrorCode::APPLICATION_ABANDON_PATH;
    quic.abandon_path(marline::PathId(1), why).unwrap();
    wait_for(
        &server,
        "marline_paths_closed_total{reason=\"application\"} 1",
    )
    .await;
    assert_eq!(get().await, b"content");
    // Both ends discard the state of the path a while after.
    until("the state is discarded", || quic.paths().len() == 1).await;
    let report = connection.report();
    assert_eq!(report.paths.len(), 2);
    assert!(report.paths[1].closed.is_some(), "{report:?}");
    assert!(report.paths[1].bytes_received > 0);

    let sum = |text: &str, metric: &str| -> u64 {
        let lines = text.lines().filter(|line| line.starts_with(metric));
        let value = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        lines.map(value).sum()
    };
    let text = server.metrics.render();
    let sent = sum(&text, "marline_path_sent_bytes_total{");
    assert!(sent > 1_000, "{text}");
    drop(connection);
    drop(client);
    wait_for(&server, "marline_path_last_window_bytes_count 2").await;
    let text = server.metrics.render();
    assert!(!text.contains("marline_paths_open{"), "{text}");
    assert!(sum(&text, "marline_path_sent_bytes_total{") >= sent);
}

#[tokio::test]
async fn a_server_without_multipath_reports_no_paths() {
    let log = Lines::default();
    let (server, _root) = server(Profile::Default, &log).await;
    let url = server.url(HttpVersion::Http3, "/file");
    let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http3).unwrap();
    let client = client(&["127.0.0.2", "127.0.0.3"]);
    let connection = client.connect(&origin).await.unwrap();
    let headers = HeaderMap::new();
    let response = connection.get(&origin, &uri, &headers).await.unwrap();
    assert_eq!(read(response.into_body()).await, b"content");
    assert_eq!(log.wait(1).await[0]["paths"], 1);
    assert!(!server.metrics.render().contains("marline_path"));
    assert!(!connection.report().multipath);

    let unreachable = self::client(&["192.0.2.77"]).connect(&origin).await;
    assert!(matches!(unreachable, Err(ClientError::NoPath { .. })));
}
