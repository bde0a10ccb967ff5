//! The server, with a client that writes HTTP/3 by hand.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use marline::{Connection, ConnectionError, Runtime, TransportConfig};
use marline_h3::ErrorCode;
use marline_h3::frame::FrameType;
use marline_http::limits;
use marline_http::server::{Handle, Site};
use marline_http::{Body, BoxError};
use marline_sim::Host;
use tower::util::BoxCloneSyncService;

use super::peer::{
    Answer, CONTROL, CONTROL_WITH_DATAGRAMS, closed_with, connect, data, exchange, frame, headers,
    read_answer, request, response,
};
use crate::setup::{Serving, client, client_of, object, run, serve, serve_site};

/// The setup of a test: a connection on which nothing was sent, to an echo server.
struct Peer {
    connection: Connection,
    host: Host,
}

fn with_echo<T>(test: impl AsyncFnOnce(&Peer) -> T) -> T {
    run(async move |network| {
        let Serving { address, .. } = serve_site(&network.servers[0], echo()).await;
        let client = client(&network.client, []);
        let peer = Peer {
            connection: connect(&client, address).await.unwrap(),
            host: network.client.clone(),
        };
        test(&peer).await
    })
}

/// Answers with the content of the request, or with 400 if that is not complete.
fn echo() -> Site {
    BoxCloneSyncService::new(tower::service_fn(async |request: Request<Body>| {
        let mut response = Response::new(Body::empty());
        match request.into_body().collect().await {
            Ok(content) => *response.body_mut() = Body::full(content.to_bytes()),
            Err(_) => *response.status_mut() = http::StatusCode::BAD_REQUEST,
        }
        Ok::<_, Infallible>(response)
    }))
}

/// Sends `bytes` on a unidirectional stream.
async fn send_uni(connection: &Connection, bytes: &[u8]) -> marline::SendStream {
    let mut stream = connection.open_uni().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

#[test]
fn content_after_an_empty_data_frame_arrives() {
    let post = request("POST", "/", &[]);
    let bytes = [post, data(b"hello"), data(b""), data(b"world")].concat();
    let answer = with_echo(async |peer| exchange(&peer.connection, &bytes).await);
    assert_eq!(answer, response(200, b"helloworld"));
}

#[test]
fn content_in_single_bytes_arrives() {
    let bytes = [request("POST", "/", &[]), data(b"hello"), data(b"world")].concat();
    let answer = with_echo(async |peer| {
        let (mut send, mut recv) = peer.connection.open_bi().await.unwrap();
        for byte in bytes.chunks(1) {
            send.write_all(byte).await.unwrap();
            peer.host.sleep(Duration::from_millis(1)).await;
        }
        send.finish().unwrap();
        read_answer(&mut recv).await
    });
    assert_eq!(answer, response(200, b"helloworld"));
}

/// RFC 9114, section 4.1.
#[test]
fn trailers_end_a_request() {
    let trailers = headers(&[("checksum", "1")]);
    let bytes = [request("POST", "/", &[]), data(b"hello"), trailers].concat();
    let answer = with_echo(async |peer| exchange(&peer.connection, &bytes).await);
    assert_eq!(answer, response(200, b"hello"));
}

/// RFC 9114, section 4.1.2.
#[test]
fn malformed_requests_are_reset_and_others_go_on() {
    let get = |fields| request("GET", "/", fields);
    let malformed = [
        get(&[(":path", "/")]),
        get(&[(":status", "200")]),
        get(&[("host", "other.test")]),
        get(&[("connection", "close")]),
        get(&[("te", "gzip")]),
        get(&[("Accept", "*/*")]),
        get(&[("a", "b\r\nc: d")]),
        get(&[("a", " b")]),
        get(&[("a", "b\t")]),
        get(&[("content-length", "1"), ("content-length", "2")]),
        headers(&[(":method", "GET"), (":scheme", "https"), (":path", "/")]),
        [
            request("POST", "/", &[("content-length", "4")]),
            data(b"hello"),
        ]
        .concat(),
        [
            request("POST", "/", &[("content-length", "6")]),
            data(b"hello"),
        ]
        .concat(),
    ];
    with_echo(async |peer| {
        for bytes in &malformed {
            let answer = exchange(&peer.connection, bytes).await;
            assert_eq!(
                answer,
                Answer::Reset(ErrorCode::MESSAGE_ERROR),
                "{bytes:x?}"
            );
        }
        let answer = exchange(&peer.connection, &request("GET", "/", &[])).await;
        assert_eq!(answer, response(200, b""));
    });
}

/// RFC 9114, section 4.1.2: a site that passes on the announced length.
#[test]
fn content_of_the_wrong_length_never_looks_whole_to_a_site() {
    let whole = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&whole);
    let site = BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
        let seen = Arc::clone(&seen);
        async move {
            let announced = request.headers()["content-length"].to_str().unwrap();
            let mut left: usize = announced.parse().unwrap();
            let mut content = request.into_body();
            while left > 0
                && let Some(Ok(frame)) = content.frame().await
            {
                left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            }
            seen.fetch_add(usize::from(left == 0), Relaxed);
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    }));
    run(async |network| {
        let Serving { address, .. } = serve_site(&network.servers[0], site).await;
        let client = client(&network.client, []);
        let connection = connect(&client, address).await.unwrap();
        let mut expected = 0;
        for (length, parts) in [
            ("0", &[&b"hello"[..]][..]),
            ("4", &[b"hello"]),
            ("5", &[b"hello", b"!"]),
            ("6", &[b"hello"]),
            ("0", &[]),
            ("5", &[b"hel", b"lo"]),
        ] {
            let total: usize = parts.iter().map(|part| part.len()).sum();
            expected += usize::from(total.to_string() == length);
            let mut bytes = request("POST", "/", &[("content-length", length)]);
            parts.iter().for_each(|part| bytes.extend(data(part)));
            exchange(&connection, &bytes).await;
            assert_eq!(whole.load(Relaxed), expected, "{length}, {parts:?}");
        }
    });
}

