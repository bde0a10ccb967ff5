//! Attacks on a larger scale, for `make attack` (`tools/attack.sh`).

use std::sync::Arc;
use std::time::Duration;

use marline::TransportConfig;
use marline_http::client::{HttpVersion, parse_url};
use marline_http::server::directory;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Sender, channel};

use crate::budgets::{LARGE, begin, buffered, connect_from, metric};
use crate::common::{TestServer, client_with, directory_of, pattern, settled};
use crate::floods::{CALM, PING, REQUEST, SETTINGS, connect, send_until_closed};
use crate::proxy::application::{Application, Then};
use crate::proxy::messages::{is_refused, malformed};
use crate::proxy::proxy;

/// Longer than any of these takes.
const LIMIT: Duration = Duration::from_secs(240);

const MIB: u64 = 1 << 20;

/// Bytes that a server buffers for `connections` with 256 requests each that are not read.
async fn unread(version: HttpVersion, connections: usize, transport: TransportConfig) -> u64 {
    let attack = buffered(version, connections, 256, LARGE, transport);
    let [during, after] = tokio::time::timeout(LIMIT, attack).await.unwrap();
    println!(
        "{version:?}: {:.1} MiB buffered",
        during as f64 / MIB as f64
    );
    assert_eq!(after, 0);
    during
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn unread_http3() {
    let transport = TransportConfig {
        stream_receive_window: Some(1000),
        ..TransportConfig::default()
    };
    let during = unread(HttpVersion::Http3, 64, transport).await;
    assert!(during < 64 * MIB, "{during}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn unread_http2() {
    let during = unread(HttpVersion::Http2, 8, TransportConfig::default()).await;
    assert!(during < 128 * MIB, "{during}");
}

/// An application that sends a gigabyte to any client, and reads nothing.
async fn torrent() -> Application {
    Application::with(Arc::new(|mut stream, header| {
        Box::pin(async move {
            if header.starts_with("POST ") {
                return std::future::pending().await;
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
            stream.write_all(answer).await.ok()?;
            let part = vec![7; 100_000];
            while stream.write_all(&part).await.is_ok() {}
            None
        })
    }))
    .await
}

/// Clients that take no more than they must, of a proxy with its default settings.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn unread_proxy() {
    let application = torrent().await;
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        let server = proxy(&[application.url()]).await;
        let transport = TransportConfig {
            stream_receive_window: Some(1 << 16),
            ..TransportConfig::default()
        };
        let client = client_with(|config| {
            config.version = version;
            config.quic.transport = transport.into();
        });
        let url = parse_url(&server.url(version, "/"), version).unwrap();
        let headers = http::HeaderMap::new();
        let (mut opened, mut responses) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let connection = client.connect(&url.origin).await.unwrap();
            for _ in 0..60 {
                let response = connection.get(&url.origin, &url.uri, &headers).await;
                responses.push(response.unwrap());
            }
            opened.push(connection);
        }
        let held = || metric(&server, "marline_buffered_bytes");
        let held = settled("bytes are buffered", held).await;
        println!("{version:?}: {:.1} MiB held", held as f64 / MIB as f64);
        assert!((1..=128 * MIB).contains(&held), "{held}");
        drop((responses, opened, client));
        let given_back = async {
            while metric(&server, "marline_buffered_bytes") > 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(LIMIT, given_back).await.unwrap();
    }
}

/// Networks that hold all places of a proxy, and a client of another network.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn slow_posts() {
    let application = torrent().await;
    let server = proxy(&[application.url()]).await;
    let mut slow = Vec::new();
    for network in 1..=20 {
        for _ in 0..64 {
            let mut stream = connect_from(&server, [127, 1, network, 1]).await;
            let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx";
            stream.write_all(head.as_bytes()).await.unwrap();
            slow.push(stream);
        }
    }
    for _ in 0..10 {
        let mut stream = connect_from(&server, [127, 9, 9, 1]).await;
        let answer = tokio::time::timeout(Duration::from_secs(10), begin(&mut stream, "/")).await;
        assert!(answer.unwrap().contains("200 OK"));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn ping_and_settings_floods() {
    let root = directory_of(&[("index.html", b"content")]);
    let server = TestServer::files(root.path()).await;
    let mut floods = Vec::new();
    for number in 0..50 {
        let frame = [PING, SETTINGS][number % 2];
        let stream = connect(&server).await;
        floods.push(tokio::spawn(async move {
            let frames = frame.repeat(100);
            send_until_closed(stream, &frames, None, 100_000).await
        }));
    }
    let visitor = server.connect(HttpVersion::Http2).await;
    assert_eq!(visitor.get("/", &[]).await.1, b"content");
    let mut most = 0;
    for flood in floods {
        let flood = tokio::time::timeout(LIMIT, flood).await.unwrap().unwrap();
        assert!(flood.received.ends_with(CALM));
        most = most.max(flood.sent * 100);
    }
    println!("a flood ends after {most} frames at most");
}

/// Responses that nobody reads, on connections that send PING all the time: each is cancelled, and its connection ends.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn unread_responses_beside_pings() {
    let root = directory_of(&[("index.html", &pattern(LARGE))]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.idle_timeout = Duration::from_secs(1);
    })
    .await;
    let mut floods = Vec::new();
    for _ in 0..200 {
        let mut stream = connect(&server).await;
        stream.write_all(REQUEST).await.unwrap();
        let interval = Some(Duration::from_millis(100));
        floods.push(tokio::spawn(send_until_closed(
            stream, PING, interval, 1000,
        )));
    }
    let mut most = 0;
    for flood in floods {
        let flood = tokio::time::timeout(LIMIT, flood).await.unwrap().unwrap();
        most = most.max(flood.sent);
    }
    println!("a connection ends after {most} PINGs at most");
    assert!(most < 1000, "{most}");
}

