//! Applications that are slow, broken or hostile: the right status, or an aborted response, never a truncated one that
//! looks complete.

use std::time::Duration;

use http::{Method, StatusCode};
use marline_http::Body;

use super::application::{Application, Then};
use super::{LIMIT, get, proxy, proxy_with, request};
use crate::common::VERSIONS;

#[tokio::test]
async fn an_application_that_is_not_there_is_502_with_the_reason() {
    // A port that was free a moment ago.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let proxy = proxy(&[url]).await;
    for version in VERSIONS {
        let got = get(&proxy, version).await;
        assert_eq!(got.status, StatusCode::BAD_GATEWAY);
        assert!(
            got.text.contains("cannot be reached: Connection refused"),
            "{}",
            got.text
        );
        assert_eq!(
            got.headers["proxy-status"],
            "marline; error=destination_unavailable"
        );
    }
}

#[tokio::test]
async fn an_application_that_does_not_answer_is_504_with_the_reason() {
    let application = Application::that_sends("", Then::Hang).await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.response_timeout = Duration::from_millis(200);
    })
    .await;
    for version in VERSIONS {
        let got = get(&proxy, version).await;
        assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT);
        assert!(
            got.text.contains("did not respond within 0.2 s"),
            "{}",
            got.text
        );
    }
}

#[tokio::test]
async fn a_response_that_cannot_be_read_is_502_with_the_reason() {
    let large = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(1000));
    for (answer, then) in [
        ("", Then::Close),
        ("", Then::Reset),
        ("HTTP/1.1 200 OK\r\nContent-Le", Then::Close),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            Then::Hang,
        ),
        ("HTTP/1.1 200 OK\r\nBad Name: 1\r\n\r\n", Then::Hang),
        ("HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n", Then::Hang),
        ("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", Then::Hang),
        ("HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", Then::Hang),
        ("HTTP/1.1 2000 OK\r\n\r\n", Then::Hang),
        ("not HTTP at all, but rather long\r\n\r\n", Then::Hang),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            Then::Hang,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            Then::Hang,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
            Then::Hang,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            Then::Hang,
        ),
        (&*large, Then::Hang),
        (&*many, Then::Hang),
    ] {
        let application = Application::that_sends(answer, then).await;
        for version in VERSIONS {
            let proxy = proxy_with(&[application.url()], |config| {
                config.response_timeout = Duration::from_secs(10);
            })
            .await;
            let got = get(&proxy, version).await;
            let shown = &answer[..answer.len().min(80)];
            assert_eq!(
                got.status,
                StatusCode::BAD_GATEWAY,
                "{version:?}: {shown:?}"
            );
            assert!(got.text.contains("no complete response: "), "{}", got.text);
        }
    }
}

#[tokio::test]
async fn content_that_ends_early_aborts_the_response() {
    for (answer, then) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
            Then::Close,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
            Then::Reset,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            Then::Close,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            Then::Close,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
            Then::Hang,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            Then::Hang,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello", Then::Reset),
        // Nothing more arrives in time.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
            Then::Hang,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            Then::Hang,
        ),
    ] {
        let application = Application::that_sends(answer, then).await;
        let proxy = proxy_with(&[application.url()], |config| {
            config.idle_timeout = Duration::from_millis(300);
        })
        .await;
        for version in VERSIONS {
            let response = request(&proxy, version, Method::GET, &[], Body::empty()).await;
            // The reset may arrive before the header.
            let Ok(response) = response else { continue };
            assert_eq!(response.status(), StatusCode::OK, "{version:?}: {answer:?}");
            let mut download = response.into_body();
            let ended = tokio::time::timeout(LIMIT, async {
                while download.chunk().await?.is_some() {}
                Ok::<_, marline_http::client::ClientError>(())
            });
            let ended = ended.await.expect("the end, in time");
            assert!(ended.is_err(), "{version:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn more_content_than_announced_reaches_no_client() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let application = Application::that_sends(answer, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    for version in VERSIONS {
        for _ in 0..3 {
            assert_eq!(get(&proxy, version).await.text, "hello");
        }
    }
}
