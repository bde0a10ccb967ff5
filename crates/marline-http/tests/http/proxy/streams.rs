//! Content that is passed on as it arrives.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use marline_http::Body;
use marline_http::client::HttpVersion;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::application::{Application, Then, field};
use super::{LIMIT, proxy, request, whole};
use crate::common::{VERSIONS, pattern, settled};

/// Content made of `parts` with this length, counted as they are taken.
struct Parts {
    left: usize,
    part: Bytes,
    taken: Arc<AtomicU64>,
    end: End,
    /// Comes when the content before a failure has arrived.
    arrived: Option<oneshot::Receiver<()>>,
}

#[derive(Clone, Debug)]
enum End {
    Whole,
    Trailers,
    Fails,
    Hangs,
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left > 0 {
            self.left -= 1;
            self.taken.fetch_add(self.part.len() as u64, SeqCst);
            return Poll::Ready(Some(Ok(Frame::data(self.part.clone()))));
        }
        match std::mem::replace(&mut self.end, End::Whole) {
            End::Whole => Poll::Ready(None),
            End::Trailers => {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sum", "7".parse().unwrap());
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            End::Fails => {
                let arrived = self.arrived.as_mut().map(Pin::new);
                if arrived.is_some_and(|arrived| arrived.poll(cx).is_pending()) {
                    self.end = End::Fails;
                    return Poll::Pending;
                }
                Poll::Ready(Some(Err(std::io::ErrorKind::Other.into())))
            }
            End::Hangs => {
                self.end = End::Hangs;
                Poll::Pending
            }
        }
    }
}

/// An echo application, over HTTP/1.1 or 2.
async fn echo() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let service = service_fn(|request: Request<hyper::body::Incoming>| async {
                    let mut response = Response::new(request.into_body());
                    let trailer = "x-sum".parse().unwrap();
                    response.headers_mut().insert("trailer", trailer);
                    Ok::<_, std::convert::Infallible>(response)
                });
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    address.to_string()
}

#[tokio::test]
async fn content_is_passed_on_in_both_directions_at_once() {
    let address = echo().await;
    let sent = pattern(300_000);
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&[format!("{scheme}://{address}")]).await;
        for version in VERSIONS {
            let body = Body::full(sent.clone());
            let response = request(&proxy, version, Method::POST, &[], body)
                .await
                .unwrap();
            let got = tokio::time::timeout(LIMIT, crate::common::read(response.into_body()));
            assert!(got.await.unwrap() == sent, "{scheme}, {version:?}");
        }
    }
}

#[tokio::test]
async fn trailers_are_passed_on() {
    let address = echo().await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&[format!("{scheme}://{address}")]).await;
        for version in VERSIONS {
            let parts = Parts {
                left: 3,
                part: Bytes::from_static(b"part"),
                taken: Arc::default(),
                end: End::Trailers,
                arrived: None,
            };
            let headers = [("te", "trailers"), ("trailer", "x-sum")];
            let body = Body::new(parts);
            let response = request(&proxy, version, Method::POST, &headers, body);
            let body = response.await.unwrap().into_body();
            let collected = tokio::time::timeout(LIMIT, body.collect()).await.unwrap();
            let collected = collected.unwrap();
            let trailers = collected.trailers().cloned().unwrap_or_default();
            assert_eq!(trailers.get("x-sum").unwrap(), "7", "{scheme}, {version:?}");
            assert_eq!(collected.to_bytes(), "partpartpart");
        }
    }
}

/// An application that reads nothing of the content until notified, and then counts it.
async fn reads_late(go: Arc<tokio::sync::Notify>) -> Application {
    Application::with(Arc::new(move |mut stream, header| {
        let go = Arc::clone(&go);
        Box::pin(async move {
            go.notified().await;
            let mut left: u64 = field(&header, "content-length")?.parse().ok()?;
            let mut buf = vec![0; 1 << 20];
            while left > 0 {
                left -= stream.read(&mut buf).await.ok().filter(|read| *read > 0)? as u64;
            }
            let done = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone";
            stream.write_all(done.as_bytes()).await.ok()?;
            Some(stream)
        })
    }))
    .await
}

