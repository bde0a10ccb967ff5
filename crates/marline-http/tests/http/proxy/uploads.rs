//! Content of requests that is received before an application gets it.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body::Frame;
use http_body_util::{Limited, StreamBody};
use marline_http::client::HttpVersion;
use marline_http::proxy::{ProxyConfig, UpstreamMetrics, reverse_proxy};
use marline_http::{Body, BoxError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt, service_fn};

use super::application::{Application, Then, field};
use super::{LIMIT, get, proxy_with, request, whole};
use crate::common::{TestServer, VERSIONS, until};

const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone";

/// The content of a request that a test sends part by part.
struct Upload {
    parts: mpsc::UnboundedSender<Bytes>,
    body: Body,
}

impl Upload {
    fn new() -> Self {
        let (parts, receiver) = mpsc::unbounded_channel();
        let frames = futures_util::stream::unfold(receiver, |mut receiver| async move {
            let data = receiver.recv().await?;
            Some((Ok::<_, BoxError>(Frame::data(data)), receiver))
        });
        Self {
            parts,
            body: Body::new(StreamBody::new(frames)),
        }
    }
}

/// An application that reads content of `length` bytes; `part` is notified when as many as it says have arrived.
async fn reads(length: usize, part: usize, arrived: Arc<Notify>) -> Application {
    Application::with(Arc::new(move |mut stream, header| {
        let arrived = Arc::clone(&arrived);
        Box::pin(async move {
            assert_eq!(field(&header, "content-length"), Some(&*length.to_string()));
            let mut content = vec![0; part];
            stream.read_exact(&mut content).await.ok()?;
            arrived.notify_one();
            let mut rest = vec![0; length - part];
            stream.read_exact(&mut rest).await.ok()?;
            stream.write_all(DONE.as_bytes()).await.ok()?;
            Some(stream)
        })
    }))
    .await
}

/// The value of a metric without labels.
fn metric(server: &TestServer, name: &str) -> u64 {
    let page = server.metrics.render();
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name}\nin\n{page}"))
        .trim()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn an_application_gets_a_request_whose_content_is_complete() {
    let application = reads(9, 9, Arc::default()).await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.buffer_uploads = Some(1000);
    })
    .await;
    for version in VERSIONS {
        let before = application.requests.lock().unwrap().len();
        let upload = Upload::new();
        let uploading = request(&proxy, version, Method::POST, &[], upload.body);
        let sending = async {
            upload.parts.send(Bytes::from_static(b"first")).unwrap();
            let is_held = || metric(&proxy, "marline_buffered_bytes ") > 0;
            until("the first part arrives", is_held).await;
            assert_eq!(application.requests.lock().unwrap().len(), before);
            upload.parts.send(Bytes::from_static(b"last")).unwrap();
            drop(upload.parts);
        };
        let (response, ()) = tokio::join!(uploading, sending);
        // The length, which no client has announced, is known now.
        assert_eq!(whole(response.unwrap()).await.text, "done", "{version:?}");
        let is_free = || metric(&proxy, "marline_buffered_bytes ") == 0;
        until("nothing is held any more", is_free).await;
    }
}

#[tokio::test]
async fn content_that_turns_out_to_be_empty_is_announced_as_such() {
    let application = Application::that_sends(DONE, Then::Continue).await;
    let proxy = proxy_with(&[application.url()], |_| {}).await;
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        let upload = Upload::new();
        let ended = async { drop(upload.parts) };
        let uploading = request(&proxy, version, Method::POST, &[], upload.body);
        let (response, ()) = tokio::join!(uploading, ended);
        assert_eq!(whole(response.unwrap()).await.text, "done", "{version:?}");
        let seen = application.last_request();
        assert_eq!(
            field(&seen, "content-length"),
            Some("0"),
            "{version:?}: {seen}"
        );
        assert_eq!(
            field(&seen, "transfer-encoding"),
            None,
            "{version:?}: {seen}"
        );
    }
}

#[tokio::test]
async fn a_client_that_sends_content_after_the_response_gets_it() {
    let application = Application::that_sends(DONE, Then::Continue).await;
    let proxy = proxy_with(&[application.url()], |_| {}).await;
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        let upload = Upload::new();
        let response = request(&proxy, version, Method::POST, &[], upload.body).await;
        assert_eq!(response.unwrap().status(), StatusCode::OK, "{version:?}");
        let seen = application.last_request();
        assert_eq!(
            field(&seen, "transfer-encoding"),
            Some("chunked"),
            "{version:?}: {seen}"
        );
        drop(upload.parts);
    }
}

#[tokio::test]
async fn a_request_whose_content_was_received_can_be_sent_again() {
    let broken = Application::with(Arc::new(|mut stream, header| {
        Box::pin(async move {
            let length = field(&header, "content-length")?.parse().ok()?;
            let mut content = vec![0; length];
            stream.read_exact(&mut content).await.ok()?;
            None
        })
    }))
    .await;
    let works = reads(7, 7, Arc::default()).await;
    let urls = [broken.url(), works.url()];
    let buffering = proxy_with(&urls, |config| config.buffer_uploads = Some(1000)).await;
    let streaming = proxy_with(&urls, |_| {}).await;
    let put = async |proxy: &TestServer, method| {
        let body = Body::full("content");
        let response = request(proxy, VERSIONS[3], method, &[("content-length", "7")], body);
        response.await.unwrap().status()
    };
    for _ in 0..4 {
        assert_eq!(put(&buffering, Method::PUT).await, StatusCode::OK);
    }
    // What is not idempotent is sent once, and so is content that is not kept.
    for (proxy, method) in [(&buffering, Method::POST), (&streaming, Method::PUT)] {
        let statuses = [put(proxy, method.clone()).await, put(proxy, method).await];
        assert!(statuses.contains(&StatusCode::BAD_GATEWAY), "{statuses:?}");
    }
}

