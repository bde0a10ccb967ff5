//! Streams of HTTP/2, as written by hand, beside others of their connection.

use std::convert::Infallible;
use std::time::Duration;

use http::{Request, Response, Version};
use http_body_util::BodyExt;
use marline_http::Body;
use marline_http::server::{Site, testing};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tower::service_fn;

use crate::common::pattern;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The first bytes of header blocks with these statuses (RFC 7541, appendix A).
const OK: &[u8] = &[0x88];
const BAD_REQUEST: &[u8] = &[0x8c];
/// Three digits in Huffman code, as no other status of these tests.
const REQUEST_TIMEOUT: &[u8] = &[0x48];

const PROTOCOL_ERROR: u8 = 1;
const CANCEL: u8 = 8;

/// Whole bytes of the path are sent, or as much content as the query of the path says.
fn site() -> Site {
    Site::new(service_fn(|request: Request<Body>| async move {
        let size = request.uri().query().and_then(|size| size.parse().ok());
        let content = match size {
            Some(size) => pattern(size),
            None => match request.into_body().collect().await {
                Ok(content) => content.to_bytes().to_vec(),
                Err(_) => Vec::new(),
            },
        };
        Ok::<_, Infallible>(Response::new(Body::full(content)))
    }))
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags, 0, 0, 0, stream]].concat();
    [&head, payload].concat()
}

/// A header section, without compression.
fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn headers(stream: u8, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, &section(fields))
}

/// The pseudo-header fields of a request, before `more`.
fn with<'a>(
    method: &'a str,
    path: &'a str,
    more: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let pseudo = [
        (":method", method),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", path),
    ];
    [&pseudo, more].concat()
}

/// A frame that the server has sent.
#[derive(Debug)]
struct Received {
    kind: u8,
    flags: u8,
    stream: u8,
    payload: Vec<u8>,
}

/// A client, and the server of its connection.
struct Peer {
    stream: DuplexStream,
    _stop: watch::Sender<bool>,
}

impl Peer {
    /// Opens a connection whose streams have `window`.
    async fn new(window: u32) -> Self {
        let (near, far) = duplex(1 << 20);
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(testing::serve_stream(
            far,
            Version::HTTP_2,
            site(),
            stopping,
        ));
        let mut peer = Self {
            stream: near,
            _stop: stop,
        };
        peer.send(PREFACE).await;
        let window = window.to_be_bytes();
        let settings = [&[0, 4], &window[..]].concat();
        peer.send(&frame(SETTINGS, 0, 0, &settings)).await;
        peer
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next frame; `None` at the end of the connection.
    async fn next(&mut self) -> Option<Received> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).await.ok()?;
        Some(Received {
            kind: head[3],
            flags: head[4],
            stream: head[8],
            payload,
        })
    }

    /// The next frame of a stream. The connection goes on until then.
    async fn next_of(&mut self, stream: u8) -> Received {
        loop {
            let next = timeout(Duration::from_secs(300), self.next()).await;
            let next = next.expect("a frame in time").expect("the connection");
            assert_ne!(next.kind, GOAWAY, "{next:?}");
            if next.stream == stream && next.kind != WINDOW_UPDATE {
                return next;
            }
        }
    }

    /// The content of the response on a stream, and its status.
    async fn response(&mut self, stream: u8) -> (Vec<u8>, Vec<u8>) {
        let head = self.next_of(stream).await;
        assert_eq!(head.kind, HEADERS, "{head:?}");
        let mut content = Vec::new();
        let mut flags = head.flags;
        while flags & END_STREAM == 0 {
            let part = self.next_of(stream).await;
            assert_eq!(part.kind, DATA, "{part:?}");
            content.extend_from_slice(&part.payload);
            flags = part.flags;
        }
        (head.payload[..1].to_vec(), content)
    }
}

