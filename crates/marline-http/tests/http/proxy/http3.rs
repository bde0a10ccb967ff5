//! Applications that are reached over HTTP/3.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use marline::TransportConfig;
use marline_http::client::HttpVersion;
use marline_http::proxy::{ProxyConfig, UpstreamTls};
use marline_http::server::{Identity, Protocols, ServerConfig, Site, Tunnel};
use marline_http::{Body, BoxError, Interim};
use rustls::server::WebPkiClientVerifier;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use super::application::{Application, Then, field};
use super::secured::identities;
use super::tunnels::{talk, talk_over_http3, upgrade};
use super::{LIMIT, get, proxy_with, request, whole};
use crate::common::{TestServer, VERSIONS, pattern, until};
use crate::metrics::wait_for;

/// An application of HTTP/3, and the file of its certificate.
struct App {
    server: TestServer,
    files: TempDir,
    seen: Arc<Seen>,
}

/// The requests of an application.
struct Seen {
    heads: Mutex<Vec<http::request::Parts>>,
    count: AtomicUsize,
    /// A permit for each request for `x-do: wait` to be answered.
    answers: Semaphore,
}

impl App {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::named("127.0.0.1", change).await
    }

    /// One whose certificate has `name`.
    async fn named(name: &str, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let files = TempDir::new().unwrap();
        let identity = Identity::self_signed(vec![name.to_owned()]).unwrap();
        let ca = files.path().join("application.pem");
        std::fs::write(ca, identity.certificate_pem()).unwrap();
        let seen = Arc::new(Seen {
            heads: Mutex::default(),
            count: AtomicUsize::new(0),
            answers: Semaphore::new(0),
        });
        let server = TestServer::with(site(&seen), |config| {
            config.identity = Some(identity);
            config.protocols = Protocols {
                http1: false,
                http2: false,
                http3: true,
                cleartext: false,
                tunnels: true,
                http3_tunnels: false,
            };
            change(config);
        })
        .await;
        Self {
            server,
            files,
            seen,
        }
    }

    fn ca(&self) -> Option<PathBuf> {
        Some(self.files.path().join("application.pem"))
    }

    fn url(&self) -> String {
        format!("h3://{}", self.server.address)
    }

    fn trusting(&self) -> UpstreamTls {
        UpstreamTls {
            ca: self.ca(),
            ..UpstreamTls::default()
        }
    }

    async fn proxy(&self) -> TestServer {
        self.proxy_with(|_| {}).await
    }

    async fn proxy_with(&self, change: impl FnOnce(&mut ProxyConfig)) -> TestServer {
        proxy_with(&[self.url()], |config| {
            config.tls = self.trusting();
            change(config);
        })
        .await
    }

    fn connections(&self, count: usize) -> String {
        let url = self.url();
        format!("marline_upstream_connections_total{{upstream=\"{url}\",version=\"3\"}} {count}")
    }
}

fn site(seen: &Arc<Seen>) -> Site {
    let seen = Arc::clone(seen);
    BoxCloneSyncService::new(service_fn(move |request: Request<Body>| {
        let seen = Arc::clone(&seen);
        async move { Ok::<_, Infallible>(seen.answer(request).await) }
    }))
}

impl Seen {
    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        self.heads.lock().unwrap().push(parts.clone());
        self.count.fetch_add(1, SeqCst);
        if parts.extensions.get::<marline_h3::Protocol>().is_some() {
            let mut response = Response::new(body);
            response.extensions_mut().insert(Tunnel);
            return response;
        }
        let word = parts.headers.get("x-do").map(|word| word.to_str().unwrap());
        match word {
            Some("wait") => self.answers.acquire().await.unwrap().forget(),
            Some("hang") => pending().await,
            Some("hints") => {
                let mut hint = Response::new(());
                *hint.status_mut() = StatusCode::from_u16(103).unwrap();
                hint.headers_mut()
                    .insert("link", "</a.css>".parse().unwrap());
                parts.extensions.get::<Interim>().unwrap().send(hint);
            }
            _ => {}
        }
        match parts.method {
            // What arrives, with trailers after it.
            Method::POST => {
                let mut response = Response::new(body);
                response
                    .headers_mut()
                    .insert("trailer", "x-sum".parse().unwrap());
                response
            }
            _ => {
                let host = parts.uri.authority().unwrap();
                Response::new(Body::full(format!("{:?} {host}", parts.version)))
            }
        }
    }
}

