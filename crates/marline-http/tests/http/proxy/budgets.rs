//! Clients that hold memory and places of a proxy, and the share left for others.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use marline::TransportConfig;
use marline_http::Body;
use marline_http::client::{Client, ClientConfig, HttpVersion, Trust, parse_url};
use marline_http::proxy::{
    ForwardConfig, GatewayConfig, ProxyConfig, UpstreamMetrics, forward_proxy, gateway,
    reverse_proxy,
};
use marline_http::server::Site;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::application::{Application, field};
use super::{LIMIT, proxy_with};
use crate::budgets::{connect_from, metric};
use crate::common::{TestServer, VERSIONS, client_with};

/// The bytes that may be held in these tests: a network alone gets half of it.
const BUDGET: u64 = 1 << 20;
const SHARE: u64 = BUDGET / 2;

/// Content that a neighbour reads.
const NEIGHBOURLY: usize = 300_000;

/// An application that answers a neighbour, opens WebSockets, reads no content, and sends more than clients read to all
/// others, in parts of `part` bytes.
async fn torrent(part: usize) -> Application {
    Application::with(Arc::new(move |mut stream, header| {
        Box::pin(async move {
            if header.starts_with("GET /neighbour ") {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {NEIGHBOURLY}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.ok()?;
                stream.write_all(&[7; NEIGHBOURLY]).await.ok()?;
                return Some(stream);
            }
            if header.starts_with("POST ") {
                return std::future::pending().await;
            }
            let head = match field(&header, "upgrade") {
                Some(_) => {
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                     Connection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"
                }
                None => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            };
            stream.write_all(head.as_bytes()).await.ok()?;
            let chunk = format!("{part:x}\r\n{}\r\n", "x".repeat(part)).repeat(100_000 / part);
            while stream.write_all(chunk.as_bytes()).await.is_ok() {}
            None
        })
    }))
    .await
}

async fn limited(site: Site) -> TestServer {
    TestServer::with(site, |config| {
        config.limits.max_buffered_bytes = BUDGET;
        config.protocols.tunnels = true;
    })
    .await
}

async fn proxy_to(application: &Application) -> TestServer {
    let mut config = ProxyConfig::to(vec![application.url().parse().unwrap()]);
    // Over HTTP/1.1, nothing else shows that a client whose content is not read has disconnected.
    config.response_timeout = Duration::from_secs(5);
    config.idle_timeout = config.response_timeout;
    limited(reverse_proxy(config, &UpstreamMetrics::default()).unwrap()).await
}

fn held(server: &TestServer) -> u64 {
    metric(server, "marline_buffered_bytes")
}