/// RFC 9114, section 4.1.2, also where the site does not read the content.
#[test]
fn a_request_with_more_content_than_it_announces_is_reset() {
    let site = || {
        BoxCloneSyncService::new(tower::service_fn(async |_: Request<Body>| {
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }))
    };
    run(async |network| {
        let Serving { address, .. } = serve_site(&network.servers[0], site()).await;
        let client = client(&network.client, []);
        let connection = connect(&client, address).await.unwrap();
        for (length, content, expected) in [
            ("0", &b"hello"[..], None),
            ("4", b"hello", None),
            ("0", b"", Some(200)),
            ("5", b"hello", Some(200)),
        ] {
            let head = request("POST", "/", &[("content-length", length)]);
            let answer = exchange(&connection, &[head, data(content)].concat()).await;
            let expected = match expected {
                Some(status) => response(status, b""),
                None => Answer::Reset(ErrorCode::MESSAGE_ERROR),
            };
            assert_eq!(answer, expected, "{length}, {content:?}");
        }
    });
}

/// RFC 9114, section 4.1.
#[test]
fn an_incomplete_request_is_reset() {
    let answer = with_echo(async |peer| exchange(&peer.connection, &[]).await);
    assert_eq!(answer, Answer::Reset(ErrorCode::REQUEST_INCOMPLETE));
}

/// RFC 9114, section 4.2.2.
#[test]
fn a_header_above_the_limit_is_answered_with_431() {
    let long = "x".repeat(10_000);
    let fields: Vec<_> = ["a", "b", "c", "d"].map(|name| (name, &long[..])).into();
    let section = {
        let whole = fields
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()].concat());
        whole.collect::<Vec<_>>()
    };
    // The announced length never arrives: the answer does not wait for it.
    let unfinished = [&[0x01, 0xbf, 0xff, 0xff, 0xff][..], &section].concat();
    with_echo(async |peer| {
        let (mut send, mut recv) = peer.connection.open_bi().await.unwrap();
        send.write_all(&unfinished).await.unwrap();
        assert_eq!(read_answer(&mut recv).await, response(431, b""));
        let stopped = send.stopped().await.unwrap();
        assert_eq!(stopped, Some(ErrorCode::NO_ERROR.value()));
        let answer = exchange(&peer.connection, &request("GET", "/", &[])).await;
        assert_eq!(answer, response(200, b""), "others go on");
    });
}

