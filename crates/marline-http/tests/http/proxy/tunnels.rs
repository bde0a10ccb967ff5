//! WebSockets through the reverse proxy, from clients of each version.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use marline_http::Body;
use marline_http::client::HttpVersion;
use marline_http::proxy::{ProxyConfig, UpstreamMetrics, reverse_proxy};
use marline_http::server::{Server, ServerConfig};
use sha1::{Digest, Sha1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::application::{Application, field};
use super::{LIMIT, proxy, request, whole};
use crate::common::TestServer;

/// The value of `Sec-WebSocket-Accept` for `key` (RFC 6455, section 4.2.2).
pub(super) fn accept(key: &str) -> String {
    let hash = Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    STANDARD.encode(hash)
}

/// An application that echoes a WebSocket.
pub(super) async fn echo() -> Application {
    Application::with(Arc::new(|mut stream, header| {
        Box::pin(async move {
            assert!(
                header.starts_with("GET /path?query HTTP/1.1\r\n"),
                "{header}"
            );
            assert_eq!(field(&header, "upgrade"), Some("websocket"));
            assert_eq!(field(&header, "connection"), Some("upgrade"));
            assert_eq!(field(&header, "sec-websocket-version"), Some("13"));
            let accept = accept(field(&header, "sec-websocket-key").unwrap());
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await.ok()?;
            let (mut read, mut write) = stream.split();
            tokio::io::copy(&mut read, &mut write).await.ok()?;
            None
        })
    }))
    .await
}

/// Opens a WebSocket over HTTP/1.1; returns the connection, and the header of the response.
pub(super) async fn upgrade(address: std::net::SocketAddr) -> (TcpStream, String) {
    let head = "GET /path?query HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    ask(address, head).await
}

/// Sends a header over HTTP/1.1; returns the connection, and the header of the response.
pub(super) async fn ask(address: std::net::SocketAddr, head: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(LIMIT, stream.read_u8()).await;
        header.push(byte.unwrap().unwrap());
    }
    (stream, String::from_utf8(header).unwrap())
}

/// Sends and receives in turns, then ends.
pub(super) async fn talk<S>(mut stream: S)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    for text in ["hello", "again"] {
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut echoed = [0; 5];
        let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut echoed)).await;
        read.unwrap().unwrap();
        assert_eq!(&echoed, text.as_bytes());
    }
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(LIMIT, stream.read_to_end(&mut rest)).await;
    read.unwrap().unwrap();
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_websocket_over_http1_is_one_at_the_application() {
    let application = echo().await;
    let proxy = proxy(&[application.url()]).await;
    let (stream, header) = upgrade(proxy.address).await;
    assert!(header.starts_with("HTTP/1.1 101 "), "{header}");
    assert_eq!(field(&header, "upgrade"), Some("websocket"));
    let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    assert_eq!(field(&header, "sec-websocket-accept"), Some(accept));
    talk(stream).await;
}

#[tokio::test]
async fn a_websocket_over_http2_is_one_at_the_application() {
    let application = echo().await;
    let config = ProxyConfig::to(vec![application.url().parse().unwrap()]);
    let site = reverse_proxy(config, &UpstreamMetrics::default()).unwrap();
    let config = ServerConfig::cleartext(([127, 0, 0, 1], 0).into(), site);
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let mut response = loop {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = format!("http://{address}/path?query").parse().unwrap();
        let websocket = hyper::ext::Protocol::from_static("websocket");
        request.extensions_mut().insert(websocket);
        match sender.send_request(request).await {
            Ok(response) => break response,
            // Its settings have not arrived.
            Err(error) if error.is_user() => tokio::task::yield_now().await,
            Err(error) => panic!("{error:?}"),
        }
    };
    assert_eq!(response.status(), StatusCode::OK);
    let stream = hyper::upgrade::on(&mut response).await.unwrap();
    talk(TokioIo::new(stream)).await;
}

/// The content of a request that a test writes while it is sent.
struct RawValue(mpsc::UnboundedReceiver<&'static str>);

impl http_body::Body for RawValue {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, std::convert::Infallible>>> {
        let text = self.0.poll_recv(cx);
        text.map(|text| text.map(|text| Ok(http_body::Frame::data(text.into()))))
    }
}

#[tokio::test]
async fn a_websocket_over_http3_is_one_at_the_application() {
    let application = echo().await;
    let proxy = proxy(&[application.url()]).await;
    talk_over_http3(&proxy).await;
}

/// Opens a WebSocket over HTTP/3, sends and receives in turns, then ends.
pub(super) async fn talk_over_http3(proxy: &TestServer) {
    let (write, written) = mpsc::unbounded_channel();
    let response = connect(proxy, Body::new(RawValue(written))).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.headers().contains_key("sec-websocket-accept"));
    let mut body = response.into_body();
    for text in ["hello", "again"] {
        write.send(text).unwrap();
        let chunk = tokio::time::timeout(LIMIT, body.chunk()).await.unwrap();
        assert_eq!(chunk.unwrap().unwrap(), text);
    }
    drop(write);
    let rest = tokio::time::timeout(LIMIT, body.collect()).await.unwrap();
    assert!(rest.unwrap().to_bytes().is_empty());
}

