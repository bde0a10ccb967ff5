//! The resources of a server that clients which read nothing can use.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use marline::TransportConfig;
use marline_http::Body;
use marline_http::client::{HttpVersion, parse_url};
use marline_http::server::{Site, directory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::common::{TestServer, VERSIONS, client_with, directory_of, pattern, settled};

/// A connection from this address of the loopback network, with a receive buffer as small as possible.
pub(crate) async fn connect_from(server: &TestServer, source: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1).unwrap();
    socket.bind((source, 0).into()).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// Requests `path` and reads the first bytes of the response only, or all of it if it is short.
pub(crate) async fn begin(stream: &mut TcpStream, path: &str) -> String {
    try_begin(stream, path).await.unwrap()
}

async fn try_begin(stream: &mut TcpStream, path: &str) -> std::io::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = vec![0; 300];
    let mut read = 0;
    while read < response.len() && !response[..read].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut response[read..]).await? {
            0 => break,
            more => read += more,
        }
    }
    Ok(String::from_utf8_lossy(&response[..read]).into_owned())
}

/// More than the buffers of a TCP connection hold.
pub(crate) const LARGE: usize = 16 << 20;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_that_holds_many_files_is_refused_more_and_others_are_not() {
    let large = pattern(LARGE);
    let names: Vec<_> = (0..8).map(|name| name.to_string()).collect();
    let files: Vec<_> = names.iter().map(|name| (&**name, &large[..])).collect();
    let root = directory_of(&files);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.max_open_files = 8;
    })
    .await;
    let mut greedy = Vec::new();
    let mut answers = Vec::new();
    for name in &names {
        let mut stream = connect_from(&server, [127, 0, 0, 1]).await;
        answers.push(begin(&mut stream, &format!("/{name}")).await);
        greedy.push(stream);
    }
    let (served, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.contains("200"));
    assert_eq!(served.len(), 4, "{answers:?}");
    for answer in refused {
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("retry-after: 2"), "{answer}");
    }
    // A file that is open already can be shared.
    let mut stream = connect_from(&server, [127, 0, 0, 2]).await;
    assert!(begin(&mut stream, "/0").await.contains("200"));
    // A client of another network is served, over every version.
    let mut other = connect_from(&server, [127, 0, 9, 1]).await;
    assert!(begin(&mut other, "/7").await.contains("200"));
    let page = server.metrics.render();
    assert!(page.contains("marline_open_files 5\n"), "{page}");

    drop((greedy, stream, other));
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        // The responses end once the server notices that they are not read.
        let mut status = StatusCode::SERVICE_UNAVAILABLE;
        for _ in 0..100 {
            let response = visitor.send(Method::GET, "/7", &[]).await;
            status = response.status();
            if status == StatusCode::OK {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(status, StatusCode::OK, "{version:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn requests_for_one_file_hold_it_open_once() {
    let root = directory_of(&[("file", &pattern(LARGE))]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.max_open_files = 2;
    })
    .await;
    let visitor = server.connect(HttpVersion::Http2).await;
    let mut responses = Vec::new();
    for _ in 0..50 {
        let response = visitor.send(Method::GET, "/file", &[]).await;
        assert_eq!(response.status(), StatusCode::OK);
        responses.push(response);
    }
    let page = server.metrics.render();
    assert!(page.contains("marline_open_files 1\n"), "{page}");
}

/// The value of a metric without labels.
pub(crate) fn metric(server: &TestServer, name: &str) -> u64 {
    let page = server.metrics.render();
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value
        .unwrap_or_else(|| panic!("{name} in {page}"))
        .parse()
        .unwrap()
}

/// The bytes that a server has read from a file of `size` bytes for `requests` on each of some connections whose
/// responses are not read, and those that it keeps after the connections were closed.
pub(crate) async fn buffered(
    version: HttpVersion,
    connections: usize,
    requests: u64,
    size: usize,
    transport: TransportConfig,
) -> [u64; 2] {
    let root = directory_of(&[("file", &pattern(size))]);
    let server = TestServer::files(root.path()).await;
    let client = client_with(|config| {
        config.version = version;
        config.quic.transport = transport.into();
    });
    let parsed = parse_url(&server.url(version, "/file"), version).unwrap();
    let headers = http::HeaderMap::new();
    let (mut opened, mut responses) = (Vec::new(), Vec::new());
    for _ in 0..connections {
        let connection = client.connect(&parsed.origin).await.unwrap();
        for _ in 0..requests {
            let response = connection.get(&parsed.origin, &parsed.uri, &headers);
            responses.push(response.await.unwrap());
        }
        opened.push(connection);
    }
    let held = || metric(&server, "marline_buffered_bytes");
    let during = settled("bytes are buffered", held).await;
    drop((responses, opened, client));
    let closed = async {
        while metric(&server, "marline_buffered_bytes") > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // If the CONNECTION_CLOSE is lost, the idle timeout ends the connection.
    let _ = tokio::time::timeout(Duration::from_secs(60), closed).await;
    [during, metric(&server, "marline_buffered_bytes")]
}

const STREAMS: u64 = 60;

#[tokio::test]
async fn files_are_read_no_further_than_windows_of_http3_allow() {
    let window = 2000;
    let transport = TransportConfig {
        stream_receive_window: Some(window),
        ..TransportConfig::default()
    };
    let [during, after] = buffered(HttpVersion::Http3, 1, STREAMS, LARGE, transport).await;
    assert!(during <= STREAMS * 4 * window, "{during}");
    assert_eq!(after, 0);
}

#[tokio::test]
async fn files_are_read_no_further_than_http2_can_send() {
    let [during, after] = buffered(
        HttpVersion::Http2,
        1,
        STREAMS,
        LARGE,
        TransportConfig::default(),
    )
    .await;
    assert!(during <= STREAMS * (48 << 10), "{during}");
    assert_eq!(after, 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_that_reads_nothing_leaves_memory_for_others() {
    let root = directory_of(&[("file", &pattern(LARGE))]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.max_buffered_bytes = 1 << 20;
        config.limits.buffer_timeout = Duration::from_millis(100);
    })
    .await;
    let visitor = server.connect(HttpVersion::Http2).await;
    let mut responses = Vec::new();
    for _ in 0..STREAMS {
        responses.push(visitor.send(Method::GET, "/file", &[]).await);
    }
    let held = || metric(&server, "marline_buffered_bytes");
    let during = settled("bytes are buffered", held).await;
    assert!(during <= 1 << 19, "{during}");
    let mut other = connect_from(&server, [127, 0, 9, 1]).await;
    assert!(begin(&mut other, "/file").await.contains("200"));
    let mut content = vec![0; LARGE / 2];
    other.read_exact(&mut content).await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn networks_that_use_up_all_memory_give_some_back_for_another_one() {
    const LIMIT: u64 = 1 << 17;
    let root = directory_of(&[("file", &pattern(LARGE))]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.max_buffered_bytes = LIMIT;
    })
    .await;
    // The network that holds the most, over HTTP/3.
    let version = HttpVersion::Http3;
    let client = client_with(|config| {
        config.version = version;
        config.quic.transport = std::sync::Arc::new(TransportConfig {
            stream_receive_window: Some(1500),
            ..TransportConfig::default()
        });
    });
    let parsed = parse_url(&server.url(version, "/file"), version).unwrap();
    let visitor = client.connect(&parsed.origin).await.unwrap();
    let headers = http::HeaderMap::new();
    let mut largest = Vec::new();
    for _ in 0..20 {
        let response = visitor.get(&parsed.origin, &parsed.uri, &headers).await;
        largest.push(response.unwrap().into_body());
    }
    // Others, which wait for more.
    let mut others = Vec::new();
    let used_up = async {
        for network in (1..=10).cycle() {
            if metric(&server, "marline_buffered_bytes") > LIMIT - 1024 {
                break;
            }
            let mut stream = connect_from(&server, [127, 1, network, 1]).await;
            let request = b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(request).await.unwrap();
            others.push(stream);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let used_up = tokio::time::timeout(Duration::from_secs(20), used_up).await;
    assert!(used_up.is_ok());

    let mut other = connect_from(&server, [127, 9, 9, 1]).await;
    let served = async {
        assert!(begin(&mut other, "/file").await.contains("200"));
        let mut content = vec![0; LARGE / 8];
        other.read_exact(&mut content).await.unwrap();
    };
    let served = tokio::time::timeout(Duration::from_secs(20), served).await;
    assert!(served.is_ok(), "it is not served");
    let ended = async {
        for content in &mut largest {
            // The window of a stream that is reset has less than this.
            let mut read = 0;
            while let Some(chunk) = content.chunk().await? {
                read += chunk.len();
                if read > 3000 {
                    break;
                }
            }
        }
        Ok::<_, marline_http::client::ClientError>(())
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    assert!(matches!(ended, Ok(Err(_))), "{ended:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_request_that_waits_too_long_for_memory_is_asked_to_come_back() {
    let root = directory_of(&[("file", &pattern(LARGE))]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.max_buffered_bytes = 1 << 16;
        config.limits.buffer_timeout = Duration::from_millis(500);
    })
    .await;
    let mut open = Vec::new();
    let refused = async {
        loop {
            let mut stream = connect_from(&server, [127, 0, 0, 1]).await;
            let answer = begin(&mut stream, "/file").await;
            open.push(stream);
            if !answer.contains("200") {
                return answer;
            }
        }
    };
    let refused = tokio::time::timeout(Duration::from_secs(30), refused).await;
    let refused = refused.expect("it waits no longer");
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("retry-after: 2"), "{refused}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_of_one_address_leave_room_for_others() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.max_tcp_connections_per_address = 3;
        config.limits.max_tcp_connections_per_prefix = 5;
    })
    .await;
    let mut open = Vec::new();
    let mut served = Vec::new();
    for source in [1, 1, 1, 1, 2, 2, 2, 3] {
        let mut stream = connect_from(&server, [127, 0, 0, source]).await;
        // A refused connection ends without a response, or is reset.
        let answer = try_begin(&mut stream, "/file").await;
        served.push(answer.is_ok_and(|answer| answer.contains("200")));
        open.push(stream);
    }
    assert_eq!(served, [true, true, true, false, true, true, false, false]);
    let mut other = connect_from(&server, [127, 0, 9, 1]).await;
    assert!(begin(&mut other, "/file").await.contains("200"));
    drop(open);
}

/// Sends a message when it is dropped.
struct Guard(tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_request_whose_client_has_gone_waits_for_nothing_any_more() {
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
        let site = Site::new(tower::service_fn(move |_: Request<Body>| {
            let guard = Guard(ended.clone());
            let _ = begun.send(());
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                Ok(Response::new(Body::empty()))
            }
        }));
        let server = TestServer::site(site).await;
        let visitor = server.connect(version).await;
        let request = async { drop(visitor.send(Method::GET, "/", &[]).await) };
        tokio::select! {
            () = request => panic!("it is never answered"),
            _ = begins.recv() => {}
        }
        let gone = tokio::time::timeout(Duration::from_secs(60), ends.recv()).await;
        assert!(gone.is_ok(), "{version:?}");
        tokio::select! {
            () = async { drop(visitor.send(Method::GET, "/", &[]).await) } => panic!("never answered"),
            _ = begins.recv() => {}
        }
        drop(visitor);
        let gone = tokio::time::timeout(Duration::from_secs(60), ends.recv()).await;
        assert!(gone.is_ok(), "{version:?}");
    }
}

#[tokio::test]
async fn idle_connections_over_quic_make_room_for_others_of_any_version() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.max_connections = 4;
    })
    .await;
    let mut open = Vec::new();
    let idle = [HttpVersion::Http2].into_iter();
    for version in idle.chain([HttpVersion::Http3; 3]) {
        let visitor = server.connect(version).await;
        assert_eq!(visitor.get("/file", &[]).await.1, b"content");
        open.push(visitor);
    }
    for version in [HttpVersion::Http3, HttpVersion::Http2] {
        let visitor = server.connect(version).await;
        let got = visitor.get("/file", &[]).await;
        assert_eq!(got.1, b"content", "{version:?}");
        open.push(visitor);
    }
}
