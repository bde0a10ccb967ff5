//! Features of QUIC.

use std::net::UdpSocket;
use std::sync::Arc;

use http::{Method, Request, StatusCode};
use marline_h3::{Config, Side, StreamEvent};
use marline_http::client::{HttpVersion, ParsedUrl, parse_url};
use marline_http::server::{ServeError, directory};
use marline_http::transport::Observers;

use crate::common::{TestServer, client_with, directory_of, pattern, read};

#[tokio::test]
async fn a_handshake_with_retry_and_chacha20_completes() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.quic.retry = marline::RetryPolicy::Always;
        config.quic.chacha20_only = true;
    })
    .await;
    let visitor = server.connect(HttpVersion::Http3).await;
    let (_, content) = visitor.get("/file", &[("priority", "u=0, i")]).await;
    assert_eq!(content, b"content");
}

#[tokio::test]
async fn a_server_takes_its_endpoint_and_its_limits_from_its_configuration() {
    let root = directory_of(&[("file", b"content")]);
    let long = "x".repeat(12_000);
    for (limit, is_allowed) in [(16_384, true), (8192, false)] {
        let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
            let mut endpoint = marline::EndpointConfig::from_seed([7; 32]);
            endpoint.connection_id_len = 20;
            config.endpoint = Some(endpoint);
            config.limits.max_header_bytes = limit;
        })
        .await;
        let visitor = server.connect(HttpVersion::Http3).await;
        // A client that knows the limit does not send the request.
        let response = visitor
            .try_send(Method::GET, "/file", &[("x-long", &long)])
            .await;
        let is_ok = response.is_ok_and(|response| response.status() == StatusCode::OK);
        assert_eq!(is_ok, is_allowed, "{limit}");
    }
}

#[tokio::test]
async fn a_resumed_connection_uses_0_rtt_if_allowed() {
    let root = directory_of(&[("file", b"content")]);
    for zero_rtt in [true, false] {
        let site = directory(root.path(), false).unwrap();
        let server = TestServer::with(site, |config| config.quic.zero_rtt = zero_rtt).await;
        let client = client_with(|_| {});
        let ParsedUrl { origin, uri } =
            parse_url(&server.url(HttpVersion::Http3, "/file"), HttpVersion::Http3).unwrap();
        for attempt in 0..2 {
            let connection = client.connect(&origin).await.unwrap();
            let response = connection
                .get(&origin, &uri, &Default::default())
                .await
                .unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(read(response.into_body()).await, b"content");
            let quic = connection.quic().unwrap();
            quic.confirmed().await.unwrap();
            let resumed = attempt == 1;
            assert_eq!(quic.is_resumed(), resumed);
            assert_eq!(
                quic.early_data_accepted(),
                resumed && zero_rtt,
                "{zero_rtt}"
            );
            // The session ticket precedes the response to a request that follows the handshake.
            let next = connection.get(&origin, &uri, &Default::default()).await;
            assert_eq!(read(next.unwrap().into_body()).await, b"content");
        }
    }
}

#[tokio::test]
async fn connections_have_ports_of_their_own_where_they_are_to() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    let url = server.url(HttpVersion::Http3, "/file");
    let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http3).unwrap();
    for own_sockets in [false, true] {
        let client = client_with(|config| config.own_sockets = own_sockets);
        let mut ports = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..2 {
            let connection = client.connect(&origin).await.unwrap();
            let response = connection
                .get(&origin, &uri, &Default::default())
                .await
                .unwrap();
            assert_eq!(read(response.into_body()).await, b"content");
            ports.push(connection.quic().unwrap().local_address().port());
            connections.push(connection);
        }
        assert_eq!(ports[0] != ports[1], own_sockets, "{ports:?}");
    }
}

#[tokio::test]
async fn unsafe_requests_in_0_rtt_are_refused() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    let url = server.url(HttpVersion::Http3, "/file");
    let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http3).unwrap();
    let client = client_with(|_| {});
    let first = client.connect(&origin).await.unwrap();
    let response = first.get(&origin, &uri, &Default::default()).await.unwrap();
    read(response.into_body()).await;
    first.quic().unwrap().confirmed().await.unwrap();
    // The session ticket precedes the response.
    let next = first.get(&origin, &uri, &Default::default()).await;
    read(next.unwrap().into_body()).await;

    // This client delays a POST; one that does not is answered with 425.
    let (origin_name, address) = ("127.0.0.1", server.address);
    let connecting = client
        .endpoint(address)
        .unwrap()
        .connect_with(client.quic_config().unwrap(), address, origin_name)
        .unwrap();
    let quic = connecting.into_0rtt().expect("a session is stored");
    let mut http3 = marline_h3::Connection::new(Side::Client, &Config::default());
    let request = Request::builder().method(Method::POST).uri(uri).body(());
    let (mut send, mut recv) = quic.open_bi().await.unwrap();
    let header = http3.encode_request(send.id(), &request.unwrap()).unwrap();
    send.write_chunk(header).await.unwrap();
    send.finish().unwrap();
    let answer = recv.read_to_end(1000).await.unwrap();
    http3.on_stream_data(recv.id(), answer, true).unwrap();
    let Some(StreamEvent::Response(response)) = http3.poll_stream(recv.id()) else {
        panic!("no response");
    };
    assert_eq!(response.status(), StatusCode::TOO_EARLY);
}

#[tokio::test]
async fn key_updates_and_rebinding_do_not_break_transfers() {
    let content = pattern(4 << 20);
    let root = directory_of(&[("file", &content)]);
    let server = TestServer::files(root.path()).await;
    let client = client_with(|_| {});
    let url = server.url(HttpVersion::Http3, "/file");
    let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http3).unwrap();
    let connection = client.connect(&origin).await.unwrap();
    connection.quic().unwrap().confirmed().await.unwrap();
    let response = connection
        .get(&origin, &uri, &Default::default())
        .await
        .unwrap();
    assert!(connection.quic().unwrap().update_keys());
    let endpoint = client.endpoint(server.address).unwrap();
    endpoint
        .rebind(UdpSocket::bind("0.0.0.0:0").unwrap())
        .unwrap();
    assert!(read(response.into_body()).await == content);
    assert!(connection.report().handshake_s > 0.0);
}

#[tokio::test]
async fn a_server_whose_endpoint_fails_stops_with_an_error() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        let observers = Observers(Arc::new(|_| panic!("an observer fails")));
        config.quic.observers = Some(observers);
    })
    .await;
    let client = client_with(|_| {});
    let url = server.url(HttpVersion::Http3, "/file");
    let origin = parse_url(&url, HttpVersion::Http3).unwrap().origin;
    let connecting = tokio::spawn(async move { client.connect(&origin).await });
    let ended = server.task.await.unwrap();
    let address = server.address;
    assert!(matches!(ended, Err(ServeError::EndpointFailed(at)) if at == address));
    connecting.abort();
}
