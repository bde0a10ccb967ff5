//! The ends of connections: the log matches what clients received, and clients receive what they
//! requested.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use marline_http::Body;
use marline_http::client::HttpVersion;
use marline_http::server::{AccessLog, Server, ServerConfig, Site, directory};
use marline_http::tcp::{SystemSockets, TcpProtocol, TcpSockets, socket2};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::client::TlsStream;
use tower::service_fn;

use crate::common::{TestServer, VERSIONS, directory_of, pattern};
use crate::floods::{self, PING};
use crate::log::Lines;

/// More than the buffers of both systems hold while the client reads nothing.
const SIZE: usize = 12 << 20;

struct Served {
    server: TestServer,
    log: Lines,
    _root: TempDir,
}

/// A server of one large file.
async fn served(change: impl FnOnce(&mut ServerConfig)) -> Served {
    let root = directory_of(&[("f", &pattern(SIZE))]);
    let log = Lines::default();
    let site = directory(root.path(), false).unwrap();
    let server = TestServer::with(site, |config| {
        config.access_log = Some(AccessLog::new(log.clone()));
        change(config);
    })
    .await;
    Served {
        server,
        log,
        _root: root,
    }
}

/// Clients that send nothing, or too slowly, with TLS and without.
#[tokio::test]
async fn a_connection_that_does_not_begin_in_time_ends() {
    let root = directory_of(&[("f", b"content")]);
    let site = || directory(root.path(), false).unwrap();
    let short = |config: &mut ServerConfig| {
        config.limits.handshake_timeout = Duration::from_millis(200);
        config.limits.header_timeout = Duration::from_millis(200);
    };
    let encrypted = TestServer::with(site(), short).await;
    let mut config = ServerConfig::cleartext(([127, 0, 0, 1], 0).into(), site());
    short(&mut config);
    let cleartext = Server::bind(config).await.unwrap();
    let addresses = [encrypted.address, cleartext.local_addr()];
    tokio::spawn(cleartext.run());
    // A record of TLS with the beginning of a ClientHello, and the beginning of a request.
    let hello = [
        &b"\x16\x03\x01\x04\x00\x01\x00\x03\xfc\x03\x03"[..],
        &[7; 1000],
    ]
    .concat();
    let request = [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\na: "[..],
        &[b'7'; 1000],
    ]
    .concat();
    for address in addresses {
        for bytes in [&[][..], &hello[..1], &hello, &request[..1], &request] {
            let stream = TcpStream::connect(address).await.unwrap();
            let (mut read, mut write) = stream.into_split();
            let ended = async {
                // Those without TLS are told why.
                let _ = read.read_to_end(&mut Vec::new()).await;
            };
            let sending = async {
                for byte in bytes {
                    if write.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    sleep(Duration::from_millis(100)).await;
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = ended => {}
                () = sending => {}
                () = sleep(Duration::from_secs(60)) => panic!("{address} {:?}", bytes.get(..4)),
            }
        }
    }
}

/// GET /f of HTTP/1.1.
const REQUEST: &[u8] = b"GET /f HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A client of HTTP/1.1 that reads nothing on its own.
async fn connect(server: &TestServer) -> TcpStream {
    TcpStream::connect(server.address).await.unwrap()
}

/// Reads a head, and returns it.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// A client of HTTP/2 as written by hand, with windows that never limit it.
struct Http2 {
    stream: TlsStream<TcpStream>,
    content: usize,
    has_ended: bool,
}

impl Http2 {
    /// Requests /f on stream 1.
    async fn get(server: &TestServer) -> Self {
        let mut stream = floods::connect(server).await;
        // SETTINGS_INITIAL_WINDOW_SIZE, and WINDOW_UPDATE of the connection.
        let windows = b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\0\0\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0";
        stream.write_all(windows).await.unwrap();
        stream.write_all(&floods::request(1, "/f")).await.unwrap();
        Self {
            stream,
            content: 0,
            has_ended: false,
        }
    }

    /// Reads a frame, as an application that has consumed half of its window answers it.
    async fn read_frame(&mut self) -> std::io::Result<()> {
        let mut header = [0; 9];
        self.stream.read_exact(&mut header).await?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).await?;
        if header[3] == 6 && header[4] == 0 {
            let pong = [b"\0\0\x08\x06\x01\0\0\0\0", &payload[..]].concat();
            self.stream.write_all(&pong).await?;
        }
        if header[3] == 0 {
            self.content += payload.len();
            self.has_ended = header[4] & 1 == 1;
            self.stream
                .write_all(b"\0\0\x04\x08\0\0\0\0\x01\0\0\0\x01")
                .await?;
        }
        Ok(())
    }
}