#[tokio::test]
async fn of_larger_content_the_rest_follows_as_it_arrives() {
    let arrived = Arc::new(Notify::new());
    let application = reads(3000, 2000, Arc::clone(&arrived)).await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.buffer_uploads = Some(1500);
    })
    .await;
    for version in VERSIONS {
        let upload = Upload::new();
        let headers = [("content-length", "3000")];
        let uploading = request(&proxy, version, Method::POST, &headers, upload.body);
        let sending = async {
            upload.parts.send(vec![1; 2000].into()).unwrap();
            arrived.notified().await;
            upload.parts.send(vec![2; 1000].into()).unwrap();
            drop(upload.parts);
        };
        let (response, ()) = tokio::join!(uploading, sending);
        assert_eq!(whole(response.unwrap()).await.text, "done", "{version:?}");
    }
}

#[tokio::test]
async fn content_beyond_the_budget_of_the_server_is_passed_on_as_it_arrives() {
    const LENGTH: usize = 400_000;
    const FIRST: usize = 300_000;
    let arrived = Arc::new(Notify::new());
    let application = reads(LENGTH, FIRST, Arc::clone(&arrived)).await;
    let mut config = ProxyConfig::to(vec![application.url().parse().unwrap()]);
    config.buffer_uploads = Some(1 << 20);
    let metrics = Arc::<UpstreamMetrics>::default();
    let site = reverse_proxy(config, &metrics).unwrap();
    let proxy = TestServer::with(site, |server| server.limits.max_buffered_bytes = 128 << 10).await;
    for version in VERSIONS {
        let upload = Upload::new();
        let length = LENGTH.to_string();
        let headers = [("content-length", &*length)];
        let uploading = request(&proxy, version, Method::POST, &headers, upload.body);
        let sending = async {
            upload.parts.send(vec![1; FIRST].into()).unwrap();
            arrived.notified().await;
            upload.parts.send(vec![2; LENGTH - FIRST].into()).unwrap();
            drop(upload.parts);
        };
        let (response, ()) = tokio::join!(uploading, sending);
        assert_eq!(whole(response.unwrap()).await.text, "done", "{version:?}");
    }
}

#[tokio::test]
async fn content_that_is_too_large_is_413_and_reaches_no_application() {
    let application = Application::that_sends(DONE, Then::Continue).await;
    let mut config = ProxyConfig::to(vec![application.url().parse().unwrap()]);
    config.buffer_uploads = Some(1000);
    let site = reverse_proxy(config, &UpstreamMetrics::default()).unwrap();
    let limited = service_fn(move |request: Request<Body>| {
        let request = request.map(|body| Body::new(Limited::new(body, 10)));
        site.clone().oneshot(request)
    });
    let proxy = TestServer::site(BoxCloneSyncService::new(limited)).await;
    for version in VERSIONS {
        let upload = Upload::new();
        upload.parts.send(vec![1; 20].into()).unwrap();
        drop(upload.parts);
        let response = request(&proxy, version, Method::POST, &[], upload.body);
        let status = response.await.unwrap().status();
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{version:?}");
    }
    assert_eq!(application.connections.load(SeqCst), 0);
}

#[tokio::test]
async fn a_client_that_waits_before_its_content_is_asked_for_it() {
    let application = reads(7, 7, Arc::default()).await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.buffer_uploads = Some(1000);
    })
    .await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut interim)).await;
    read.unwrap().unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(application.connections.load(SeqCst), 0);
    stream.write_all(b"content").await.unwrap();
    let mut status = [0; 13];
    let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut status)).await;
    read.unwrap().unwrap();
    assert_eq!(&status, b"HTTP/1.1 200 ");
    assert_eq!(field(&application.last_request(), "expect"), None);
}

#[tokio::test]
async fn requests_without_content_and_websockets_are_not_held() {
    let application = super::tunnels::echo().await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.buffer_uploads = Some(1000);
    })
    .await;
    let (stream, header) = super::tunnels::upgrade(proxy.address).await;
    assert!(header.starts_with("HTTP/1.1 101 "), "{header}");
    super::tunnels::talk(stream).await;
    let works = Application::that_sends(DONE, Then::Continue).await;
    let proxy = proxy_with(&[works.url()], |config| config.buffer_uploads = Some(1000)).await;
    for version in VERSIONS {
        assert_eq!(get(&proxy, version).await.text, "done", "{version:?}");
        assert_eq!(field(&works.last_request(), "content-length"), None);
    }
}

#[tokio::test]
async fn content_that_is_empty_is_announced_to_applications() {
    let application = reads(0, 0, Arc::default()).await;
    let urls = [application.url()];
    let streaming = proxy_with(&urls, |_| {}).await;
    let holding = proxy_with(&urls, |config| config.buffer_uploads = Some(1000)).await;
    let post = async |proxy: &TestServer, version, body| {
        let response = request(proxy, version, Method::POST, &[], body).await;
        whole(response.unwrap()).await.text
    };
    for version in VERSIONS {
        // It ends without a part, as that of a chunked request can.
        let ended = Upload::new();
        drop(ended.parts);
        assert_eq!(
            post(&holding, version, ended.body).await,
            "done",
            "{version:?}"
        );
        assert_eq!(
            post(&holding, version, Body::empty()).await,
            "done",
            "{version:?}"
        );
        // Over HTTP/3, the end of the stream may follow later.
        if version != VERSIONS[3] {
            assert_eq!(
                post(&streaming, version, Body::empty()).await,
                "done",
                "{version:?}"
            );
        }
    }
}