/// Sends requests one after another until the server says that it closes the connection. Returns the number of
/// responses, and reports the first to `begun`.
async fn request_until_closed(server: std::net::SocketAddr, begun: Sender<()>) -> usize {
    let mut answered = 0;
    // A connection that is refused has lost no request.
    let Ok(mut stream) = TcpStream::connect(server).await else {
        return answered;
    };
    loop {
        let head = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(head).await.unwrap();
        let mut response = Vec::new();
        while !response.ends_with(b"hello") {
            response.push(stream.read_u8().await.unwrap());
        }
        if answered == 0 {
            begun.send(()).await.unwrap();
        }
        answered += 1;
        let response = String::from_utf8(response).unwrap().to_lowercase();
        assert!(response.starts_with("http/1.1 200 "), "{response}");
        if response.contains("\r\nconnection: close\r\n") {
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
            return answered;
        }
    }
}

/// Busy clients with connections that are kept lose no request when the server stops.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn stops_below_busy_clients() {
    const CLIENTS: usize = 24;
    let root = directory_of(&[("index.html", b"hello")]);
    let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let application = Application::that_sends(hello, Then::Continue).await;
    let mut answered = 0;
    for round in 0..20 {
        let server = match round % 2 {
            0 => TestServer::files(root.path()).await,
            _ => proxy(&[application.url()]).await,
        };
        let (begun, mut begins) = channel(CLIENTS);
        let clients = (0..CLIENTS).map(|_| request_until_closed(server.address, begun.clone()));
        let clients: Vec<_> = clients.map(tokio::spawn).collect();
        for _ in 0..CLIENTS {
            begins.recv().await.unwrap();
        }
        server.handle.shut_down();
        for client in clients {
            let client = tokio::time::timeout(LIMIT, client).await.unwrap();
            answered += client.expect("no request is lost");
        }
        server.task.await.unwrap().unwrap();
    }
    println!("{answered} requests are answered, none is lost");
}

/// Requests that mean something else over HTTP/1.1, on 2,000 connections beside a visitor.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn malformed_requests() {
    let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let application = Application::that_sends(hello, Then::Continue).await;
    let server = proxy(&[application.url()]).await;
    let visitor = server.connect(HttpVersion::Http2).await;
    let all = malformed();
    for requests in all.iter().cycle().take(2000).collect::<Vec<_>>().chunks(20) {
        let answers = requests.iter().map(|request| is_refused(&server, request));
        let answers = futures_util::future::join_all(answers);
        let answers = tokio::time::timeout(LIMIT, answers).await.unwrap();
        assert!(answers.into_iter().all(|refused| refused));
        assert_eq!(visitor.get("/visitor", &[]).await.1, b"hello");
    }
    let heads = application.requests.lock().unwrap();
    let others = heads.iter().filter(|head| !head.contains("/visitor "));
    // Content is known to be wrong when it has arrived: such a request is reset at the application.
    let whole = others.filter(|head| !head.contains("content-length: "));
    assert_eq!(whole.count(), 0);
}