/// Sends an extended CONNECT over HTTP/3.
async fn connect(
    server: &TestServer,
    body: Body,
) -> http::Response<marline_http::client::Download> {
    let version = HttpVersion::Http3;
    let url = server.url(version, "/path?query");
    let client = crate::common::client(version);
    let parsed = marline_http::client::parse_url(&url, version).unwrap();
    let connection = client.connect(&parsed.origin).await.unwrap();
    let mut request = Request::new(body);
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = url.parse().unwrap();
    let websocket = marline_h3::Protocol::new("websocket").unwrap();
    request.extensions_mut().insert(websocket);
    let response = connection.request(&parsed.origin, request);
    let response = tokio::time::timeout(LIMIT, response)
        .await
        .unwrap()
        .unwrap();
    std::mem::forget((client, connection));
    response
}

#[tokio::test]
async fn a_websocket_that_the_application_refuses_is_refused() {
    // To Upgrade, which a server may ignore (RFC 9110, section 7.8), and to extended CONNECT.
    for (answer, upgraded, connected) in [
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
            403,
            403,
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 2\r\n\r\nno",
            302,
            302,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 200, 502),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
            200,
            502,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, 502),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n",
            502,
            502,
        ),
        ("", 502, 502),
    ] {
        let application = Application::that_sends(answer, super::application::Then::Close).await;
        let proxy = proxy(&[application.url()]).await;
        let (mut stream, header) = upgrade(proxy.address).await;
        let expected = format!("HTTP/1.1 {upgraded} ");
        assert!(header.starts_with(&expected), "{answer}: {header}");
        if answer.contains("no") && upgraded != 502 {
            let mut content = [0; 2];
            let content_begins = header.contains("chunked");
            if content_begins {
                stream.read_exact(&mut [0; 3]).await.unwrap();
            }
            stream.read_exact(&mut content).await.unwrap();
            assert_eq!(&content, b"no", "{answer}");
        }
        let response = connect(&proxy, Body::empty()).await;
        assert_eq!(whole(response).await.status, connected, "{answer}");
    }
}

#[tokio::test]
async fn connect_without_a_protocol_is_refused() {
    let application = echo().await;
    let proxy = proxy(&[application.url()]).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    let head =
        "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 501 "), "{answer}");
    let response = request(&proxy, HttpVersion::Http3, Method::GET, &[], Body::empty());
    drop(response);
}

#[tokio::test]
async fn a_websocket_that_the_application_accepts_wrongly_is_502() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Accept: other\r\n\r\n";
    let application = Application::that_sends(answer, super::application::Then::Hang).await;
    let proxy = proxy(&[application.url()]).await;
    let response = connect(&proxy, Body::empty()).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn requests_for_tunnels_need_a_valid_host() {
    let application = echo().await;
    let proxy = proxy(&[application.url()]).await;
    for host in [
        "",
        "Host: a\r\nHost: b\r\n",
        "Host: u@a\r\n",
        "Host: a/b\r\n",
    ] {
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        let head = format!(
            "GET /path?query HTTP/1.1\r\n{host}Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 13];
        let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut status)).await;
        read.unwrap().unwrap();
        assert_eq!(&status, b"HTTP/1.1 400 ", "{host:?}");
    }
}

/// RFC 9110, sections 7.8 and 9.3.6.
#[tokio::test]
async fn content_of_a_request_for_a_tunnel_is_none_of_the_tunnel() {
    let application = Application::with(Arc::new(|mut stream, header| {
        Box::pin(async move {
            assert_eq!(field(&header, "upgrade"), None, "{header}");
            let mut content = [0; 5];
            stream.read_exact(&mut content).await.ok()?;
            assert_eq!(&content, b"hello");
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            stream.write_all(answer).await.ok()?;
            Some(stream)
        })
    }))
    .await;
    let proxy = proxy(&[application.url()]).await;
    let upgrade = "GET /path?query HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nContent-Length: 5\r\n\r\nhello";
    let connect = "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n";
    let with_length = format!("{connect}Content-Length: 5\r\n\r\nhello");
    let with_coding = format!("{connect}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    for (request, status) in [(upgrade, 200), (&with_length, 400), (&with_coding, 400)] {
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 13];
        let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut answer)).await;
        read.unwrap().unwrap();
        assert_eq!(
            answer,
            *format!("HTTP/1.1 {status} ").as_bytes(),
            "{request}"
        );
    }
}