/// The header is small when it is compressed.
#[test]
fn a_header_that_becomes_too_large_is_answered_with_431() {
    let fields = [("accept", "*/*"); 1000];
    let bytes = request("GET", "/", &fields);
    assert!(bytes.len() < 2000);
    let answer = with_echo(async |peer| exchange(&peer.connection, &bytes).await);
    assert_eq!(answer, response(431, b""));
}

/// A frame of an unknown type is skipped, regardless of its length; the time for a header is
/// limited.
#[test]
fn a_header_that_does_not_come_is_not_awaited_for_ever() {
    with_echo(async |peer| {
        let (mut send, mut recv) = peer.connection.open_bi().await.unwrap();
        let unknown = [&[0x21][..], &[0xff; 8]].concat();
        send.write_all(&unknown).await.unwrap();
        let answer = read_answer(&mut recv).await;
        assert_eq!(answer, Answer::Reset(ErrorCode::REQUEST_CANCELLED));
    });
}

/// RFC 9114, sections 6.2.1, 7.2 and 8.
#[test]
fn violations_close_the_connection_with_their_code() {
    let control = |frames: &[u8]| [CONTROL, frames].concat();
    for (bytes, code) in [
        (vec![0x00, 0x00, 0x00], ErrorCode::MISSING_SETTINGS),
        (control(&data(b"a")), ErrorCode::FRAME_UNEXPECTED),
        (control(&[0x04, 0x00]), ErrorCode::FRAME_UNEXPECTED),
        (
            vec![0x00, 0x04, 0x02, 0x02, 0x00],
            ErrorCode::SETTINGS_ERROR,
        ),
        (control(&[0x03, 0x01, 0x00]), ErrorCode::ID_ERROR),
        (vec![0x01, 0x00], ErrorCode::STREAM_CREATION_ERROR),
        (
            vec![0x02, 0x3f, 0xff, 0xff, 0x7f],
            ErrorCode::QPACK_ENCODER_STREAM_ERROR,
        ),
    ] {
        let closed = with_echo(async |peer| {
            let _stream = send_uni(&peer.connection, &bytes).await;
            closed_with(&peer.connection).await
        });
        assert_eq!(closed, code, "{bytes:x?}");
    }
    let closed = with_echo(async |peer| {
        let (mut send, _recv) = peer.connection.open_bi().await.unwrap();
        send.write_all(&data(b"a")).await.unwrap();
        closed_with(&peer.connection).await
    });
    assert_eq!(closed, ErrorCode::FRAME_UNEXPECTED);
}

/// RFC 9297, section 2.1.1.
#[test]
fn http_datagrams_without_those_of_quic_are_refused() {
    let closed = run(async move |network| {
        let Serving { address, .. } = serve_site(&network.servers[0], echo()).await;
        let transport = TransportConfig {
            datagram_receive_buffer: None,
            ..TransportConfig::default()
        };
        let client = client_of(&network.client, [], transport);
        let connection = connect(&client, address).await.unwrap();
        let _stream = send_uni(&connection, CONTROL_WITH_DATAGRAMS).await;
        closed_with(&connection).await
    });
    assert_eq!(closed, ErrorCode::SETTINGS_ERROR);
    with_echo(async |peer| {
        let _stream = send_uni(&peer.connection, CONTROL_WITH_DATAGRAMS).await;
        let answer = exchange(&peer.connection, &request("GET", "/", &[])).await;
        assert_eq!(answer, response(200, b""));
    });
}

/// RFC 9114, section 6.2.1.
#[test]
fn closing_a_critical_stream_closes_the_connection() {
    let closed = with_echo(async |peer| {
        let mut stream = send_uni(&peer.connection, CONTROL).await;
        stream.finish().unwrap();
        closed_with(&peer.connection).await
    });
    assert_eq!(closed, ErrorCode::CLOSED_CRITICAL_STREAM);
    let closed = with_echo(async |peer| {
        let mut control = peer.connection.accept_uni().await.unwrap();
        control.stop(0).unwrap();
        closed_with(&peer.connection).await
    });
    assert_eq!(closed, ErrorCode::CLOSED_CRITICAL_STREAM);
}

