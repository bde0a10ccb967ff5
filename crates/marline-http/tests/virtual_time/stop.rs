//! Stopping while somebody is still there.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use marline::coordination::history::{HistoryConfig, HistoryPolicy, MemoryStore};
use marline::{Profile, Runtime};
use marline_http::client::{Destination, FetchOptions, Target};
use marline_http::limits;
use marline_http::server::generated;

use crate::setup::{client, object, quic_of, serve_like, world};

async fn sleep(runtime: &dyn Runtime, duration: Duration) {
    let mut timer = runtime.timer();
    timer.set(runtime.now() + duration);
    poll_fn(|cx| timer.poll(cx)).await;
}

#[test]
fn who_does_not_finish_in_time_is_told_and_leaves_what_it_learnt() {
    let world = world();
    let host = world.host(1);
    let store = Arc::new(MemoryStore::default());
    let transport = Profile::Plain.with_history(
        HistoryPolicy::Careful,
        HistoryConfig::default(),
        store.clone(),
    );
    let objects = BTreeMap::from([
        ("/large".to_owned(), object(1_000_000, Duration::ZERO)),
        ("/slow".to_owned(), object(10, Duration::from_secs(3600))),
    ]);
    world.run(async {
        let site = generated(objects, Some(Arc::clone(&host))).unwrap();
        let (address, handle) = serve_like(Arc::clone(&host), site, quic_of(transport)).await;
        let client = client(world.host(2), [("example.test", address)]);
        let targets = ["/large", "/slow"].map(|path| Target {
            url: format!("https://example.test{path}"),
            destination: Destination::Nowhere,
            size: None,
        });
        let progress = Arc::default();
        let fetched = client.fetch(targets.into(), FetchOptions::default(), &progress);
        let stopping = async {
            sleep(&*host, Duration::from_secs(3)).await;
            assert_eq!(store.len(), 0, "the connection is open");
            handle.shut_down();
            sleep(&*host, limits::SHUTDOWN_GRACE + limits::GOODBYE).await;
            assert_eq!(store.len(), 1, "it was closed");
        };
        let (report, ()) = tokio::join!(fetched, stopping);
        assert_eq!(report.objects[0].error, None);
        assert!(report.objects[1].error.is_some(), "{report:?}");
    });
}
