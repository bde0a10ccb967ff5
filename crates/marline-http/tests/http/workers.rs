//! A server with several workers.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use http::{Request, Response};
use marline_http::Body;
use marline_http::client::HttpVersion;
use marline_http::server::{Identity, ServeError, Server, ServerConfig, Site, directory};
use tower::service_fn;

use crate::common::{TestServer, VERSIONS, directory_of, until};

const WORKERS: usize = 3;

/// A site that answers with the name of the thread.
fn thread_names() -> Site {
    let answer = service_fn(|_: Request<Body>| async {
        let name = thread::current().name().unwrap_or_default().to_owned();
        Ok::<_, Infallible>(Response::new(Body::full(name)))
    });
    Site::new(answer)
}

#[tokio::test]
async fn each_connection_is_served_by_one_worker_and_all_workers_serve() {
    for steering in [true, false] {
        let server = TestServer::with(thread_names(), |config| {
            config.workers = WORKERS;
            config.steering = steering;
        })
        .await;
        for version in VERSIONS {
            let mut names = BTreeSet::new();
            // The kernel leaves one out once in a million times.
            for _ in 0..36 {
                let visitor = server.connect(version).await;
                let (_, first) = visitor.get("/", &[]).await;
                let (_, second) = visitor.get("/", &[]).await;
                assert_eq!(first, second, "{version:?}");
                names.insert(String::from_utf8(first).unwrap());
            }
            let expected: BTreeSet<_> = (0..WORKERS).map(|n| format!("worker {n}")).collect();
            assert_eq!(names, expected, "{version:?}");
        }
    }
}

#[tokio::test]
async fn limits_metrics_reload_and_stop_hold_for_all_workers() {
    let before = directory_of(&[("file", b"before")]);
    let after = directory_of(&[("file", b"after")]);
    let server = TestServer::with(directory(before.path(), false).unwrap(), |config| {
        config.workers = WORKERS;
        config.limits.max_connections = 10;
    })
    .await;
    let mut visitors = Vec::new();
    for _ in 0..5 {
        for version in [HttpVersion::Http3, HttpVersion::Http2] {
            let visitor = server.connect(version).await;
            assert_eq!(visitor.get("/file", &[]).await.1, b"before");
            visitors.push(visitor);
        }
    }
    // A response counts when its worker has recorded it.
    until("ten responses", || server.metrics.responses() == 10).await;
    let page = server.metrics.render();
    assert!(
        page.contains("marline_quic_connections{state=\"open\"} 5\n"),
        "{page}"
    );
    // Another one takes the place of one that is idle, of whichever worker.
    let visitor = server.connect(HttpVersion::Http3).await;
    assert_eq!(visitor.get("/file", &[]).await.1, b"before");

    let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
    let site = directory(after.path(), false).unwrap();
    let mut config = ServerConfig::new(server.address, identity, site);
    config.limits.max_connections = 10;
    server.handle.reload(config).unwrap();
    assert_eq!(visitor.get("/file", &[]).await.1, b"after");
    drop(visitors);
    drop(visitor);
    server.handle.shut_down();
    server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn connection_ids_without_room_for_a_number_are_refused() {
    let root = directory_of(&[("file", b"content")]);
    let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
    let site = directory(root.path(), false).unwrap();
    let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into(), identity, site);
    let mut endpoint = marline::EndpointConfig::from_seed([1; 32]);
    endpoint.connection_id_len = 4;
    config.endpoint = Some(endpoint);
    config.workers = WORKERS;
    let refused = Server::bind(config).await.unwrap_err();
    assert!(matches!(refused, ServeError::Quic(_)), "{refused}");
}

#[tokio::test]
async fn a_worker_that_is_blocked_does_not_run() {
    let (entered, mut is_entered) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let block = service_fn(move |_: Request<Body>| {
        let (entered, released) = (entered.clone(), Arc::clone(&released));
        async move {
            entered.send(()).unwrap();
            // The test ends it.
            let _ = released.lock().unwrap().recv();
            Ok::<_, Infallible>(Response::new(Body::full("done")))
        }
    });
    let server = TestServer::with(Site::new(block), |config| config.workers = WORKERS).await;
    server.handle.workers_run().await;
    let visitor = server.connect(HttpVersion::Http2).await;
    let request = tokio::spawn(async move { visitor.get("/", &[]).await });
    is_entered.recv().await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(100), server.handle.workers_run());
    assert!(waited.await.is_err(), "one of them is blocked");
    release.send(()).unwrap();
    server.handle.workers_run().await;
    assert_eq!(request.await.unwrap().1, b"done");
}
