//! Stopping a server while a client is connected.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use marline::Profile;
use marline::coordination::history::{HistoryConfig, HistoryPolicy, MemoryStore};
use marline_http::client::{
    ClientError, Destination, FetchOptions, HttpVersion, Message, Target, parse_url,
};
use marline_http::limits;
use marline_http::server::generated;

use crate::setup::{client, object, quic_of, run, serve, serve_with};

#[test]
fn connections_open_after_the_grace_period_are_closed_and_reach_the_history() {
    let store = Arc::new(MemoryStore::default());
    let transport = Profile::Default.with_history(
        HistoryPolicy::Careful,
        HistoryConfig::default(),
        store.clone(),
    );
    let objects = BTreeMap::from([
        ("/large".to_owned(), object(1_000_000, Duration::ZERO)),
        ("/slow".to_owned(), object(10, Duration::from_secs(3600))),
    ]);
    run(async |network| {
        let host = &network.servers[0];
        let site = generated(objects, Some(Arc::new(host.clone()))).unwrap();
        let serving = serve_with(host, site, quic_of(transport)).await;
        let client = client(&network.client, [("example.test", serving.address)]);
        let targets = ["/large", "/slow"].map(|path| Target {
            url: format!("https://example.test{path}"),
            destination: Destination::Nowhere,
            size: None,
            message: Message::default(),
        });
        let progress = Arc::default();
        let fetched = client.fetch(targets.into(), FetchOptions::default(), &progress);
        let stopping = async {
            host.sleep(Duration::from_secs(3)).await;
            assert_eq!(store.len(), 0, "the connection is open");
            serving.handle.shut_down();
            host.sleep(limits::SHUTDOWN_GRACE + limits::CLOSE_TIMEOUT)
                .await;
            assert_eq!(store.len(), 1, "it was closed");
        };
        let (report, ()) = tokio::join!(fetched, stopping);
        assert_eq!(report.objects[0].error, None);
        assert!(report.objects[1].error.is_some(), "{report:?}");
    });
}

/// RFC 9114, section 5.2: the client does not know yet that the server is going away.
#[test]
fn requests_on_their_way_when_a_server_stops_are_answered() {
    let objects = BTreeMap::from([("/small".to_owned(), object(1000, Duration::ZERO))]);
    run(async |network| {
        let host = &network.servers[0];
        let serving = serve(host, objects).await;
        let client = client(&network.client, [("example.test", serving.address)]);
        let target = parse_url("https://example.test/small", HttpVersion::Http3).unwrap();
        let connection = client.connect(&target.origin).await.unwrap();
        let get = async || {
            let response = connection
                .get(&target.origin, &target.uri, &HeaderMap::new())
                .await?;
            let mut content = response.into_body();
            let mut bytes = 0;
            while let Some(chunk) = content.chunk().await? {
                bytes += chunk.len();
            }
            Ok::<_, ClientError>(bytes)
        };
        assert_eq!(get().await.unwrap(), 1000);
        serving.handle.shut_down();
        assert_eq!(get().await.unwrap(), 1000);
        // By now the client knows.
        assert!(get().await.is_err());
    });
}
