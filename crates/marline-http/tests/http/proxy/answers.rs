//! Responses of applications as clients get them, and requests as applications get them.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use marline_http::Body;
use marline_http::proxy::{ClientFields, ForwardedFields};
use marline_http::tcp::socket2;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::application::{Application, Then, field};
use super::{LIMIT, get, proxy, proxy_with, request, whole};
use crate::common::VERSIONS;

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\
    Connection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\n\r\nhello";

#[tokio::test]
async fn responses_are_passed_on_without_the_fields_of_one_connection() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    for version in VERSIONS {
        let got = get(&proxy, version).await;
        assert_eq!((got.status, &*got.text), (StatusCode::OK, "hello"));
        assert_eq!(got.headers["content-type"], "text/plain");
        assert_eq!(got.headers["content-length"], "5");
        assert_eq!(got.headers["via"], "1.1 marline");
        for removed in ["x-private", "keep-alive"] {
            assert!(!got.headers.contains_key(removed), "{version:?}: {removed}");
        }
    }
    // All over one connection to the application.
    assert_eq!(
        application
            .connections
            .load(std::sync::atomic::Ordering::SeqCst),
        1
    );
}

#[tokio::test]
async fn the_application_learns_who_the_client_is_and_what_it_asked_for() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.forwarded = ForwardedFields::Both;
    })
    .await;
    let claims = [
        ("x-forwarded-for", "10.0.0.1"),
        ("x_real_ip", "10.0.0.1"),
        ("x-real-ip", "10.0.0.1"),
        ("x-forwarded-user", "admin"),
        ("x-forwarded-protocol", "https"),
        ("front-end-https", "on"),
        ("x-url-scheme", "https"),
        ("x-cluster-client-ip", "10.0.0.1"),
        ("cf-connecting-ip", "10.0.0.1"),
    ];
    for version in VERSIONS {
        let response = request(&proxy, version, Method::GET, &claims, Body::empty());
        whole(response.await.unwrap()).await;
        let seen = application.last_request();
        assert!(seen.starts_with("GET /path?query HTTP/1.1\r\n"), "{seen}");
        let host = proxy.address.to_string();
        assert_eq!(field(&seen, "host"), Some(&*host), "{seen}");
        assert_eq!(field(&seen, "x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(field(&seen, "x-forwarded-host"), Some(&*host));
        assert_eq!(field(&seen, "x-forwarded-proto"), Some("https"));
        let element = format!("for=127.0.0.1;host=\"{host}\";proto=https");
        assert_eq!(field(&seen, "forwarded"), Some(&*element));
        let removed = claims[1..].iter().map(|(name, _)| *name);
        for removed in removed.chain(["transfer-encoding", "content-length"]) {
            assert_eq!(field(&seen, removed), None, "{version:?}: {seen}");
        }
    }
}

#[tokio::test]
async fn what_trusted_proxies_say_of_the_client_is_continued() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.client_fields = ClientFields::Append;
        config.preserve_host = false;
    })
    .await;
    let claims = [("x-forwarded-for", "10.0.0.1")];
    let response = request(&proxy, VERSIONS[3], Method::GET, &claims, Body::empty());
    whole(response.await.unwrap()).await;
    let seen = application.last_request();
    assert_eq!(field(&seen, "x-forwarded-for"), Some("10.0.0.1, 127.0.0.1"));
    let host = application.address.to_string();
    assert_eq!(field(&seen, "host"), Some(&*host));
}

#[tokio::test]
async fn responses_without_content_have_none_whatever_they_announce() {
    for (method, answer) in [
        (
            Method::HEAD,
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        ),
        (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            Method::GET,
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
        ),
        (
            Method::GET,
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 7\r\n\r\n",
        ),
    ] {
        let application = Application::that_sends(answer, Then::Continue).await;
        let proxy = proxy(&[application.url()]).await;
        for version in VERSIONS {
            let response = request(&proxy, version, method.clone(), &[], Body::empty());
            let got = whole(response.await.unwrap()).await;
            assert_eq!(got.text, "", "{version:?}: {answer}");
            let status: u16 = answer[9..12].parse().unwrap();
            assert_eq!(got.status, status);
            if method == Method::HEAD {
                assert_eq!(got.headers["content-length"], "1000", "{version:?}");
            }
        }
    }
}

