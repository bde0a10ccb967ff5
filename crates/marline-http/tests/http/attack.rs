//! Attacks on a larger scale, for `make attack` (`tools/attack.sh`).

use std::time::Duration;

use marline::TransportConfig;
use marline_http::client::HttpVersion;

use crate::budgets::{LARGE, buffered};
use crate::common::{TestServer, directory_of};
use crate::floods::{CALM, PING, SETTINGS, connect, send_until_closed};

/// Longer than any of these takes.
const LIMIT: Duration = Duration::from_secs(240);

const MIB: u64 = 1 << 20;

/// Bytes that a server buffers for `connections` with 256 requests each that nobody reads.
async fn unread(version: HttpVersion, connections: usize, transport: TransportConfig) -> u64 {
    let attack = buffered(version, connections, 256, LARGE, transport);
    let [during, after] = tokio::time::timeout(LIMIT, attack).await.unwrap();
    println!(
        "{version:?}: {:.1} MiB buffered",
        during as f64 / MIB as f64
    );
    assert_eq!(after, 0);
    during
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn unread_http3() {
    let transport = TransportConfig {
        stream_receive_window: Some(1000),
        ..TransportConfig::default()
    };
    let during = unread(HttpVersion::Http3, 64, transport).await;
    assert!(during < 64 * MIB, "{during}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn unread_http2() {
    let during = unread(HttpVersion::Http2, 8, TransportConfig::default()).await;
    assert!(during < 128 * MIB, "{during}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn ping_and_settings_floods() {
    let root = directory_of(&[("index.html", b"content")]);
    let server = TestServer::files(root.path()).await;
    let mut floods = Vec::new();
    for number in 0..50 {
        let frame = [PING, SETTINGS][number % 2];
        let stream = connect(&server).await;
        floods.push(tokio::spawn(async move {
            let frames = frame.repeat(100);
            send_until_closed(stream, &frames, None, 100_000).await
        }));
    }
    let visitor = server.connect(HttpVersion::Http2).await;
    assert_eq!(visitor.get("/", &[]).await.1, b"content");
    let mut most = 0;
    for flood in floods {
        let flood = tokio::time::timeout(LIMIT, flood).await.unwrap().unwrap();
        assert!(flood.received.ends_with(CALM));
        most = most.max(flood.sent * 100);
    }
    println!("a flood ends after {most} frames at most");
}