/// The clients of one network hold all that they may and no more, a neighbour is served, and the resources are released
/// when `clients` disconnect.
async fn assert_is_shared<C>(server: &TestServer, clients: C, what: &str) {
    let used_up = async {
        while held(server) < SHARE - 100_000 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let used_up = tokio::time::timeout(LIMIT, used_up).await;
    assert!(used_up.is_ok(), "{what}: only {} are held", held(server));
    for _ in 0..20 {
        assert!(held(server) <= SHARE, "{what}: {} are held", held(server));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    neighbour_is_served(server, what).await;
    drop(clients);
    let given_back = async {
        while held(server) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let given_back = tokio::time::timeout(Duration::from_secs(120), given_back).await;
    assert!(given_back.is_ok(), "{what}: {} are held", held(server));
}

/// A client of another network gets a whole response.
async fn neighbour_is_served(server: &TestServer, what: &str) {
    let mut stream = connect_from(server, [127, 0, 9, 1]).await;
    let head = "GET /neighbour HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    let read = tokio::time::timeout(LIMIT, stream.read_to_end(&mut response)).await;
    assert!(read.is_ok(), "{what}: the neighbour waits");
    let end = String::from_utf8_lossy(&response[..response.len().min(200)]);
    assert!(end.starts_with("HTTP/1.1 200 "), "{what}: {end}");
    assert!(response.len() > NEIGHBOURLY, "{what}: {}", response.len());
}

/// Clients of one network that have sent `head` and read nothing.
async fn silent(server: &TestServer, count: usize, head: &str) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = connect_from(server, [127, 0, 0, 1]).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}

/// Requests in progress, until this is dropped.
struct Requests {
    client: Arc<Client>,
    tasks: JoinSet<()>,
}

/// Sends `count` requests whose responses are not read; those with content over connections of
/// their own.
async fn unread(
    server: &TestServer,
    version: HttpVersion,
    count: usize,
    content: Option<fn() -> Body>,
) -> Requests {
    let transport = TransportConfig {
        stream_receive_window: Some(2000),
        ..TransportConfig::default()
    };
    let client = client_with(|config| {
        config.version = version;
        config.quic.transport = transport.into();
    });
    let url = parse_url(&server.url(version, "/"), version).unwrap();
    let mut requests = Requests {
        client,
        tasks: JoinSet::new(),
    };
    let has_streams = matches!(version, HttpVersion::Http2 | HttpVersion::Http3);
    let is_shared = has_streams && content.is_none();
    let mut connection = None;
    for _ in 0..count {
        if connection.is_none() || !is_shared {
            connection = Some(Arc::new(
                requests.client.connect(&url.origin).await.unwrap(),
            ));
        }
        let mut request = Request::new(Body::empty());
        if let Some(content) = content {
            *request.method_mut() = Method::POST;
            *request.body_mut() = content();
        }
        *request.uri_mut() = url.uri.clone();
        let (connection, origin) = (connection.clone().unwrap(), url.origin.clone());
        requests.tasks.spawn(async move {
            let _response = connection.request(&origin, request).await;
            std::future::pending::<()>().await;
        });
    }
    requests
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_responses_are_in_the_budget_over_every_version() {
    let application = torrent(50_000).await;
    for version in VERSIONS {
        let server = proxy_to(&application).await;
        let clients = unread(&server, version, 100, None).await;
        assert_is_shared(&server, clients, &format!("{version:?}")).await;
    }
}

fn endless() -> Body {
    let frame = || Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(&[7; 16_000])));
    Body::new(StreamBody::new(stream::repeat_with(frame)))
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_no_application_reads_is_in_the_budget_over_every_version() {
    let application = torrent(1000).await;
    for version in VERSIONS {
        let server = proxy_to(&application).await;
        // They end one after the other, as each releases the bytes that the next one needs.
        let clients = unread(&server, version, 16, Some(endless)).await;
        assert_is_shared(&server, clients, &format!("{version:?}")).await;
    }
}

/// The content that the windows of connections allow, although the site reads nothing.
#[tokio::test(flavor = "multi_thread")]
async fn content_that_no_site_reads_is_in_the_budget() {
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        let site = Site::new(tower::service_fn(async |request: Request<Body>| {
            if request.method() == Method::POST {
                std::future::pending::<()>().await;
            }
            drop(request);
            Ok(Response::new(Body::full(vec![7; NEIGHBOURLY])))
        }));
        let server = limited(site).await;
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(unread(&server, version, 4, Some(endless)).await);
        }
        // Connections whose content exceeds the budget are closed.
        let open = || {
            let version = if version == HttpVersion::Http2 { 2 } else { 3 };
            let name = format!("marline_connections_open{{version=\"{version}\"}}");
            metric(&server, &name)
        };
        let used_up = async {
            while held(&server) < SHARE / 4 || open() == 16 {
                assert!(held(&server) <= SHARE, "{version:?}: {}", held(&server));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let used_up = tokio::time::timeout(LIMIT, used_up).await;
        assert!(
            used_up.is_ok(),
            "{version:?}: {} are held, {} open",
            held(&server),
            open()
        );
        neighbour_is_served(&server, &format!("{version:?}")).await;
        drop(clients);
    }
}

/// Over the one connection of HTTP/2 that a proxy has to an application.
#[tokio::test(flavor = "multi_thread")]
async fn unread_responses_leave_others_the_connection_to_an_application() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(async |request: Request<Incoming>| {
                let body = match request.uri().path() {
                    "/neighbour" => Body::full(vec![7; NEIGHBOURLY]),
                    _ => endless(),
                };
                Ok::<_, std::convert::Infallible>(Response::new(body))
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            tokio::spawn(async move {
                let serving = builder.serve_connection(TokioIo::new(stream), service);
                let _ = serving.await;
            });
        }
    });
    let server = proxy_with(&[format!("h2c://{address}")], |_| {}).await;
    let clients = unread(&server, HttpVersion::Http3, 100, None).await;
    let all_open = async {
        let name = format!("marline_upstream_in_flight{{upstream=\"h2c://{address}\"}}");
        while metric(&server, &name) < 100 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, all_open).await.unwrap();
    for _ in 0..3 {
        neighbour_is_served(&server, "h2c").await;
    }
    drop(clients);
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_websockets_are_in_the_budget() {
    let application = torrent(50_000).await;
    let server = proxy_to(&application).await;
    let head = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let clients = silent(&server, 60, head).await;
    assert_is_shared(&server, clients, "websockets").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_tunnels_and_responses_of_a_forward_proxy_are_in_the_budget() {
    let application = torrent(50_000).await;
    let target = application.address.to_string();
    let small = format!("GET http://{target}/neighbour HTTP/1.1\r\n");
    for head in [
        format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
        format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"),
    ] {
        let config = ForwardConfig {
            allowed: vec![target.parse().unwrap()],
            ..ForwardConfig::default()
        };
        let server = limited(forward_proxy(config)).await;
        let clients = silent(&server, 60, &head).await;
        let used_up = async {
            while held(&server) < SHARE - 100_000 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let used_up = tokio::time::timeout(LIMIT, used_up).await;
        assert!(used_up.is_ok(), "{head}: only {} are held", held(&server));
        assert!(held(&server) <= SHARE, "{head}: {} are held", held(&server));
        let mut stream = connect_from(&server, [127, 0, 9, 1]).await;
        let request = format!("{small}Host: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = vec![0; NEIGHBOURLY];
        let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut response)).await;
        read.expect("the neighbour is served").unwrap();
        assert!(response.starts_with(b"HTTP/1.1 200 "), "{head}");
        drop(clients);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_responses_of_a_gateway_are_in_the_budget() {
    let application = torrent(50_000).await;
    let origin = proxy_with(&[application.url()], |_| {}).await;
    // Each has connections of its own to the origin: the data in a client's windows is not held by the server.
    for version in [HttpVersion::Http11, HttpVersion::Http2, HttpVersion::Http3] {
        let client = Client::new(ClientConfig {
            trust: Trust::Insecure,
            version,
            fallback: false,
            ..ClientConfig::default()
        });
        let mut config = GatewayConfig::to(format!("https://{}", origin.address));
        config.connections = 64;
        let server = limited(gateway(client.unwrap(), &config).unwrap()).await;
        let clients = silent(&server, 40, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert_is_shared(&server, clients, &format!("{version:?}")).await;
    }
}

/// Content that never ends, from clients of `networks`, `each` from one.
async fn slow_posts(server: &TestServer, networks: u8, each: usize) -> Vec<TcpStream> {
    let mut slow = Vec::new();
    for network in 1..=networks {
        for _ in 0..each {
            let mut stream = connect_from(server, [127, 1, network, 1]).await;
            let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx";
            stream.write_all(head.as_bytes()).await.unwrap();
            slow.push(stream);
        }
    }
    slow
}

#[tokio::test]
async fn networks_that_hold_all_places_leave_some_for_another_one() {
    for networks in [4, 12] {
        let application = torrent(1000).await;
        let server = proxy_with(&[application.url()], |config| config.max_requests = 16).await;
        let slow = slow_posts(&server, networks, 16).await;
        let taken = || {
            let name = format!(
                "marline_upstream_in_flight{{upstream=\"{}\"}}",
                application.url()
            );
            metric(&server, &name)
        };
        let wanted = if networks > 4 { 16 } else { 15 };
        let all_taken = async {
            while taken() < wanted {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let all_taken = tokio::time::timeout(LIMIT, all_taken).await;
        assert!(all_taken.is_ok(), "{} places are taken", taken());
        for _ in 0..3 {
            neighbour_is_served(&server, &format!("{networks} networks")).await;
        }
        drop(slow);
    }
}

#[tokio::test]
async fn a_crowd_behind_one_address_waits_in_turn() {
    let application = Application::with(Arc::new(|mut stream, _| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            stream.write_all(answer).await.ok()?;
            Some(stream)
        })
    }))
    .await;
    let server = proxy_with(&[application.url()], |config| {
        config.max_requests = 8;
        config.connect_timeout = Duration::from_millis(100);
    })
    .await;
    let visitor = server.connect(HttpVersion::Http2).await;
    let requests = (0..200).map(|_| visitor.send(Method::GET, "/", &[]));
    let responses = futures_util::future::join_all(requests).await;
    for response in responses {
        assert_eq!(response.status(), StatusCode::OK);
    }
}