#[tokio::test]
async fn an_upload_waits_for_an_application_that_does_not_read() {
    const TOTAL: usize = 256 << 20;
    const PART: usize = 1 << 20;
    for version in VERSIONS {
        let go = Arc::new(tokio::sync::Notify::new());
        let application = reads_late(Arc::clone(&go)).await;
        let proxy = proxy(&[application.url()]).await;
        let taken = Arc::new(AtomicU64::new(0));
        let body = Body::new(Parts {
            left: TOTAL / PART,
            part: vec![7; PART].into(),
            taken: Arc::clone(&taken),
            end: End::Whole,
            arrived: None,
        });
        let length = TOTAL.to_string();
        let headers = [("content-length", &*length)];
        let uploading = request(&proxy, version, Method::PUT, &headers, body);
        let (response, held) = tokio::join!(uploading, async {
            let held = settled("the upload waits", || taken.load(SeqCst)).await;
            go.notify_one();
            held
        });
        // The bytes held are in the windows of the client and in socket buffers.
        assert!(held < 48 << 20, "{version:?}: {held} bytes were taken");
        assert_eq!(whole(response.unwrap()).await.text, "done", "{version:?}");
        assert_eq!(taken.load(SeqCst), TOTAL as u64);
    }
}

#[tokio::test]
async fn an_application_waits_for_a_client_that_does_not_read() {
    let written = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&written);
    let application = Application::with(Arc::new(move |mut stream, _| {
        let written = Arc::clone(&counted);
        Box::pin(async move {
            const LENGTH: u64 = 1 << 30;
            let header = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
            stream.write_all(header.as_bytes()).await.ok()?;
            let part = vec![0; 1 << 20];
            for _ in 0..LENGTH >> 20 {
                stream.write_all(&part).await.ok()?;
                written.fetch_add(1 << 20, SeqCst);
            }
            Some(stream)
        })
    }))
    .await;
    let proxy = proxy(&[application.url()]).await;
    for version in VERSIONS {
        written.store(0, SeqCst);
        let response = request(&proxy, version, Method::GET, &[], Body::empty()).await;
        let response = response.unwrap();
        let sent = settled("the application waits", || written.load(SeqCst)).await;
        assert!(sent < 64 << 20, "{version:?}: {sent} bytes were sent");
        drop(response);
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_request_at_the_application() {
    for version in VERSIONS {
        let (left, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let application = Application::with(Arc::new(move |mut stream, _| {
            let left = left.clone();
            Box::pin(async move {
                let ended = stream.read(&mut [0; 16]).await;
                left.send(matches!(ended, Ok(0) | Err(_))).ok()?;
                None
            })
        }))
        .await;
        let proxy = proxy(&[application.url()]).await;
        let waiting = request(&proxy, version, Method::GET, &[], Body::empty());
        let short = tokio::time::timeout(Duration::from_millis(500), waiting).await;
        assert!(short.is_err(), "there is no response");
        let ended = tokio::time::timeout(LIMIT, seen.recv()).await;
        assert_eq!(ended, Ok(Some(true)), "{version:?}");
    }
}

#[tokio::test]
async fn an_upload_that_breaks_off_does_not_look_whole_to_the_application() {
    for end in [End::Fails, End::Hangs] {
        for version in VERSIONS {
            let (ended, mut seen) = tokio::sync::mpsc::unbounded_channel();
            let (arrives, arrived) = oneshot::channel();
            let arrives = Arc::new(Mutex::new(Some(arrives)));
            let application = Application::with(Arc::new(move |mut stream, _| {
                let (ended, arrives) = (ended.clone(), arrives.lock().unwrap().take());
                Box::pin(async move {
                    let mut content = Vec::new();
                    while content.windows(4).filter(|part| part == b"part").count() < 2 {
                        content.push(stream.read_u8().await.ok()?);
                    }
                    arrives?.send(()).ok()?;
                    let _ = stream.read_to_end(&mut content).await;
                    ended.send(content).ok()?;
                    None
                })
            }))
            .await;
            let proxy = proxy(&[application.url()]).await;
            let mut arrived = Some(arrived);
            let body = Body::new(Parts {
                left: 2,
                part: Bytes::from_static(b"part"),
                taken: Arc::default(),
                end: end.clone(),
                arrived: arrived.take_if(|_| matches!(end, End::Fails)),
            });
            let sending = request(&proxy, version, Method::POST, &[], body);
            match arrived {
                None => drop(sending.await),
                // The client leaves.
                Some(arrived) => tokio::select! {
                    _ = sending => panic!("{version:?}: there is no answer"),
                    arrived = arrived => arrived.unwrap(),
                },
            }
            let content = tokio::time::timeout(LIMIT, seen.recv()).await;
            let content = content
                .unwrap_or_else(|_| panic!("{version:?}: {end:?}"))
                .unwrap();
            let text = String::from_utf8_lossy(&content);
            assert!(!text.ends_with("0\r\n\r\n"), "{version:?}: {text:?}");
        }
    }
}

#[tokio::test]
async fn content_that_the_application_refuses_beforehand_is_not_sent() {
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch";
    let application = Application::that_sends(refusal, super::application::Then::Close).await;
    let proxy = proxy(&[application.url()]).await;
    // The other versions have no client here that waits.
    let mut client = tokio::net::TcpStream::connect(proxy.address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(LIMIT, client.read_to_end(&mut answer));
    read.await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(
        field(&application.last_request(), "expect"),
        Some("100-continue")
    );
}

#[tokio::test]
async fn content_that_the_application_asks_for_is_sent_then() {
    let application = Application::with(Arc::new(|mut stream, _| {
        Box::pin(async move {
            stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await
                .ok()?;
            let mut content = [0; 5];
            stream.read_exact(&mut content).await.ok()?;
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
                .await
                .ok()?;
            stream.write_all(&content).await.ok()?;
            None
        })
    }))
    .await;
    let proxy = proxy(&[application.url()]).await;
    let mut client = tokio::net::TcpStream::connect(proxy.address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    let read = tokio::time::timeout(LIMIT, client.read_exact(&mut interim));
    read.await.unwrap().unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"hello").await.unwrap();
    let mut answer = String::new();
    let read = tokio::time::timeout(LIMIT, client.read_to_string(&mut answer));
    read.await.unwrap().unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("hello"),
        "{answer}"
    );
}

#[tokio::test]
async fn smuggled_requests_do_not_reach_the_application() {
    for (head, status) in [
        // The ignored length is removed.
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
            "200",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 30\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
            "200",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhelloGET /evil HTTP/1.1\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n folded: b\r\n\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\rGET /evil HTTP/1.1\r\n\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
    ] {
        let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let application = Application::with(Arc::new(move |mut stream, header| {
            Box::pin(async move {
                if field(&header, "transfer-encoding").is_some() {
                    assert_eq!(field(&header, "content-length"), None);
                    stream.read_exact(&mut [0; 5]).await.ok()?;
                }
                stream.write_all(hello.as_bytes()).await.ok()?;
                Some(stream)
            })
        }))
        .await;
        let proxy = proxy(&[application.url()]).await;
        let mut client = tokio::net::TcpStream::connect(proxy.address).await.unwrap();
        client.write_all(head.as_bytes()).await.unwrap();
        let _ = client.shutdown().await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(LIMIT, client.read_to_end(&mut answer))
            .await
            .unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(
            answer.is_empty() || answer[9..].starts_with(status),
            "{head:?}: {answer}"
        );
        let seen = application.requests.lock().unwrap().concat();
        assert!(!seen.contains("evil"), "{head:?}: {seen}");
    }
}

#[tokio::test]
async fn content_of_get_without_a_length_is_passed_on() {
    let address = echo().await;
    for scheme in ["http", "h2c"] {
        let proxy = proxy(&[format!("{scheme}://{address}")]).await;
        for version in VERSIONS {
            let parts = |left| Parts {
                left,
                part: Bytes::from_static(b"hello"),
                taken: Arc::default(),
                end: End::Whole,
                arrived: None,
            };
            // The client's hyper sends trailers over HTTP/1.1 only with this field.
            let chunked = [("transfer-encoding", "chunked")];
            let headers: &[(&str, &str)] = match version {
                HttpVersion::Http11 | HttpVersion::Http11Cleartext => &chunked,
                _ => &[],
            };
            let sent = Body::new(parts(2));
            let response = request(&proxy, version, Method::GET, headers, sent).await;
            let got = whole(response.unwrap()).await;
            assert_eq!(got.text, "hellohello", "{scheme}, {version:?}");
        }
    }
}

#[tokio::test]
async fn equal_lengths_are_passed_on_as_one() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let application = Application::that_sends(answer, Then::Close).await;
    let proxy = proxy(&[application.url()]).await;
    let twice = [("content-length", "5"), ("content-length", "5")];
    for (version, lengths) in [
        (HttpVersion::Http3, &[("content-length", "5, 5")][..]),
        (HttpVersion::Http2, &twice),
    ] {
        let body = Body::full("hello");
        let response = request(&proxy, version, Method::POST, lengths, body).await;
        assert_eq!(response.unwrap().status(), 200, "{version:?}");
        let seen = application.last_request();
        let lengths: Vec<_> = seen
            .lines()
            .filter(|line| line.to_ascii_lowercase().starts_with("content-length"))
            .collect();
        assert_eq!(lengths, ["content-length: 5"], "{version:?}: {seen}");
    }
}