fn insecure() -> UpstreamTls {
    UpstreamTls {
        insecure: true,
        ..UpstreamTls::default()
    }
}

fn ask(word: &str) -> [(&str, &str); 1] {
    [("x-do", word)]
}

#[tokio::test]
async fn an_application_of_http3_is_reached_by_one_connection_that_requests_share() {
    let app = App::new().await;
    let proxy = app.proxy().await;
    for client in VERSIONS {
        let text = get(&proxy, client).await.text;
        assert_eq!(text, format!("HTTP/3.0 {}", proxy.address), "{client:?}");
    }
    wait_for(&proxy, &app.connections(1)).await;
    let own = app.proxy_with(|config| config.preserve_host = false).await;
    let text = get(&own, VERSIONS[3]).await.text;
    assert_eq!(text, format!("HTTP/3.0 {}", app.server.address));
}

#[tokio::test]
async fn the_certificate_of_an_application_of_http3_is_verified() {
    let app = App::named("app.example.org", |_| {}).await;
    let other = App::new().await;
    for tls in [app.trusting(), other.trusting()] {
        let proxy = app.proxy_with(|config| config.tls = tls).await;
        let answer = get(&proxy, VERSIONS[3]).await;
        assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{}", answer.text);
        let expected = "marline; error=tls_certificate_error";
        assert_eq!(answer.headers["proxy-status"], expected);
        assert!(!answer.text.contains("app.example.org"), "{}", answer.text);
    }
    for tls in [
        UpstreamTls {
            name: Some("app.example.org".parse().unwrap()),
            ..app.trusting()
        },
        insecure(),
    ] {
        let proxy = app.proxy_with(|config| config.tls = tls).await;
        assert_eq!(get(&proxy, VERSIONS[3]).await.status, StatusCode::OK);
    }
}

