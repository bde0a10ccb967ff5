//! HTTP datagrams of extended CONNECT (RFC 9297).

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use marline::{SendDatagramError, TransportConfig};
use marline_h3::Protocol;
use marline_http::Body;
use marline_http::client::{Client, Connection, Download, HttpVersion, parse_url};
use marline_http::http3::Datagrams;
use marline_http::server::{Site, Tunnel};
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use crate::common::{TestServer, client_with};

/// Content that does not end.
struct Nothing;

impl http_body::Body for Nothing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// Sends each datagram back with the path of its request before it, until the client ends the request.
fn echo() -> Site {
    BoxCloneSyncService::new(service_fn(|request: Request<Body>| async move {
        let Some(datagrams) = request.extensions().get::<Datagrams>().cloned() else {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
            return Ok::<_, Infallible>(response);
        };
        let path = request.uri().path().to_owned();
        tokio::spawn(async move {
            while let Some(datagram) = datagrams.recv().await {
                let answer = [path.as_bytes(), &datagram].concat();
                let _ = datagrams.send(&answer).await;
            }
        });
        let mut response = Response::new(Body::new(Nothing));
        response.extensions_mut().insert(Tunnel);
        Ok(response)
    }))
}

struct Pair {
    server: TestServer,
    connection: Connection,
    _client: Arc<Client>,
}

impl Pair {
    async fn new(datagrams: bool) -> Self {
        let mut transport = TransportConfig::default();
        // Sizes stay as they are.
        transport.mtu.discover = false;
        let transport = Arc::new(transport);
        let server = TestServer::with(echo(), |config| {
            config.protocols.tunnels = true;
            config.quic.transport = Arc::clone(&transport);
        })
        .await;
        let client = client_with(|config| {
            config.datagrams = datagrams;
            config.quic.transport = transport;
        });
        let url = server.url(HttpVersion::Http3, "/");
        let origin = parse_url(&url, HttpVersion::Http3).unwrap().origin;
        let connection = client.connect(&origin).await.unwrap();
        Self {
            server,
            connection,
            _client: client,
        }
    }

    async fn ask(&self, path: &str) -> Response<Download> {
        let url = self.server.url(HttpVersion::Http3, path);
        let origin = parse_url(&url, HttpVersion::Http3).unwrap().origin;
        let mut request = Request::new(Body::new(Nothing));
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = url.parse().unwrap();
        let protocol = Protocol::new("connect-test").unwrap();
        request.extensions_mut().insert(protocol);
        self.connection.request(&origin, request).await.unwrap()
    }
}

fn datagrams(response: &Response<Download>) -> Datagrams {
    response.extensions().get::<Datagrams>().unwrap().clone()
}

#[tokio::test]
async fn datagrams_belong_to_their_request() {
    let pair = Pair::new(true).await;
    let (a, b) = (pair.ask("/a").await, pair.ask("/b").await);
    let (a, b) = (datagrams(&a), datagrams(&b));
    b.send(b"1").await.unwrap();
    a.send(b"2").await.unwrap();
    assert_eq!(a.recv().await.unwrap(), "/a2");
    assert_eq!(b.recv().await.unwrap(), "/b1");
}

#[tokio::test]
async fn the_largest_datagram_arrives_and_a_larger_one_is_refused() {
    let pair = Pair::new(true).await;
    let response = pair.ask("/").await;
    let datagrams = datagrams(&response);
    // That of the answer is longer by the path.
    let max = datagrams.max_len().unwrap();
    let datagram = vec![7; max - 1];
    datagrams.send(&datagram).await.unwrap();
    assert_eq!(datagrams.recv().await.unwrap()[1..], datagram);
    let refused = datagrams.send(&vec![7; max + 1]).await;
    assert!(matches!(refused, Err(SendDatagramError::TooLarge { .. })));
}

#[tokio::test]
async fn there_are_none_unless_both_ends_accept_them() {
    let pair = Pair::new(false).await;
    let response = pair.ask("/").await;
    assert!(response.extensions().get::<Datagrams>().is_none());
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn they_end_with_their_request() {
    let pair = Pair::new(true).await;
    let response = pair.ask("/a").await;
    let of_request = datagrams(&response);
    drop(response);
    // The task that sends its content ends on its own.
    while of_request.recv().await.is_some() {}
    // Others of the connection go on.
    let other = pair.ask("/b").await;
    let other = datagrams(&other);
    other.send(b"1").await.unwrap();
    assert_eq!(other.recv().await.unwrap(), "/b1");
}