/// RFC 9112, section 9.6: a socket that is closed while the client sends is reset, and data in flight is lost.
#[tokio::test]
async fn a_client_of_http2_that_reads_slowly_gets_all_of_a_server_that_stops() {
    let served = served(|_| {}).await;
    let mut client = Http2::get(&served.server).await;
    while client.content == 0 {
        client.read_frame().await.unwrap();
    }
    served.server.handle.shut_down();
    while !client.has_ended {
        client.read_frame().await.unwrap();
        if client.content % (64 * 1024) < 16 * 1024 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(client.content, SIZE);
    let line = &served.log.wait(1).await[0];
    assert_eq!(
        (&line["bytes"], &line["complete"]),
        (&SIZE.into(), &true.into())
    );
    drop(client);
    served.server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_a_hard_limit_cuts_is_not_logged_as_complete() {
    for version in VERSIONS {
        let served = served(|config| {
            config.limits.shutdown_grace = Duration::from_millis(100);
        })
        .await;
        let visitor = served.server.connect(version).await;
        let response = visitor.send(Method::GET, "/f", &[]).await;
        served.server.handle.shut_down();
        served.server.task.await.unwrap().unwrap();
        let line = &served.log.wait(1).await[0];
        assert_eq!(line["complete"], false, "{version:?}: {line}");
        let bytes = line["bytes"].as_u64().unwrap();
        assert!(bytes > 0 && bytes < SIZE as u64, "{version:?}: {line}");
        drop(response);
    }
}

#[tokio::test]
async fn a_response_is_logged_when_the_client_has_received_it() {
    // The client's receive buffer is small.
    let served = served(|_| {}).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    let mut stream = socket.connect(served.server.address).await.unwrap();
    // As much as the server's send buffer takes at once.
    let request = b"GET /f HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-999999\r\n\r\n";
    stream.write_all(request).await.unwrap();
    read_head(&mut stream).await;
    let begun = Instant::now();
    // Another request is logged meanwhile.
    let visitor = served.server.connect(HttpVersion::Http2).await;
    visitor.get("/f", &[("range", "bytes=0-9")]).await;
    assert_eq!(served.log.wait(1).await[0]["bytes"], 10);
    let unread = begun.elapsed().as_secs_f64();
    let mut content = vec![0; 1_000_000];
    stream.read_exact(&mut content).await.unwrap();
    let line = &served.log.wait(2).await[1];
    assert_eq!(
        (&line["bytes"], &line["complete"]),
        (&1_000_000.into(), &true.into())
    );
    assert!(line["duration_s"].as_f64().unwrap() >= unread, "{line}");
}

#[tokio::test]
async fn a_client_that_leaves_early_has_not_received_the_response() {
    let served = served(|_| {}).await;
    for version in VERSIONS {
        let visitor = served.server.connect(version).await;
        let mut response = visitor.send(Method::GET, "/f", &[]).await;
        response.body_mut().chunk().await.unwrap();
        drop((response, visitor));
    }
    for line in served.log.wait(VERSIONS.len()).await {
        assert_eq!(line["complete"], false, "{line}");
        assert!(line["bytes"].as_u64().unwrap() < SIZE as u64, "{line}");
    }
}

/// Such a client no longer acknowledges the end, but has received it.
#[tokio::test]
async fn a_client_of_http3_that_closes_its_connection_after_the_response_has_received_it() {
    let served = served(|_| {}).await;
    for _ in 0..20 {
        let visitor = served.server.connect(HttpVersion::Http3).await;
        visitor.get("/f", &[("range", "bytes=0-99")]).await;
        visitor.connection.quic().unwrap().close(0, b"");
    }
    for line in served.log.wait(20).await {
        assert_eq!(line["complete"], true, "{line}");
        assert_eq!(line["bytes"], 100, "{line}");
    }
}

/// The client continues to send while the response, which closes the connection, is in flight.
#[tokio::test]
async fn the_response_to_a_refused_upload_arrives() {
    let served = served(|_| {}).await;
    for _ in 0..8 {
        let mut stream = connect(&served.server).await;
        let head = format!("POST /f HTTP/1.1\r\nHost: localhost\r\nContent-Length: {SIZE}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&pattern(SIZE)).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 405 "), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
    }
    for line in served.log.wait(8).await {
        assert_eq!(
            (&line["status"], &line["complete"]),
            (&405.into(), &true.into())
        );
    }
}

#[tokio::test]
async fn a_kept_connection_answers_the_request_that_meets_the_end_of_the_server() {
    let served = served(|_| {}).await;
    let mut kept = Vec::new();
    for _ in 0..8 {
        let mut stream = connect(&served.server).await;
        stream
            .write_all(b"HEAD /f HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
        kept.push(stream);
    }
    // Established, and not accepted yet.
    kept.push(connect(&served.server).await);
    served.server.handle.shut_down();
    for mut stream in kept {
        stream
            .write_all(b"HEAD /f HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        let head = read_head(&mut stream).await.to_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    }
    served.server.task.await.unwrap().unwrap();
}

/// More than a task accepts at once.
#[tokio::test]
async fn every_connection_in_the_queue_of_a_server_that_stops_is_answered() {
    let served = served(|_| {}).await;
    let mut queued = Vec::new();
    for _ in 0..200 {
        let stream = std::net::TcpStream::connect(served.server.address).unwrap();
        stream.set_nonblocking(true).unwrap();
        queued.push(TcpStream::from_std(stream).unwrap());
    }
    served.server.handle.shut_down();
    for mut stream in queued {
        stream
            .write_all(b"HEAD /f HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        let head = read_head(&mut stream).await.to_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    }
    served.server.task.await.unwrap().unwrap();
}

/// RFC 9113, section 6.8: a client may have sent it before it gets GOAWAY, here behind its answer to PING.
#[tokio::test]
async fn the_first_request_of_a_connection_over_http2_is_answered_by_a_server_that_stops() {
    let site = uploads(unbounded_channel().0);
    let config = ServerConfig::cleartext(([127, 0, 0, 1], 0).into(), site);
    let server = Server::bind(config).await.unwrap();
    let handle = server.handle();
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let running = tokio::spawn(server.run());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.unwrap();
    // Until the client's SETTINGS are acknowledged.
    let mut frame = read_frame(&mut stream).await;
    while frame[3] != 4 || frame[4] & 1 == 0 {
        frame = read_frame(&mut stream).await;
    }
    handle.shut_down();
    // Without the wait, the server would send GOAWAY and PING now, and end after the answer.
    while let Ok(frame) = timeout(Duration::from_millis(100), read_frame(&mut stream)).await {
        if frame[3] == 6 {
            let mut pong = frame;
            pong[4] = 1;
            stream.write_all(&pong).await.unwrap();
        }
    }
    // GET / of a.com over http, with fields of the static table (RFC 7541, appendix A).
    let request = b"\0\0\x0a\x01\x05\0\0\0\x01\x82\x86\x84\x41\x05a.com";
    stream.write_all(request).await.unwrap();
    while frame[3] != 1 {
        frame = read_frame(&mut stream).await;
    }
    drop(stream);
    running.await.unwrap().unwrap();
}

/// A frame of HTTP/2, with its header.
async fn read_frame(stream: &mut TcpStream) -> Vec<u8> {
    let mut frame = vec![0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
    frame.resize(9 + length as usize, 0);
    stream.read_exact(&mut frame[9..]).await.unwrap();
    frame
}

/// Sockets with large buffers.
#[derive(Debug)]
struct LargeBuffers;

impl TcpSockets for LargeBuffers {
    fn socket(
        &self,
        address: SocketAddr,
        protocol: TcpProtocol,
    ) -> std::io::Result<socket2::Socket> {
        let socket = SystemSockets.socket(address, protocol)?;
        socket.set_send_buffer_size(4 << 20)?;
        Ok(socket)
    }
}

/// The system takes more only when a third of its buffer is free: that may take longer than the idle timeout. The client
/// reads by the wall clock, as the buffers are the kernel's.
#[tokio::test]
async fn slow_clients_of_systems_with_large_buffers_are_not_idle() {
    let served = served(|config| {
        config.tcp_sockets = Some(Arc::new(LargeBuffers));
        config.limits.idle_timeout = Duration::from_secs(1);
    })
    .await;
    let mut stream = connect(&served.server).await;
    stream.write_all(REQUEST).await.unwrap();
    read_head(&mut stream).await;
    let mut content = vec![0; SIZE];
    for part in content.chunks_mut(SIZE / 64) {
        stream.read_exact(part).await.unwrap();
        sleep(Duration::from_millis(80)).await;
    }
    assert_eq!(served.log.wait(1).await[0]["complete"], true);
}

/// Trailers end a response as its last bytes do.
#[tokio::test]
async fn responses_with_trailers_are_complete() {
    let site = Site::new(service_fn(|_| async {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", http::HeaderValue::from_static("7"));
        let frames = [
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"content"))),
            Ok(Frame::trailers(trailers)),
        ];
        let content = StreamBody::new(futures_util::stream::iter(frames));
        Ok::<_, Infallible>(
            Response::builder()
                .header("trailer", "x-sum")
                .body(Body::new(content))
                .unwrap(),
        )
    }));
    let log = Lines::default();
    let server = TestServer::with(site, |config| {
        config.access_log = Some(AccessLog::new(log.clone()));
    })
    .await;
    for (number, version) in VERSIONS.into_iter().enumerate() {
        let visitor = server.connect(version).await;
        visitor.get("/", &[("te", "trailers")]).await;
        let line = &log.wait(number + 1).await[number];
        assert_eq!(line["complete"], true, "{version:?}: {line}");
    }
}

/// Ten bytes at a time, more slowly than a client may receive them.
fn ticks(count: usize, interval: Duration) -> Site {
    Site::new(service_fn(move |_: Request<Body>| async move {
        let (send, mut ticks) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            for _ in 0..count {
                sleep(interval).await;
                let _ = send.send(()).await;
            }
        });
        let frames = futures_util::stream::poll_fn(move |cx| {
            let tick = ticks.poll_recv(cx);
            tick.map(|tick| {
                tick.map(|()| {
                    Ok::<_, Infallible>(http_body::Frame::data(Bytes::from_static(b"0123456789")))
                })
            })
        });
        Ok(Response::new(Body::new(StreamBody::new(frames))))
    }))
}

#[tokio::test]
async fn a_client_that_waits_for_the_site_is_not_idle() {
    let site = ticks(30, Duration::from_millis(100));
    let server = TestServer::with(site, |config| {
        config.limits.idle_timeout = Duration::from_secs(1);
    })
    .await;
    let server = &server;
    let waiting = VERSIONS.map(|version| async move {
        let visitor = server.connect(version).await;
        let (_, content) = visitor.get("/", &[]).await;
        assert_eq!(content.len(), 300, "{version:?}");
    });
    futures_util::future::join_all(waiting).await;
}

/// Sends `frames` until the connection ends.
async fn keep_alive<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, frames: &[u8]) {
    while stream.write_all(frames).await.is_ok() && stream.flush().await.is_ok() {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Regardless of what else the client sends.
#[tokio::test]
async fn a_client_that_does_not_read_is_idle() {
    let priority = b"\0\0\x05\x02\0\0\0\0\x01\0\0\0\0\x10".as_slice();
    let update = b"\0\0\x04\x08\0\0\0\0\x01\0\0\0\x01".as_slice();
    let unknown = b"\0\0\x01\xf0\0\0\0\0\0x".as_slice();
    for frames in [PING, floods::SETTINGS, priority, update, unknown] {
        let served = served(|config| config.limits.idle_timeout = Duration::from_millis(500)).await;
        let client = Http2::get(&served.server).await;
        let kept = tokio::time::timeout(Duration::from_secs(20), keep_alive(client.stream, frames));
        kept.await.expect("the connection ends");
        let line = &served.log.wait(1).await[0];
        assert_eq!(line["complete"], false, "{frames:?}: {line}");
    }
    // Parts of an upload that the site does not read.
    let served = served(|config| config.limits.idle_timeout = Duration::from_millis(500)).await;
    let mut stream = connect(&served.server).await;
    let head = b"GET /f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let kept = tokio::time::timeout(Duration::from_secs(20), keep_alive(stream, b"x"));
    kept.await.expect("the connection ends");
    assert_eq!(served.log.wait(1).await[0]["complete"], false);
}

/// Answers when it has the content of a request, whose first part it reports.
fn uploads(begun: UnboundedSender<()>) -> Site {
    Site::new(service_fn(move |request: Request<Body>| {
        let begun = begun.clone();
        async move {
            let mut content = request.into_body();
            let first = content.frame().await.transpose().unwrap();
            // Not every test waits for it.
            let _ = begun.send(());
            let first = first.and_then(|frame| frame.into_data().ok());
            let rest = content.collect().await.unwrap().to_bytes();
            let length = first.map_or(0, |part| part.len()) + rest.len();
            let length = Full::from(length.to_string());
            Ok::<_, Infallible>(Response::new(Body::new(SlowlyDropped(length))))
        }
    }))
}

/// Content that takes a while to give up what it holds, after its last part was passed on.
struct SlowlyDropped(Full<Bytes>);

impl http_body::Body for SlowlyDropped {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}

impl Drop for SlowlyDropped {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A client uploads `content` over HTTP/2, and expects its length.
async fn upload(
    mut sender: hyper::client::conn::http2::SendRequest<Body>,
    address: SocketAddr,
    content: Body,
    length: usize,
) {
    let request = Request::post(format!("http://{address}/"));
    let response = sender.send_request(request.body(content).unwrap()).await;
    let answer = response.unwrap().into_body().collect().await.unwrap();
    assert_eq!(answer.to_bytes(), length.to_string());
}

/// Other tasks than that of the connection send responses. All have ended before the connection counts as closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn uploads_over_http2_whose_clients_have_their_answers_are_complete_in_the_log_of_a_server_that_stops()
 {
    const UPLOADS: usize = 10;
    for connections in [1, UPLOADS] {
        let log = Lines::default();
        let (begun, mut begins) = unbounded_channel();
        let mut config = ServerConfig::cleartext(([127, 0, 0, 1], 0).into(), uploads(begun));
        config.access_log = Some(AccessLog::new(log.clone()));
        let server = Server::bind(config).await.unwrap();
        let (address, handle) = (server.local_addr(), server.handle());
        let running = tokio::spawn(server.run());
        let mut senders = Vec::new();
        for _ in 0..connections {
            let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
            let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
            let (sender, connection) = handshake.await.unwrap();
            tokio::spawn(connection);
            senders.push(sender);
        }
        let mut uploading = tokio::task::JoinSet::new();
        let (stopped, _) = tokio::sync::watch::channel(false);
        for index in 0..UPLOADS {
            let mut stopping = stopped.subscribe();
            let parts = futures_util::stream::once(async move {
                Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(vec![7; 20_000])))
            })
            .chain(futures_util::stream::once(async move {
                stopping.wait_for(|stopped| *stopped).await.unwrap();
                Ok(http_body::Frame::data(Bytes::from(vec![7; 10_000])))
            }));
            let content = Body::new(StreamBody::new(Box::pin(parts)));
            let sender = senders[index % connections].clone();
            uploading.spawn(upload(sender, address, content, 30_000));
        }
        drop(senders);
        for _ in 0..UPLOADS {
            begins.recv().await.unwrap();
        }
        handle.shut_down();
        stopped.send_replace(true);
        while let Some(uploaded) = uploading.join_next().await {
            uploaded.unwrap();
        }
        running.await.unwrap().unwrap();
        let lines = log.wait(UPLOADS).await;
        let complete = lines.iter().filter(|line| line["complete"] == true);
        assert_eq!(complete.count(), UPLOADS, "{connections}: {lines:?}");
    }
}
