//! Page loads in real time, over each version of HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use marline_http::client::{Assignment, HttpVersion, Progress};
use marline_http::page::{
    Discovery, Kind, LoadOptions, Page, PageObject, PageObjectReport, PageReport, load,
};
use marline_http::server::generated;

use crate::common::{TestServer, VERSIONS, client};

/// A document with `images`, all of which are discovered at its end.
fn page(host: SocketAddr, images: usize) -> Page {
    let object = |id: String, kind| PageObject {
        host: host.to_string(),
        path: format!("/{id}"),
        id,
        kind,
        size: 50_000,
        discovered_by: None,
        parse: Duration::from_millis(5),
        think: Duration::from_millis(5),
        blocking: false,
        urgency: None,
        incremental: None,
    };
    let mut objects = vec![object("html".to_owned(), Kind::Html)];
    objects.extend((0..images).map(|i| PageObject {
        discovered_by: Some(Discovery {
            object: "html".to_owned(),
            share: 1.0,
        }),
        ..object(format!("image{i}"), Kind::Image)
    }));
    Page { objects }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_load_over_all_versions() {
    let discarded = SocketAddr::from(([0, 0, 0, 0], 0));
    let site = generated(page(discarded, 20).generated("0.0.0.0:0"), None).unwrap();
    let server = TestServer::site(site).await;
    let page = page(server.address, 20);
    for version in VERSIONS {
        let connections = version.connections_of_browsers();
        let options = LoadOptions {
            connections,
            ..LoadOptions::default()
        };
        let progress = Arc::<Progress>::default();
        let client = client(version);
        let report = load(&client, &page, options, &progress).await.unwrap();
        assert!(report.is_complete(), "{version:?} {report:?}");
        assert_eq!(progress.finished.load(Relaxed), 21);
        assert_eq!(progress.received.load(Relaxed), 21 * 50_000);
        assert_eq!(report.connections.len(), connections, "{version:?}");
        assert!(report.first_render_s.unwrap() < report.page_load_s);
        // HTTP/1.1 has one request at a time on each of its connections.
        let most = report.objects.iter().map(|object| at_once(&report, object));
        let most = most.max().unwrap();
        assert_eq!(most, if connections == 1 { 20 } else { 6 }, "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_take_parallel_sessions_of_http2_in_turn() {
    let discarded = SocketAddr::from(([0, 0, 0, 0], 0));
    let site = generated(page(discarded, 20).generated("0.0.0.0:0"), None).unwrap();
    let server = TestServer::site(site).await;
    let page = page(server.address, 20);
    let options = LoadOptions {
        connections: 2,
        assignment: Assignment::Alternate,
        ..LoadOptions::default()
    };
    let client = client(HttpVersion::Http2);
    let report = load(&client, &page, options, &Arc::default())
        .await
        .unwrap();
    assert!(report.is_complete(), "{report:?}");
    let [document, images @ ..] = &report.objects[..] else {
        panic!("no objects")
    };
    for (number, image) in images.iter().enumerate() {
        let in_turn = (image.connection == document.connection) == (number % 2 == 1);
        assert!(in_turn, "{number}: {report:?}");
    }
}

/// The number of requests in progress when this one is sent.
fn at_once(report: &PageReport, object: &PageObjectReport) -> usize {
    let now = object.start_s.unwrap();
    let others = report.objects.iter();
    let others = others.filter(|o| o.start_s.unwrap() <= now && o.end_s.unwrap() > now);
    others.count()
}
