//! The metrics of a server.

use std::sync::Arc;
use std::time::Duration;

use marline::Profile;
use marline::coordination::bundle::BundleConfig;
use marline::coordination::history::{HistoryConfig, HistoryPolicy, MemoryStore};
use marline_http::client::HttpVersion;
use marline_http::server::{AccessLog, StateDirectory, directory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{TestServer, directory_of, pattern};
use crate::log::Lines;

/// Waits until the server's metrics contain `line`.
pub(crate) async fn wait_for(server: &TestServer, line: &str) {
    let written = async {
        while !server
            .metrics
            .render()
            .lines()
            .any(|written| written == line)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(120), written).await;
    assert!(waited.is_ok(), "{line}\nin\n{}", server.metrics.render());
}

#[tokio::test]
async fn bundles_are_counted_while_they_last() {
    let root = directory_of(&[("file", &pattern(100_000))]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        let mut transport = Profile::Bundle.config();
        transport.bundle = Some(Arc::new(BundleConfig {
            match_addresses: true,
            ..BundleConfig::default()
        }));
        config.quic.transport = Arc::new(transport);
    })
    .await;
    wait_for(&server, "marline_bundles 0").await;
    let mut visitors = Vec::new();
    for _ in 0..3 {
        let visitor = server.connect(HttpVersion::Http3).await;
        visitor.get("/file", &[]).await;
        visitors.push(visitor);
    }
    wait_for(&server, "marline_bundles 1").await;
    wait_for(&server, "marline_bundle_members 3").await;
    let joined = "marline_bundle_decisions_total{trigger=\"joined\",action=\"shared\"} 3";
    wait_for(&server, joined).await;
    visitors.truncate(1);
    wait_for(&server, "marline_bundle_members 0").await;
    wait_for(&server, "marline_bundles 0").await;
    wait_for(&server, joined).await;
}

#[tokio::test]
async fn samples_of_paths_are_counted_and_logged() {
    let root = directory_of(&[("file", &pattern(1_000_000))]);
    let store = Arc::new(MemoryStore::default());
    let log = Lines::default();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.access_log = Some(AccessLog::new(log.clone()));
        let history = HistoryConfig::default();
        let transport =
            Profile::Default.with_history(HistoryPolicy::Average, history, store.clone());
        config.quic.transport = Arc::new(transport);
    })
    .await;
    wait_for(&server, "marline_path_records 0").await;
    for learnt in 0..2 {
        let visitor = server.connect(HttpVersion::Http3).await;
        visitor.get("/file", &[]).await;
        drop(visitor);
        wait_for(&server, "marline_path_records 1").await;
        let count = format!("marline_initial_windows_total{{window=\"learnt\"}} {learnt}");
        wait_for(&server, &count).await;
    }
    wait_for(
        &server,
        "marline_initial_windows_total{window=\"default\"} 1",
    )
    .await;
    wait_for(&server, "marline_learnt_initial_window_bytes_count 1").await;
    let lines = log.wait(2).await;
    let windows = [0, 1].map(|line: usize| lines[line]["initial_window"].as_u64().unwrap());
    assert_eq!(windows[0], 12_000);
    assert!(windows[1] > windows[0], "{windows:?}");
    let learnt = format!("marline_learnt_initial_window_bytes_sum {}", windows[1]);
    wait_for(&server, &learnt).await;
}

#[tokio::test]
async fn connections_open_at_the_end_leave_samples() {
    let root = directory_of(&[("file", &pattern(1_000_000))]);
    let store = Arc::new(MemoryStore::default());
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        let history = HistoryConfig::default();
        let transport =
            Profile::Default.with_history(HistoryPolicy::Careful, history, store.clone());
        config.quic.transport = Arc::new(transport);
    })
    .await;
    let visitor = server.connect(HttpVersion::Http3).await;
    visitor.get("/file", &[]).await;
    assert!(store.is_empty());
    server.handle.shut_down();
    server.task.await.unwrap().unwrap();
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn connections_without_a_bundle_are_not_counted() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    let visitors = [
        server.connect(HttpVersion::Http3).await,
        server.connect(HttpVersion::Http3).await,
    ];
    for visitor in &visitors {
        visitor.get("/file", &[]).await;
    }
    let text = server.metrics.render();
    assert!(text.contains("\nmarline_bundles 0\n"), "{text}");
    assert!(!text.contains("marline_bundle_decisions_total{"), "{text}");
    assert!(!text.contains("initial_window"), "there is no history");
}

#[tokio::test]
async fn quic_connections_are_counted_by_version() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.quic.preferred_version = Some(marline::Version::V2);
    })
    .await;
    let first = server.connect(HttpVersion::Http3).await;
    first.get("/file", &[]).await;
    wait_for(&server, "marline_quic_connections_total{version=\"v2\"} 1").await;
    wait_for(&server, "marline_quic_connections_total{version=\"v1\"} 0").await;
}

#[tokio::test]
async fn keys_that_cannot_be_replaced_are_counted() {
    let root = directory_of(&[("file", b"content")]);
    let state = tempfile::tempdir().unwrap();
    let opened = StateDirectory::open(state.path(), Duration::ZERO).unwrap();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.state = Some(Arc::new(opened));
    })
    .await;
    std::fs::remove_dir_all(state.path()).unwrap();
    wait_for(&server, "marline_key_rotation_failures_total 1").await;
    let visitor = server.connect(HttpVersion::Http3).await;
    assert_eq!(visitor.get("/file", &[]).await.1, b"content");
}

#[tokio::test]
async fn quic_connections_are_counted_with_their_handshakes_and_datagrams() {
    let root = directory_of(&[("file", &pattern(100_000))]);
    let server = TestServer::files(root.path()).await;
    let visitor = server.connect(HttpVersion::Http3).await;
    visitor.get("/file", &[]).await;
    wait_for(&server, "marline_quic_connections{state=\"open\"} 1").await;
    wait_for(
        &server,
        "marline_quic_handshakes_total{outcome=\"completed\"} 1",
    )
    .await;
    wait_for(
        &server,
        "marline_quic_handshakes_total{outcome=\"failed\"} 0",
    )
    .await;
    wait_for(&server, "marline_quic_handshake_duration_seconds_count 1").await;
    drop(visitor);
    wait_for(&server, "marline_quic_connections{state=\"open\"} 0").await;
    wait_for(&server, "marline_quic_last_rtt_seconds_count 1").await;
    let text = server.metrics.render();
    let sent = text
        .lines()
        .find_map(|line| line.strip_prefix("marline_quic_sent_bytes_total "));
    assert!(sent.unwrap().parse::<u64>().unwrap() > 100_000);
}

#[tokio::test]
async fn metrics_are_read_and_nothing_else() {
    let root = directory_of(&[]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.metrics = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    let address = server.metrics_address.unwrap();
    for (method, status) in [("GET", 200), ("HEAD", 200), ("POST", 405), ("DELETE", 405)] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{method} /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let begin = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&begin), "{method}: {answer}");
        let has_methods = answer.contains("\r\nallow: GET, HEAD\r\n");
        assert_eq!(has_methods, status == 405, "{method}: {answer}");
    }
}
