//! Proxies and load balancers in front of the server, which report its clients.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use marline_http::Body;
use marline_http::server::{AccessLog, ClientAddress, ServerConfig, Site, TrustedProxies};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{TestServer, VERSIONS};
use crate::log::Lines;

/// A site that answers with the address of the client.
fn addresses() -> Site {
    Site::new(tower::service_fn(async |request: Request<Body>| {
        let client = request.extensions().get::<ClientAddress>();
        let text = client.map(|client| client.get().to_string());
        Ok::<_, Infallible>(Response::new(Body::new(Full::new(Bytes::from(
            text.unwrap_or_default(),
        )))))
    }))
}

fn trust_this_machine(config: &mut ServerConfig) {
    config.trusted = TrustedProxies {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..TrustedProxies::default()
    };
}

#[tokio::test]
async fn the_client_that_a_trusted_proxy_reports_is_answered_and_logged() {
    let lines = Lines::default();
    let server = TestServer::with(addresses(), |config| {
        trust_this_machine(config);
        config.access_log = Some(AccessLog::new(lines.clone()));
    })
    .await;
    for (index, version) in VERSIONS.into_iter().enumerate() {
        let visitor = server.connect(version).await;
        let reported = [("x-forwarded-for", "203.0.113.7, 192.0.2.1")];
        let (_, client) = visitor.get("/", &reported).await;
        assert_eq!(client, b"192.0.2.1:0", "{version:?}");
        let logged = lines.wait(index + 1).await;
        assert_eq!(logged[index]["client"], "192.0.2.1:0");
    }
}

#[tokio::test]
async fn others_report_nothing() {
    let server = TestServer::site(addresses()).await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let (_, client) = visitor.get("/", &[("x-forwarded-for", "192.0.2.1")]).await;
        let client = String::from_utf8(client).unwrap();
        assert!(client.starts_with("127.0.0.1:"), "{version:?}: {client}");
    }
}

/// The response to a request without TLS on a connection that begins with `header`; empty if the server closes it.
async fn after(server: &TestServer, header: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let begin = format!("{header}{request}");
    stream.write_all(begin.as_bytes()).await.unwrap();
    let mut response = String::new();
    // The server may reset a connection that it has not read.
    let _ = stream.read_to_string(&mut response).await;
    response
}

#[tokio::test]
async fn a_load_balancer_names_clients_by_the_proxy_protocol() {
    let server = TestServer::with(addresses(), |config| {
        trust_this_machine(config);
        config.trusted.proxy_protocol = true;
        config.limits.max_tcp_connections_per_address = 1;
    })
    .await;
    // Connections that send no header hold up nobody.
    let silent = TcpStream::connect(server.address).await.unwrap();
    for port in [4660, 4661] {
        let header = format!("PROXY TCP4 192.0.2.1 127.0.0.1 {port} 443\r\n");
        let response = after(&server, &header).await;
        assert!(
            response.ends_with(&format!("192.0.2.1:{port}")),
            "{response}"
        );
    }
    assert_eq!(after(&server, "").await, "");
    assert_eq!(after(&server, "PROXY TCP4 192.0.2.1\r\n").await, "");
    drop(silent);
}

#[tokio::test]
async fn clients_that_are_no_load_balancers_send_no_header() {
    let server = TestServer::with(addresses(), |config| {
        config.trusted.networks = vec!["192.0.2.0/24".parse().unwrap()];
        config.trusted.proxy_protocol = true;
    })
    .await;
    let response = after(&server, "").await;
    assert!(response.contains("127.0.0.1:"), "{response}");
    let forged = after(&server, "PROXY TCP4 192.0.2.1 127.0.0.1 1 443\r\n").await;
    assert!(!forged.contains("192.0.2.1"), "{forged}");
}