#[tokio::test]
async fn clients_that_expect_it_are_told_to_continue() {
    let mut peer = Peer::new(1 << 16).await;
    let expecting = with("POST", "/", &[("expect", "100-continue")]);
    peer.send(&headers(1, 0, &expecting)).await;
    let interim = peer.next_of(1).await;
    assert_eq!((interim.kind, interim.flags & END_STREAM), (HEADERS, 0));
    peer.send(&frame(DATA, END_STREAM, 1, b"content")).await;
    assert_eq!(peer.response(1).await, (OK.to_vec(), b"content".to_vec()));
}

/// Messages that RFC 9113, section 8.1.1, calls malformed, as frames of stream 3.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let get =
        |more: &[(&'static str, &'static str)]| headers(3, END_STREAM, &with("GET", "/", more));
    let upload = |more: &[(&'static str, &'static str)], rest: &[u8]| {
        [&headers(3, 0, &with("POST", "/", more)), rest].concat()
    };
    let authority = (":authority", "localhost:1");
    let connect = |more: &[(&'static str, &'static str)]| {
        let fields = [&[(":method", "CONNECT"), authority], more].concat();
        headers(3, 0, &fields)
    };
    let extended = |more: &[(&'static str, &'static str)]| {
        let fields = with(
            "CONNECT",
            "/",
            &[&[(":protocol", "websocket")], more].concat(),
        );
        headers(3, 0, &fields)
    };
    let trailers = headers(3, END_STREAM, &[(":path", "/")]);
    let unfinished = headers(3, 0, &[("a", "b")]);
    vec![
        ("connection", get(&[("connection", "close")])),
        ("keep-alive", get(&[("keep-alive", "1")])),
        ("proxy-connection", get(&[("proxy-connection", "close")])),
        (
            "transfer-encoding",
            get(&[("transfer-encoding", "chunked")]),
        ),
        ("upgrade", get(&[("upgrade", "websocket")])),
        ("te", get(&[("te", "gzip")])),
        ("blanks", get(&[("a", " b")])),
        ("late", get(&[("a", "b"), (":path", "/")])),
        ("twice", get(&[(":path", "/")])),
        ("of responses", get(&[(":status", "200")])),
        ("protocol", get(&[(":protocol", "websocket")])),
        ("host", get(&[("host", "other")])),
        (
            "hosts",
            get(&[("host", "localhost"), ("host", "localhost")]),
        ),
        (
            "no method",
            headers(3, END_STREAM, &with("GET", "/", &[])[1..]),
        ),
        (
            "no path",
            headers(3, END_STREAM, &with("GET", "/", &[])[..3]),
        ),
        ("empty path", headers(3, END_STREAM, &with("GET", "", &[]))),
        (
            "bad path",
            headers(3, END_STREAM, &with("GET", "no path", &[])),
        ),
        ("bad length", upload(&[("content-length", "+1")], &[])),
        (
            "lengths",
            upload(&[("content-length", "1"), ("content-length", "2")], &[]),
        ),
        ("no content", get(&[("content-length", "1")])),
        (
            "short",
            upload(
                &[("content-length", "5")],
                &frame(DATA, END_STREAM, 3, b"1234"),
            ),
        ),
        (
            "long",
            upload(
                &[("content-length", "5")],
                &frame(DATA, END_STREAM, 3, b"123456"),
            ),
        ),
        ("trailers", upload(&[("content-length", "5")], &trailers)),
        ("open trailers", upload(&[], &unfinished)),
        ("connect", connect(&[("content-length", "5")])),
        ("connect, ended", {
            let mut ended = connect(&[("content-length", "5")]);
            ended[4] |= END_STREAM;
            ended
        }),
        ("connect with a path", connect(&[(":path", "/")])),
        ("connect with a scheme", connect(&[(":scheme", "https")])),
        ("extended", extended(&[("content-length", "5")])),
        ("extended, disabled", extended(&[])),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_malformed_request_leaves_the_other_streams_of_its_connection_alone() {
    for (name, frames) in malformed() {
        println!("{name}");
        let mut peer = Peer::new(1 << 16).await;
        peer.send(&headers(1, 0, &with("POST", "/", &[]))).await;
        peer.send(&frame(DATA, 0, 1, b"hel")).await;
        peer.send(&frames).await;
        let answer = peer.next_of(3).await;
        let is_refused = match answer.kind {
            RST_STREAM => answer.payload == [0, 0, 0, PROTOCOL_ERROR],
            HEADERS => answer.payload.starts_with(BAD_REQUEST),
            _ => false,
        };
        assert!(is_refused, "{name}: {answer:?}");
        peer.send(&frame(DATA, END_STREAM, 1, b"lo")).await;
        assert_eq!(
            peer.response(1).await,
            (OK.to_vec(), b"hello".to_vec()),
            "{name}"
        );
        peer.send(&headers(5, END_STREAM, &with("GET", "/?7", &[])))
            .await;
        assert_eq!(peer.response(5).await, (OK.to_vec(), pattern(7)), "{name}");
    }
}

/// Empty frames of DATA are allowed (RFC 9113, section 6.1).
#[tokio::test(start_paused = true)]
async fn empty_frames_of_content_leave_a_connection_alone() {
    let mut peer = Peer::new(1 << 16).await;
    peer.send(&headers(1, 0, &with("POST", "/", &[]))).await;
    for _ in 0..100 {
        peer.send(&frame(DATA, 0, 1, &[])).await;
    }
    peer.send(&frame(DATA, END_STREAM, 1, b"hello")).await;
    assert_eq!(peer.response(1).await, (OK.to_vec(), b"hello".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn an_unread_response_ends_although_others_of_its_connection_are_read() {
    for size in ["/?100", "/?1000000"] {
        let mut peer = Peer::new(0).await;
        peer.send(&headers(1, END_STREAM, &with("GET", size, &[])))
            .await;
        assert_eq!(peer.next_of(1).await.kind, HEADERS);
        let mut number = 3;
        let ended = loop {
            peer.send(&headers(number, END_STREAM, &with("GET", "/?10", &[])))
                .await;
            let window = frame(WINDOW_UPDATE, 0, number, &[0, 0, 0, 100]);
            peer.send(&window).await;
            let next = loop {
                let next = peer.next().await.expect("the connection goes on");
                let is_end = next.stream == number && next.flags & END_STREAM != 0;
                if next.stream == 1 || (is_end && next.kind == DATA) {
                    break next;
                }
            };
            if next.stream == 1 {
                break next;
            }
            assert!(number < 99, "{size}");
            number += 2;
            sleep(Duration::from_secs(10)).await;
        };
        assert_eq!(
            (ended.kind, &*ended.payload),
            (RST_STREAM, &[0, 0, 0, CANCEL][..])
        );
    }
}

/// The windows of all streams open by a byte each second.
#[tokio::test(start_paused = true)]
async fn responses_whose_windows_open_in_single_bytes_end() {
    for size in ["/?100", "/?1000000"] {
        let mut peer = Peer::new(0).await;
        let numbers: Vec<u8> = (0..100).map(|index| 2 * index + 1).collect();
        for number in &numbers {
            let get = headers(*number, END_STREAM, &with("GET", size, &[]));
            peer.send(&get).await;
        }
        let mut open = std::collections::BTreeSet::from_iter(numbers);
        let mut reset = 0;
        for second in 0..150 {
            if second % 10 == 0 {
                // Others keep the connection alive.
                let number = 201 + second / 5;
                peer.send(&headers(number, END_STREAM, &with("GET", "/?10", &[])))
                    .await;
                let window = frame(WINDOW_UPDATE, 0, number, &[0, 0, 0, 100]);
                peer.send(&window).await;
            }
            for number in &open {
                let window = frame(WINDOW_UPDATE, 0, *number, &[0, 0, 0, 1]);
                peer.send(&window).await;
            }
            let second = sleep(Duration::from_secs(1));
            tokio::pin!(second);
            loop {
                let next = tokio::select! {
                    () = &mut second => break,
                    next = peer.next() => next.expect("the connection goes on"),
                };
                assert_ne!(next.kind, GOAWAY, "{size}: {next:?}");
                reset += usize::from(next.kind == RST_STREAM);
                if next.kind == RST_STREAM || next.kind == DATA && next.flags & END_STREAM != 0 {
                    open.remove(&next.stream);
                }
            }
        }
        assert!(open.is_empty(), "{size}: {open:?}");
        // Once it is the only one, the last has as much time again.
        assert!(reset >= 99, "{size}: {reset}");
    }
}

/// One window of the connection for all of them, which opens slowly.
#[tokio::test(start_paused = true)]
async fn responses_that_wait_for_each_other_are_not_unread() {
    let mut peer = Peer::new(1 << 30).await;
    let numbers: Vec<u8> = (0..20).map(|index| 2 * index + 1).collect();
    for number in &numbers {
        peer.send(&headers(*number, END_STREAM, &with("GET", "/?100000", &[])))
            .await;
    }
    let mut left = numbers.len();
    let mut received = 0;
    while left > 0 {
        let next = timeout(Duration::from_secs(300), peer.next()).await;
        let next = next.expect("a frame in time").expect("the connection");
        assert!(![RST_STREAM, GOAWAY].contains(&next.kind), "{next:?}");
        if next.kind != DATA {
            continue;
        }
        received += next.payload.len();
        left -= usize::from(next.flags & END_STREAM != 0);
        // 2 kB/s.
        let length = u32::try_from(next.payload.len()).unwrap();
        sleep(Duration::from_millis(u64::from(length / 2))).await;
        if length > 0 {
            peer.send(&frame(WINDOW_UPDATE, 0, 0, &length.to_be_bytes()))
                .await;
        }
    }
    assert_eq!(received, 20 * 100_000);
}

/// Also beside requests that are answered. 1 kB/s is what GPRS has.
#[tokio::test(start_paused = true)]
async fn an_upload_in_single_bytes_is_refused_and_a_slow_one_arrives() {
    for (size, status) in [(1, REQUEST_TIMEOUT), (1000, OK)] {
        let mut peer = Peer::new(1 << 16).await;
        peer.send(&headers(1, 0, &with("POST", "/", &[]))).await;
        for second in 0..100 {
            let flags = if second == 99 { END_STREAM } else { 0 };
            peer.send(&frame(DATA, flags, 1, &vec![7; size])).await;
            if second % 10 == 5 {
                let stream = 3 + second / 5;
                let get = headers(stream | 1, END_STREAM, &with("GET", "/?10000", &[]));
                peer.send(&get).await;
                peer.send(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 39, 16]))
                    .await;
            }
            sleep(Duration::from_secs(1)).await;
        }
        let head = loop {
            let next = peer.next().await.expect("the connection goes on");
            if next.stream == 1 && next.kind == HEADERS {
                break next;
            }
        };
        assert!(head.payload.starts_with(status), "{size}: {head:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_over_http1_that_is_read_in_single_bytes_ends_and_a_slow_one_goes_on() {
    for (bytes, ends) in [(1, true), (1000, false)] {
        let (mut near, far) = duplex(1024);
        let (_stop, stopping) = watch::channel(false);
        tokio::spawn(testing::serve_stream(
            far,
            Version::HTTP_11,
            site(),
            stopping,
        ));
        let get = b"GET /?2000000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        near.write_all(get).await.unwrap();
        let mut has_ended = false;
        for _ in 0..1200 {
            sleep(Duration::from_secs(1)).await;
            let mut part = vec![0; bytes];
            if near.read(&mut part).await.unwrap_or(0) == 0 {
                has_ended = true;
                break;
            }
        }
        assert_eq!(has_ended, ends, "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upload_in_single_bytes_over_http1_is_refused_and_a_slow_one_arrives() {
    for (size, status) in [(1, "408"), (1000, "200")] {
        let (mut near, far) = duplex(1 << 20);
        let (_stop, stopping) = watch::channel(false);
        tokio::spawn(testing::serve_stream(
            far,
            Version::HTTP_11,
            site(),
            stopping,
        ));
        let head = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            100 * size
        );
        near.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..100 {
            // Refused, the connection ends.
            let _ = near.write_all(&vec![7; size]).await;
            sleep(Duration::from_secs(1)).await;
        }
        let mut line = [0; 12];
        near.read_exact(&mut line).await.unwrap();
        assert_eq!(&line[9..], status.as_bytes());
    }
}
