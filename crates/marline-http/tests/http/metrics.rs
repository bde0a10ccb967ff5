//! What a server counts.

use std::sync::Arc;
use std::time::Duration;

use marline::Profile;
use marline::coordination::bundle::BundleConfig;
use marline_http::client::HttpVersion;
use marline_http::server::directory;

use crate::common::{TestServer, directory_of, pattern};

/// Waits until the server says `line` of itself.
async fn says(server: &TestServer, line: &str) {
    let said = async {
        while !server.metrics.render().lines().any(|said| said == line) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), said).await;
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
    says(&server, "marline_bundles 0").await;
    let mut visitors = Vec::new();
    for _ in 0..3 {
        let visitor = server.connect(HttpVersion::Http3).await;
        visitor.get("/file", &[]).await;
        visitors.push(visitor);
    }
    says(&server, "marline_bundles 1").await;
    says(&server, "marline_bundle_members 3").await;
    let joined = "marline_bundle_decisions_total{trigger=\"joined\",action=\"split\"} 3";
    says(&server, joined).await;
    visitors.truncate(1);
    says(&server, "marline_bundle_members 0").await;
    says(&server, "marline_bundles 0").await;
    says(&server, joined).await;
}

#[tokio::test]
async fn connections_on_their_own_are_no_bundle() {
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
}