/// RFC 9114, section 6.2.3.
#[test]
fn streams_of_unknown_types_are_stopped() {
    with_echo(async |peer| {
        let stream = send_uni(&peer.connection, &[0x21, 1, 2, 3]).await;
        let stopped = stream.stopped().await.unwrap();
        assert_eq!(stopped, Some(ErrorCode::STREAM_CREATION_ERROR.value()));
        let answer = exchange(&peer.connection, &request("GET", "/", &[])).await;
        assert_eq!(answer, response(200, b""));
    });
}

#[test]
fn a_stream_of_an_unknown_type_delays_no_other() {
    let closed = with_echo(async |peer| {
        let mut unknown = peer.connection.open_uni().await.unwrap();
        let mut control = peer.connection.open_uni().await.unwrap();
        // Both arrive in one packet.
        unknown.write_all(&[0x21, 1, 2, 3]).await.unwrap();
        let wrong = [CONTROL, &data(b"a")].concat();
        control.write_all(&wrong).await.unwrap();
        closed_with(&peer.connection).await
    });
    assert_eq!(closed, ErrorCode::FRAME_UNEXPECTED);
}

/// The index of the first of two objects of the same size to arrive, if the second gets another
/// priority by `updates`.
fn first_of_two(updates: &[u8], is_before: bool) -> usize {
    let objects = ["/0", "/1"].map(|path| (path.to_owned(), object(500_000, Duration::ZERO)));
    run(async |network| {
        let serving = serve(&network.servers[0], BTreeMap::from(objects.clone())).await;
        let client = client(&network.client, []);
        let connection = connect(&client, serving.address).await.unwrap();
        let mut control = send_uni(&connection, CONTROL).await;
        if is_before {
            control.write_all(updates).await.unwrap();
            network.client.sleep(Duration::from_millis(100)).await;
        }
        let mut answers = Vec::new();
        for path in ["/0", "/1"] {
            let (mut send, recv) = connection.open_bi().await.unwrap();
            send.write_all(&request("GET", path, &[])).await.unwrap();
            send.finish().unwrap();
            answers.push(recv);
        }
        if !is_before {
            network.client.sleep(Duration::from_millis(60)).await;
            control.write_all(updates).await.unwrap();
        }
        let [mut first, mut second] = <[_; 2]>::try_from(answers).unwrap();
        tokio::select! {
            biased;
            _ = read_answer(&mut first) => 0,
            _ = read_answer(&mut second) => 1,
        }
    })
}

/// RFC 9218, section 7.
#[test]
fn priority_updates_reorder_responses() {
    assert_eq!(first_of_two(&[], false), 0);
    let urgent = frame(FrameType::PRIORITY_UPDATE_REQUEST, b"\x04u=0");
    assert_eq!(first_of_two(&urgent, true), 1, "before the request");
    assert_eq!(first_of_two(&urgent, false), 1, "during the response");
}

/// A request whose response takes a while.
async fn slow_request(connection: &Connection) -> marline::RecvStream {
    let (mut send, recv) = connection.open_bi().await.unwrap();
    send.write_all(&request("GET", "/slow", &[])).await.unwrap();
    send.finish().unwrap();
    recv
}

/// The setup of a test of a stopping server.
struct Stopping {
    connection: Connection,
    handle: Handle,
    slow: marline::RecvStream,
}

