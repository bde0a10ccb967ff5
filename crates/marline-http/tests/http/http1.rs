//! HTTP/1.1 as written by hand.

use std::convert::Infallible;

use http::{Request, Response};
use marline_http::Body;
use marline_http::server::{Site, directory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::service_fn;

use crate::common::{TestServer, directory_of};

/// The response to these lines, after which the connection is closed.
async fn response_to(server: &TestServer, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let mut request = lines.join("\r\n");
    request.push_str("\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

/// The status line of that.
async fn status_of(server: &TestServer, lines: &[&str]) -> String {
    let response = response_to(server, lines).await;
    response.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn cleartext_where_tls_is_expected_is_answered_with_an_explanation() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.protocols.cleartext = false;
    })
    .await;
    let response = response_to(&server, &["GET /file HTTP/1.1", "Host: localhost"]).await;
    let (head, content) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    assert!(
        head.contains(&format!("Content-Length: {}", content.len())),
        "{head}"
    );
    assert_eq!(content, "This port serves HTTPS: use an https URL.\n");
}

/// RFC 9112, section 3.2.
#[tokio::test]
async fn requests_have_one_valid_host() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    for lines in [
        &["GET /file HTTP/1.1", "Host: localhost"][..],
        &["GET /file HTTP/1.1", "Host: localhost:4433"],
        &["GET /file HTTP/1.1", "Host:"],
        &["GET /file HTTP/1.0"],
    ] {
        let status = status_of(&server, lines).await;
        assert!(status.contains("200"), "{lines:?}: {status}");
    }
    for lines in [
        &["GET /file HTTP/1.1"][..],
        &["GET /file HTTP/1.1", "Host: a", "Host: b"],
        &["GET /file HTTP/1.1", "Host: a", "Host: a"],
        &["GET /file HTTP/1.1", "Host: a/b"],
        &["GET /file HTTP/1.0", "Host: a", "Host: b"],
        // The authority form of a target is for CONNECT alone.
        &["GET a:443 HTTP/1.1", "Host: a"],
        &["GET file HTTP/1.1", "Host: file"],
        &["GET ?file HTTP/1.1", "Host: a"],
        &["HEAD victim.example HTTP/1.1", "Host: a"],
    ] {
        let status = status_of(&server, lines).await;
        assert!(status.contains("400"), "{lines:?}: {status}");
    }
}

/// RFC 9110, section 9.3.6: a success would begin a tunnel.
#[tokio::test]
async fn a_site_that_knows_no_tunnels_refuses_connect() {
    let site = Site::new(service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::full("content")))
    }));
    let server = TestServer::site(site).await;
    let status = status_of(&server, &["GET / HTTP/1.1", "Host: a"]).await;
    assert!(status.contains("200"), "{status}");
    let status = status_of(&server, &["CONNECT a:443 HTTP/1.1", "Host: a:443"]).await;
    assert!(status.contains("501"), "{status}");
    // An Upgrade may be ignored.
    let upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
    ];
    let lines = [&["GET / HTTP/1.1", "Host: a"][..], &upgrade].concat();
    let status = status_of(&server, &lines).await;
    assert!(status.contains("200"), "{status}");
}