#[tokio::test]
async fn errors_of_the_proxy_have_no_content_in_answer_to_head() {
    let proxy = proxy(&["http://127.0.0.1:1".to_owned()]).await;
    for version in VERSIONS {
        let response = request(&proxy, version, Method::HEAD, &[], Body::empty());
        let got = whole(response.await.unwrap()).await;
        assert_eq!((got.status.as_u16(), &*got.text), (502, ""), "{version:?}");
        assert!(got.headers.contains_key("content-length"), "{version:?}");
    }
}

#[tokio::test]
async fn interim_responses_are_not_taken_for_the_final_one() {
    let answer = format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{HELLO}");
    let application = Application::that_sends(answer, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    for version in VERSIONS {
        assert_eq!(get(&proxy, version).await.text, "hello");
    }
}

#[tokio::test]
async fn methods_that_proxies_do_not_pass_on_are_refused_with_a_reason() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    for version in VERSIONS {
        let response = request(&proxy, version, Method::TRACE, &[], Body::empty());
        let got = whole(response.await.unwrap()).await;
        assert_eq!(got.status, StatusCode::NOT_IMPLEMENTED);
        assert!(got.text.contains("TRACE"), "{}", got.text);
    }
    assert!(application.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn requests_that_servers_may_read_differently_are_refused() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    for (head, status) in [
        ("GET * HTTP/1.1\r\nHost: a", "400"),
        ("GET / HTTP/1.1\r\nHost: user@a", "400"),
        ("GET http://user@a/ HTTP/1.1\r\nHost: a", "400"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked",
            "501",
        ),
    ] {
        let mut stream = tokio::net::TcpStream::connect(proxy.address).await.unwrap();
        let head = format!("{head}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut begin = [0; 12];
        let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut begin)).await;
        read.unwrap().unwrap();
        assert_eq!(&begin[9..], status.as_bytes(), "{head}");
    }
    assert!(application.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_request_that_runs_in_a_circle_ends() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    let via = ["1.1 marline"; 16].join(", ");
    let headers = [("via", &*via)];
    let response = request(&proxy, VERSIONS[3], Method::GET, &headers, Body::empty());
    let got = whole(response.await.unwrap()).await;
    assert_eq!(got.status, StatusCode::BAD_GATEWAY);
    assert!(got.text.contains("loop"), "{}", got.text);
}

/// An application whose response has no end but that of its connection, which is reset once a client `has` its content:
/// a reset discards what the proxy has not read.
async fn cut(has: Arc<Notify>) -> Application {
    Application::with(Arc::new(move |mut stream, _| {
        let has = Arc::clone(&has);
        Box::pin(async move {
            let begin = b"HTTP/1.0 200 OK\r\n\r\nhello";
            stream.write_all(begin).await.ok()?;
            has.notified().await;
            socket2::SockRef::from(&stream)
                .set_linger(Some(Duration::ZERO))
                .ok()?;
            None
        })
    }))
    .await
}

/// Without a length, clients of HTTP/1.0 take the end of a connection for that of its content.
#[tokio::test]
async fn a_response_without_a_length_that_is_reset_is_whole_for_no_client() {
    let has = Arc::new(Notify::new());
    let application = cut(Arc::clone(&has)).await;
    let proxy = proxy(&[application.url()]).await;
    for version in VERSIONS {
        let response = request(&proxy, version, Method::GET, &[], Body::empty()).await;
        let mut download = response.unwrap().into_body();
        let content = download.chunk().await.unwrap();
        assert_eq!(content.as_deref(), Some(&b"hello"[..]), "{version:?}");
        has.notify_one();
        assert!(download.chunk().await.is_err(), "{version:?}");
    }
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut begin = Vec::new();
    while !begin.ends_with(b"hello") {
        begin.push(stream.read_u8().await.unwrap());
    }
    has.notify_one();
    let read = stream.read_to_end(&mut Vec::new()).await;
    assert!(read.is_err(), "{read:?}");
}