/// RFC 9114, section 5.2.
#[test]
fn a_stopping_server_rejects_requests_and_refuses_connections() {
    let objects = BTreeMap::from([("/slow".to_owned(), object(10, Duration::from_secs(5)))]);
    run(async |network| {
        let serving = serve(&network.servers[0], objects).await;
        let client = client(&network.client, []);
        let connection = connect(&client, serving.address).await.unwrap();
        let mut stopping = Stopping {
            slow: slow_request(&connection).await,
            handle: serving.handle,
            connection,
        };
        network.client.sleep(Duration::from_secs(1)).await;
        stopping.handle.shut_down();
        // Until then, a client need not know.
        network.client.sleep(2 * limits::DRAIN).await;
        let answer = exchange(&stopping.connection, &request("GET", "/slow", &[])).await;
        assert_eq!(answer, Answer::Reset(ErrorCode::REQUEST_REJECTED));
        let refused = connect(&client, serving.address).await;
        let Err(ConnectionError::PeerTransport { code, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(code, marline::ErrorCode::CONNECTION_REFUSED);
        let answer = read_answer(&mut stopping.slow).await;
        let Answer::Response { status, content } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!((status, content.len()), (200, 10), "it was in progress");
    });
}

/// Reads a byte of a response each second, with a window of `window` bytes; returns when it was reset, if it was.
fn read_slowly(window: u64, bytes: usize) -> Option<Duration> {
    let objects = BTreeMap::from([("/large".to_owned(), object(1 << 20, Duration::ZERO))]);
    run(async |network| {
        let serving = serve(&network.servers[0], objects).await;
        let client = client_of(
            &network.client,
            [],
            TransportConfig {
                stream_receive_window: Some(window),
                max_stream_receive_window: window,
                ..TransportConfig::default()
            },
        );
        let connection = connect(&client, serving.address).await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&request("GET", "/large", &[]))
            .await
            .unwrap();
        send.finish().unwrap();
        let host = &network.client;
        let start = host.now();
        while host.now() - start < Duration::from_secs(600) {
            host.sleep(Duration::from_secs(1)).await;
            match recv.read_chunk(bytes).await {
                Ok(_) => {}
                Err(_) => return Some(host.now() - start),
            }
        }
        None
    })
}

#[test]
fn a_response_that_moves_by_single_bytes_is_given_up() {
    let given_up = read_slowly(64, 1).unwrap();
    assert!(given_up >= Duration::from_secs(55), "{given_up:?}");
    // Data that had arrived before is read first.
    assert!(given_up <= Duration::from_secs(60 + 64 + 2), "{given_up:?}");
}

#[test]
fn a_slow_response_goes_on() {
    assert_eq!(read_slowly(4096, 200), None);
}

/// Content that never arrives.
struct Waiting(Arc<AtomicUsize>);

impl http_body::Body for Waiting {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn responses_whose_content_waits_end_with_their_stream_and_connection() {
    let waiting = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&waiting);
    let site = Site::new(tower::service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Relaxed);
        let body = Body::new(Waiting(Arc::clone(&count)));
        std::future::ready(Ok::<_, Infallible>(Response::new(body)))
    }));
    run(async |network| {
        let Serving { address, .. } = serve_site(&network.servers[0], site).await;
        let client = client(&network.client, []);
        let connection = connect(&client, address).await.unwrap();
        let mut streams = Vec::new();
        for _ in 0..3 {
            let (mut send, recv) = connection.open_bi().await.unwrap();
            send.write_all(&request("GET", "/", &[])).await.unwrap();
            send.finish().unwrap();
            streams.push(recv);
        }
        let pause = || network.client.sleep(Duration::from_secs(1));
        pause().await;
        assert_eq!(waiting.load(Relaxed), 3);
        streams.remove(0).stop(0).unwrap();
        pause().await;
        assert_eq!(waiting.load(Relaxed), 2);
        connection.close(0, b"");
        pause().await;
        assert_eq!(waiting.load(Relaxed), 0);
    });
}

/// 1 kB/s is what GPRS has.
#[test]
fn an_upload_in_single_bytes_is_refused_and_a_slow_one_arrives() {
    for (size, status) in [(1, 408), (1000, 200)] {
        let answer = with_echo(async |peer| {
            let (mut send, mut recv) = peer.connection.open_bi().await.unwrap();
            send.write_all(&request("POST", "/", &[])).await.unwrap();
            for _ in 0..100 {
                if send.write_all(&data(&vec![7; size])).await.is_err() {
                    break;
                }
                peer.host.sleep(Duration::from_secs(1)).await;
            }
            // Fails if the server has stopped the stream.
            let _ = send.finish();
            read_answer(&mut recv).await
        });
        let expected = match status {
            200 => response(200, &vec![7; 100 * size]),
            _ => response(status, b""),
        };
        assert_eq!(answer, expected);
    }
}
