//! The gateway: local programs over HTTP without TLS, the origin over HTTP/3.

use std::net::SocketAddr;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client as LocalClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use marline_http::Body;
use marline_http::client::{Client, ClientConfig, Trust};
use marline_http::proxy::{GatewayConfig, gateway};
use marline_http::server::{Server, ServerConfig};

use super::application::{Application, Then, field};
use super::tunnels::{echo, talk, upgrade};
use super::{LIMIT, proxy};
use crate::common::pattern;

/// A gateway to `origin`.
async fn gateway_to(origin: String) -> SocketAddr {
    let config = ClientConfig {
        trust: Trust::Insecure,
        fallback: true,
        ..ClientConfig::default()
    };
    let client = Client::new(config).unwrap();
    let site = gateway(client, &GatewayConfig::to(origin)).unwrap();
    let config = ServerConfig::cleartext(([127, 0, 0, 1], 0).into(), site);
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    address
}

/// A program unaware of the gateway, over HTTP/1.1 or HTTP/2.
pub(super) async fn fetch(http2: bool, request: Request<Body>) -> Response<Vec<u8>> {
    let client: LocalClient<HttpConnector, Body> = LocalClient::builder(TokioExecutor::new())
        .http2_only(http2)
        .build_http();
    let response = tokio::time::timeout(LIMIT, client.request(request)).await;
    let (parts, body) = response.unwrap().unwrap().into_parts();
    let content = tokio::time::timeout(LIMIT, body.collect()).await.unwrap();
    let content = content.unwrap().to_bytes().to_vec();
    Response::from_parts(parts, content)
}

pub(super) fn get(address: SocketAddr, path: &str) -> Request<Body> {
    let uri = format!("http://{address}{path}");
    Request::get(uri).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn programs_get_the_responses_of_the_origin() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nAlt-Svc: h3=\":1\"\r\n\r\nhello";
    let application = Application::that_sends(answer, Then::Continue).await;
    let origin = proxy(&[application.url()]).await;
    let gateway = gateway_to(format!("https://{}", origin.address)).await;
    for http2 in [false, true] {
        let got = fetch(http2, get(gateway, "/a?b")).await;
        assert_eq!(
            (got.status(), &**got.body()),
            (StatusCode::OK, &b"hello"[..])
        );
        assert!(!got.headers().contains_key("alt-svc"));
        assert_eq!(got.headers()["via"], "1.1 marline");
        let seen = application.last_request();
        assert!(seen.starts_with("GET /a?b HTTP/1.1"), "{seen}");
        let host = origin.address.to_string();
        assert_eq!(field(&seen, "host"), Some(&*host));
    }
}

#[tokio::test]
async fn uploads_reach_the_origin() {
    let application = Application::with(std::sync::Arc::new(|mut stream, header| {
        Box::pin(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let length: usize = field(&header, "content-length")?.parse().ok()?;
            let mut content = vec![0; length];
            stream.read_exact(&mut content).await.ok()?;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.ok()?;
            stream.write_all(&content).await.ok()?;
            Some(stream)
        })
    }))
    .await;
    let origin = proxy(&[application.url()]).await;
    let gateway = gateway_to(format!("https://{}", origin.address)).await;
    let content = pattern(3_000_000);
    for http2 in [false, true] {
        let request = Request::post(format!("http://{gateway}/"))
            .header("content-length", content.len())
            .body(Body::full(content.clone()))
            .unwrap();
        let got = fetch(http2, request).await;
        assert!(*got.body() == content);
    }
}

#[tokio::test]
async fn redirects_to_the_origin_lead_back_to_the_gateway() {
    let origin = crate::common::TestServer::site(tower::util::BoxCloneSyncService::new(
        tower::service_fn(|request: Request<Body>| async move {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::FOUND;
            let to = match request.uri().path() {
                "/same" => format!("https://{}/next", request.uri().authority().unwrap()),
                _ => "https://example.org/".to_owned(),
            };
            response
                .headers_mut()
                .insert("location", to.parse().unwrap());
            Ok(response)
        }),
    ))
    .await;
    let gateway = gateway_to(format!("https://{}", origin.address)).await;
    let got = fetch(false, get(gateway, "/same")).await;
    assert_eq!(got.headers()["location"], "/next");
    let got = fetch(false, get(gateway, "/other")).await;
    assert_eq!(got.headers()["location"], "https://example.org/");
}

#[tokio::test]
async fn a_websocket_of_a_program_is_extended_connect_to_the_origin() {
    let application = echo().await;
    let origin = proxy(&[application.url()]).await;
    let gateway = gateway_to(format!("https://{}", origin.address)).await;
    let (stream, header) = upgrade(gateway).await;
    assert!(header.starts_with("HTTP/1.1 101 "), "{header}");
    let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    assert_eq!(field(&header, "sec-websocket-accept"), Some(accept));
    talk(stream).await;
}

#[tokio::test]
async fn an_origin_that_is_not_there_is_502_with_the_reason() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let gateway = gateway_to(format!("https://{address}")).await;
    let got = fetch(false, get(gateway, "/")).await;
    assert_eq!(got.status(), StatusCode::BAD_GATEWAY);
    let text = String::from_utf8_lossy(got.body()).into_owned();
    assert!(text.contains("cannot be reached: "), "{text}");
}

#[tokio::test]
async fn requests_for_hosts_that_are_not_the_gateway_are_421() {
    let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let application = Application::that_sends(hello, Then::Continue).await;
    let origin = proxy(&[application.url()]).await;
    let gateway = gateway_to(format!("https://localhost:{}", origin.address.port())).await;
    for (host, status) in [
        ("localhost:8080", 200),
        ("app.localhost", 200),
        ("[::1]:8080", 200),
        ("evil.example:8080", 421),
        ("localhost.evil.example", 421),
    ] {
        let mut request = get(gateway, "/");
        request.headers_mut().insert("host", host.parse().unwrap());
        let got = fetch(false, request).await;
        assert_eq!(got.status(), status, "{host}");
    }
}

#[tokio::test]
async fn a_websocket_to_an_origin_without_http3_is_refused() {
    let site =
        tower::util::BoxCloneSyncService::new(tower::service_fn(|_: Request<Body>| async move {
            Ok(Response::new(Body::empty()))
        }));
    let origin = crate::common::TestServer::with(site, |config| {
        config.protocols.http3 = false;
    })
    .await;
    let gateway = gateway_to(format!("https://{}", origin.address)).await;
    let (_, header) = upgrade(gateway).await;
    assert!(header.starts_with("HTTP/1.1 501 "), "{header}");
}