/// An endpoint for connections of HTTP/3 that a test handles, with the certificate `own`; clients have to present `client`.
fn endpoint(own: &Identity, client: Option<&Identity>) -> marline::Endpoint {
    let provider = Arc::new(marline::default_crypto_provider());
    let tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let tls = match client {
        None => tls.with_no_client_auth(),
        Some(client) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(client.chain()[0].clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            tls.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let key = rustls::pki_types::pem::PemObject::from_pem_slice(own.key_pem().as_bytes());
    let mut tls = tls
        .with_single_cert(own.chain().to_vec(), key.unwrap())
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = marline::TlsServerConfig::new(Arc::new(tls)).unwrap();
    let config = marline::ServerConfig::new(tls);
    marline::Endpoint::server(config, ([127, 0, 0, 1], 0).into()).unwrap()
}

#[tokio::test]
async fn an_application_over_quic_gets_the_certificate_of_the_proxy_and_the_name() {
    let files = TempDir::new().unwrap();
    let (own, client) = identities(files.path(), "app.example.org");
    let endpoint = endpoint(&own, Some(&client));
    let url = format!("h3://{}", endpoint.local_addr());
    let proxy = proxy_with(&[url], |config| {
        config.retries = 0;
        config.tls = UpstreamTls {
            ca: Some(files.path().join("application.pem")),
            cert: Some(files.path().join("client.pem")),
            key: Some(files.path().join("client.key")),
            name: Some("app.example.org".parse().unwrap()),
            ..UpstreamTls::default()
        };
    })
    .await;
    let accepted = async {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let chain = connection.peer_certificates().unwrap();
        assert_eq!(chain[0], client.chain()[0]);
        assert_eq!(connection.server_name().as_deref(), Some("app.example.org"));
        connection.close(0x102, b"");
    };
    let (answer, ()) = tokio::join!(get(&proxy, VERSIONS[3]), accepted);
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn content_passes_in_both_directions_at_once_with_trailers() {
    let app = App::new().await;
    let proxy = app.proxy().await;
    for version in VERSIONS {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
        let sent = pattern(300_000);
        let frames =
            futures_util::stream::unfold((receiver, false), |(mut receiver, over)| async move {
                if over {
                    return None;
                }
                let frame = match receiver.recv().await {
                    Some(data) => (Frame::data(data), false),
                    None => {
                        let mut trailers = HeaderMap::new();
                        trailers.insert("x-sum", "7".parse().unwrap());
                        (Frame::trailers(trailers), true)
                    }
                };
                Some((Ok::<_, BoxError>(frame.0), (receiver, frame.1)))
            });
        let headers = [("te", "trailers"), ("trailer", "x-sum")];
        let body = Body::new(StreamBody::new(frames));
        let response = request(&proxy, version, Method::POST, &headers, body);
        sender.send(Bytes::from_static(b"first")).unwrap();
        let mut body = response.await.unwrap().into_body();
        let first = tokio::time::timeout(LIMIT, body.chunk()).await.unwrap();
        assert_eq!(first.unwrap().unwrap(), "first", "{version:?}");
        // The rest is sent after the response has begun.
        sender.send(sent.clone().into()).unwrap();
        drop(sender);
        let rest = tokio::time::timeout(LIMIT, body.collect()).await.unwrap();
        let rest = rest.unwrap();
        let trailers = rest.trailers().cloned().unwrap_or_default();
        assert_eq!(trailers.get("x-sum").unwrap(), "7", "{version:?}");
        assert!(rest.to_bytes() == sent, "{version:?}");
    }
}

#[tokio::test]
async fn early_hints_of_an_application_of_http3_are_passed_on() {
    let app = App::new().await;
    let proxy = app.proxy().await;
    let url = proxy.url(HttpVersion::Http3, "/");
    let client = crate::common::client(HttpVersion::Http3);
    let origin = marline_http::client::parse_url(&url, HttpVersion::Http3)
        .unwrap()
        .origin;
    let connection = client.connect(&origin).await.unwrap();
    let mut hinting = Request::new(Body::empty());
    *hinting.uri_mut() = url.parse().unwrap();
    hinting
        .headers_mut()
        .insert("x-do", "hints".parse().unwrap());
    let links = Arc::<Mutex<Vec<String>>>::default();
    let taken = Arc::clone(&links);
    hinting.extensions_mut().insert(Interim::new(move |hint| {
        let link = hint.headers()["link"].to_str().unwrap().to_owned();
        taken.lock().unwrap().push(link);
    }));
    let response = connection.request(&origin, hinting).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(*links.lock().unwrap(), ["</a.css>"]);
}

#[tokio::test]
async fn a_websocket_is_one_of_extended_connect_at_an_application_of_http3() {
    let app = App::new().await;
    let proxy = app.proxy().await;
    let (stream, header) = upgrade(proxy.address).await;
    assert!(header.starts_with("HTTP/1.1 101 "), "{header}");
    let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    assert_eq!(field(&header, "sec-websocket-accept"), Some(accept));
    talk(stream).await;
    talk_over_http3(&proxy).await;
    let heads = app.seen.heads.lock().unwrap();
    for head in &*heads {
        assert_eq!(
            (&head.method, head.version),
            (&Method::CONNECT, Version::HTTP_3)
        );
        assert_eq!(head.uri.path_and_query().unwrap(), "/path?query");
        for name in ["sec-websocket-key", "upgrade", "connection"] {
            assert!(!head.headers.contains_key(name), "{name}");
        }
    }
}

#[tokio::test]
async fn an_application_of_http3_without_extended_connect_gets_no_websocket() {
    let app = App::with(|config| config.protocols.tunnels = false).await;
    let proxy = app.proxy().await;
    let (_, header) = upgrade(proxy.address).await;
    assert!(header.starts_with("HTTP/1.1 501 "), "{header}");
}

#[tokio::test]
async fn requests_beyond_the_stream_limit_of_an_application_have_more_connections() {
    let app = App::with(|config| {
        config.quic.transport = Arc::new(TransportConfig {
            max_concurrent_bidi_streams: 2,
            ..TransportConfig::default()
        });
    })
    .await;
    let proxy = app.proxy().await;
    let asking = (0..5).map(|_| {
        let asked = ask("wait");
        let proxy = &proxy;
        async move {
            let response = request(proxy, VERSIONS[3], Method::GET, &asked, Body::empty());
            whole(response.await.unwrap()).await.status
        }
    });
    let answering = async {
        until("five requests at once", || app.seen.count.load(SeqCst) == 5).await;
        app.seen.answers.add_permits(5);
    };
    let (statuses, ()) = tokio::join!(futures_util::future::join_all(asking), answering);
    assert_eq!(statuses, [StatusCode::OK; 5]);
    wait_for(&proxy, &app.connections(3)).await;
}

/// SETTINGS without a setting, on a control stream (RFC 9114, sections 6.2.1 and 7.2.4).
const CONTROL: &[u8] = &[0, 4, 0];

/// GOAWAY: no request was processed.
const GOAWAY: &[u8] = &[7, 1, 0];

/// HEADERS with the status 200, from the static table of QPACK.
const OK: &[u8] = &[1, 3, 0, 0, 0xd9];

#[tokio::test]
async fn a_request_that_an_application_has_not_processed_is_sent_on_a_new_connection() {
    for goes_away in [true, false] {
        let identity = Identity::self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let endpoint = endpoint(&identity, None);
        let url = format!("h3://{}", endpoint.local_addr());
        let application = tokio::spawn(async move {
            let first = endpoint.accept().await.unwrap().await.unwrap();
            let mut control = first.open_uni().await.unwrap();
            control.write_all(CONTROL).await.unwrap();
            let (mut answer, mut request) = first.accept_bi().await.unwrap();
            request.read_chunk(1 << 16).await.unwrap();
            if goes_away {
                control.write_all(GOAWAY).await.unwrap();
            } else {
                answer.reset(marline_h3::ErrorCode::REQUEST_REJECTED.value());
            }
            let second = async {
                let second = endpoint.accept().await.unwrap().await.unwrap();
                let mut control = second.open_uni().await.unwrap();
                control.write_all(CONTROL).await.unwrap();
                let (answer, _request) = second.accept_bi().await.unwrap();
                (answer, second, control)
            };
            let (mut answer, _second, _control) = match goes_away {
                true => second.await,
                false => {
                    let (answer, _request) = first.accept_bi().await.unwrap();
                    (answer, first.clone(), first.open_uni().await.unwrap())
                }
            };
            answer.write_all(OK).await.unwrap();
            answer.finish().unwrap();
            pending::<()>().await;
        });
        let proxy = proxy_with(&[url], |config| config.tls = insecure()).await;
        let answer = request(&proxy, VERSIONS[0], Method::POST, &[], Body::empty()).await;
        assert_eq!(answer.unwrap().status(), StatusCode::OK, "{goes_away}");
        application.abort();
    }
}

#[tokio::test]
async fn no_request_fails_while_an_application_goes_away() {
    let (leaves, stays) = (App::new().await, App::new().await);
    let proxy = proxy_with(&[leaves.url(), stays.url()], |config| {
        config.tls = insecure();
    })
    .await;
    for _ in 0..2 {
        assert_eq!(get(&proxy, VERSIONS[3]).await.status, StatusCode::OK);
    }
    let asked = ask("wait");
    let waiting = async {
        let first = request(&proxy, VERSIONS[3], Method::GET, &asked, Body::empty());
        first.await.unwrap().status()
    };
    let leaving = async {
        let seen = |app: &App| app.seen.count.load(SeqCst);
        until("a request that waits", || seen(&leaves) + seen(&stays) == 3).await;
        leaves.server.handle.shut_down();
        for _ in 0..8 {
            let response = request(&proxy, VERSIONS[3], Method::POST, &[], Body::full("new"));
            assert_eq!(whole(response.await.unwrap()).await.text, "new");
        }
        leaves.seen.answers.add_permits(1);
        stays.seen.answers.add_permits(1);
    };
    let (status, ()) = tokio::join!(waiting, leaving);
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn an_application_of_http3_that_no_longer_answers_is_passed_over() {
    // A socket that takes packets, and answers none, stands for a host that has failed.
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("h3://{}", silent.local_addr().unwrap());
    let works = App::new().await;
    let proxy = proxy_with(&[silent.clone(), works.url()], |config| {
        config.tls = works.trusting();
        config.connect_timeout = Duration::from_millis(300);
    })
    .await;
    for _ in 0..4 {
        assert_eq!(get(&proxy, VERSIONS[3]).await.status, StatusCode::OK);
    }
    let unhealthy = format!("marline_upstream_healthy{{upstream=\"{silent}\"}} 0");
    wait_for(&proxy, &unhealthy).await;
}

#[tokio::test]
async fn an_application_of_http3_that_is_not_there_is_not_waited_for_each_time() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("h3://{}", silent.local_addr().unwrap());
    let proxy = proxy_with(&[silent], |config| {
        config.tls = insecure();
        config.connect_timeout = Duration::from_secs(3600);
        config.fail_time = Duration::from_secs(3600);
    })
    .await;
    let wait = async || {
        let answer = get(&proxy, VERSIONS[3]).await;
        assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
        let (_, text) = answer.text.split_once("no answer within ").unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let first = wait().await;
    // Those that wait together wait for one handshake.
    let (second, third, fourth) = tokio::join!(wait(), wait(), wait());
    assert!(first < 4.0 && second < first / 2.0, "{first} {second}");
    assert_eq!([third, fourth], [second; 2]);
}

/// The address of a relay of datagrams to `to`, until `ends`.
async fn relay(to: SocketAddr, ends: Arc<AtomicBool>) -> SocketAddr {
    let relay = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = relay.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut datagram, mut client) = ([0; 2048], to);
        while let Ok((length, from)) = relay.recv_from(&mut datagram).await {
            if from != to {
                client = from;
            }
            let next = if from == to { client } else { to };
            if !ends.load(SeqCst) {
                relay.send_to(&datagram[..length], next).await.unwrap();
            }
        }
    });
    address
}

#[tokio::test]
async fn a_request_on_a_connection_that_has_become_silent_is_sent_to_another_application() {
    let (fails, works) = (App::new().await, App::new().await);
    let ends = Arc::new(AtomicBool::new(false));
    let relay = relay(fails.server.address, Arc::clone(&ends)).await;
    let failing = format!("h3://{relay}");
    let proxy = proxy_with(&[failing.clone(), works.url()], |config| {
        config.tls = insecure();
        config.keep_alive = LIMIT;
    })
    .await;
    for _ in 0..2 {
        assert_eq!(get(&proxy, VERSIONS[3]).await.status, StatusCode::OK);
    }
    assert_eq!(fails.seen.count.load(SeqCst), 1);
    ends.store(true, SeqCst);
    for _ in 0..4 {
        assert_eq!(get(&proxy, VERSIONS[3]).await.status, StatusCode::OK);
    }
    let unhealthy = format!("marline_upstream_healthy{{upstream=\"{failing}\"}} 0");
    wait_for(&proxy, &unhealthy).await;
    assert_eq!(fails.seen.count.load(SeqCst), 1);
}

#[tokio::test]
async fn an_application_of_http3_and_one_of_http1_share_requests() {
    let app = App::new().await;
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none";
    let other = Application::that_sends(answer, Then::Continue).await;
    let proxy = proxy_with(&[app.url(), other.url()], |config| {
        config.tls = app.trusting();
        config.health_path = Some("/health".parse().unwrap());
        config.health_interval = LIMIT;
    })
    .await;
    let mut texts = Vec::new();
    for _ in 0..4 {
        texts.push(get(&proxy, VERSIONS[3]).await.text);
    }
    assert_eq!(texts.iter().filter(|text| *text == "one").count(), 2);
    let checked = || {
        let heads = app.seen.heads.lock().unwrap();
        heads.iter().any(|head| head.uri.path() == "/health")
    };
    until("a check of its health", checked).await;
}
