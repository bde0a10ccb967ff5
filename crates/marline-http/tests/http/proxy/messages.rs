//! Headers and trailers that mean one thing in every version.

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use marline_http::Body;
use marline_http::client::HttpVersion;
use marline_http::proxy::RewriteFields;
use marline_http::server::Site;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tower::service_fn;

use super::application::{Application, Then, field};
use super::{LIMIT, get, proxy, proxy_with, request, whole};
use crate::common::{TestServer, VERSIONS};
use crate::floods::connect;

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn headers_have_the_same_number_of_fields_in_every_version_and_direction() {
    for (fields, of_request, of_response) in [
        (120, StatusCode::OK, StatusCode::OK),
        (490, StatusCode::OK, StatusCode::OK),
        (
            520,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            StatusCode::BAD_GATEWAY,
        ),
    ] {
        let links = "Link: </a.css>; rel=preload\r\n".repeat(fields);
        let many = format!("HTTP/1.1 200 OK\r\n{links}Content-Length: 2\r\n\r\nok");
        let many = Application::that_sends(many, Then::Continue).await;
        let many = proxy(&[many.url()]).await;
        let hello = Application::that_sends(HELLO, Then::Continue).await;
        let hello = proxy(&[hello.url()]).await;
        for version in VERSIONS {
            let got = get(&many, version).await;
            assert_eq!(
                got.status, of_response,
                "{version:?}, {fields}: {}",
                got.text
            );
            if of_response == StatusCode::BAD_GATEWAY {
                let reason = "its header has more than 65536 bytes or 512 fields";
                assert!(got.text.contains(reason), "{}", got.text);
            }
            let names: Vec<_> = (0..fields).map(|number| format!("x-{number}")).collect();
            let headers: Vec<_> = names.iter().map(|name| (&**name, "1")).collect();
            let response = request(&hello, version, Method::GET, &headers, Body::empty());
            let status = response.await.unwrap().status();
            assert_eq!(status, of_request, "{version:?}, {fields}");
        }
    }
}

/// Clients of HTTP/3 get no field of the server's own, which would replace it.
#[tokio::test]
async fn an_application_announces_no_other_services_of_its_address() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nAlt-Svc: h3=\":1\"\r\n\r\nhello";
    let application = Application::that_sends(answer, Then::Continue).await;
    let server = proxy(&[application.url()]).await;
    for version in VERSIONS {
        let response = request(&server, version, Method::GET, &[], Body::empty());
        let response = response.await.unwrap();
        let announced = response.headers().get("alt-svc");
        assert!(
            announced.is_none_or(|field| field != "h3=\":1\""),
            "{version:?}"
        );
    }
}

/// RFC 9113, section 8.2.3; RFC 9114, section 4.2.1.
#[tokio::test]
async fn cookies_reach_an_application_in_one_field() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    let cookies = [("cookie", "a=1"), ("x-a", "1"), ("cookie", "b=2; c=3")];
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        let response = request(&proxy, version, Method::GET, &cookies, Body::empty());
        whole(response.await.unwrap()).await;
        let seen = application.last_request();
        assert_eq!(field(&seen, "cookie"), Some("a=1; b=2; c=3"), "{seen}");
        assert_eq!(seen.matches("cookie").count(), 1, "{seen}");
    }
}

#[tokio::test]
async fn what_clients_say_of_replays_and_of_other_targets_reaches_no_application() {
    let fields = [
        ("early-data", "1"),
        ("x-original-url", "/admin"),
        ("x-rewrite-url", "/admin"),
        ("x-http-path-override", "/admin"),
        ("x-http-host-override", "internal.example"),
        ("x-envoy-original-path", "/admin"),
        ("x-http-method-override", "DELETE"),
        ("forwarded", "for=10.0.0.1"),
    ];
    for (rewrite_fields, are_kept) in [(RewriteFields::Remove, false), (RewriteFields::Keep, true)]
    {
        let application = Application::that_sends(HELLO, Then::Continue).await;
        let proxy = proxy_with(&[application.url()], |config| {
            config.rewrite_fields = rewrite_fields;
        })
        .await;
        for version in VERSIONS {
            let response = request(&proxy, version, Method::GET, &fields, Body::empty());
            whole(response.await.unwrap()).await;
            let seen = application.last_request();
            for (name, _) in fields {
                let is_kept = are_kept && name.starts_with("x-");
                assert_eq!(field(&seen, name).is_some(), is_kept, "{version:?}: {seen}");
            }
        }
    }
}

/// A frame of HEADERS on stream 1 with literal fields; it ends the stream if `is_last`.
fn header_frame(fields: &[(&str, &str)], is_last: bool) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    let length = u8::try_from(block.len()).unwrap();
    let flags = if is_last { 5 } else { 4 };
    [&[0, 0, length, 1, flags, 0, 0, 0, 1][..], &block].concat()
}

/// RFC 3986, section 3.2.3.
#[tokio::test]
async fn an_empty_port_is_that_of_the_scheme() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    let head = "GET /old HTTP/1.1\r\nHost: a:\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let mut stream = connect(&proxy).await;
    let fields = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "a:"),
        (":path", "/new"),
    ];
    stream
        .write_all(&header_frame(&fields, true))
        .await
        .unwrap();
    let mut frame = [0; 9];
    while frame[3] != 1 {
        stream.read_exact(&mut frame).await.unwrap();
        let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        // Index 8 of the static table is 200.
        assert!(frame[3] != 1 || payload[0] == 0x80 | 8, "{payload:?}");
    }
    let heads = application.requests.lock().unwrap();
    for head in heads.iter() {
        assert_eq!(field(head, "host"), Some("a"), "{head}");
    }
    assert_eq!(heads.len(), 2);
}

/// Requests on stream 1 that RFC 9113 calls malformed (sections 8.1.1, 8.2.1 and 8.3.1).
pub(crate) fn malformed() -> Vec<Vec<u8>> {
    let target = |authority| {
        [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", authority),
            (":path", "/"),
        ]
    };
    let with = |field| [&target("a")[..], &[field]].concat();
    let mut malformed: Vec<_> = [
        "a,b", "a:99999", "a:+1", "*", "u@a", "[::1", "a%20b", "\u{e9}",
    ]
    .into_iter()
    .map(|authority| header_frame(&target(authority), true))
    .collect();
    for (place, field) in [
        (1, (":scheme", "")),
        (1, (":scheme", "1a")),
        (3, (":path", "?b")),
        (3, (":path", "b")),
    ] {
        let mut fields = target("a");
        fields[place] = field;
        malformed.push(header_frame(&fields, true));
    }
    for field in [("x-a", " b"), ("x-a", "b "), ("x-a", "\tb"), ("host", "b")] {
        malformed.push(header_frame(&with(field), true));
    }
    let content = [0, 0, 5, 0, 1, 0, 0, 0, 1, b'h', b'e', b'l', b'l', b'o'];
    for length in ["0", "4", "6"] {
        let head = header_frame(&with(("content-length", length)), false);
        malformed.push([&head[..], &content].concat());
    }
    let extended = [
        &[(":method", "CONNECT")],
        &target("a")[1..],
        &[(":protocol", "websocket")],
    ]
    .concat();
    for missing in 1..4 {
        let mut fields = extended.clone();
        fields.remove(missing);
        malformed.push(header_frame(&fields, false));
    }
    malformed
}

/// Whether a request of [`malformed`] has no response but 400, or none.
pub(crate) async fn is_refused(proxy: &TestServer, request: &[u8]) -> bool {
    let mut stream = connect(proxy).await;
    stream.write_all(request).await.unwrap();
    let answered = async {
        loop {
            let mut header = [0; 9];
            stream.read_exact(&mut header).await.ok()?;
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
            let mut payload = vec![0; length as usize];
            stream.read_exact(&mut payload).await.ok()?;
            match header[3] {
                // Index 12 of the static table is 400.
                1 => return Some(payload[0] == 0x80 | 12),
                // RST_STREAM, GOAWAY
                3 | 7 => return Some(true),
                _ => {}
            }
        }
    };
    let answer = tokio::time::timeout(LIMIT, answered).await.unwrap();
    answer != Some(false)
}

#[tokio::test]
async fn malformed_requests_of_http2_reach_no_application() {
    let application = Application::that_sends(HELLO, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    for request in malformed() {
        assert!(
            is_refused(&proxy, &request).await,
            "{}",
            String::from_utf8_lossy(&request)
        );
    }
    let whole_ones = application.requests.lock().unwrap();
    let reached: Vec<_> = whole_ones
        .iter()
        .filter(|head| !head.contains("content-length: "))
        .collect();
    assert!(reached.is_empty(), "{reached:?}");
}

/// RFC 9113, section 8.2.1.
#[tokio::test]
async fn content_with_malformed_trailers_of_http2_never_looks_whole_to_a_site() {
    let (sender, mut outcomes) = mpsc::unbounded_channel();
    let server = TestServer::site(Site::new(service_fn(move |request: Request<Body>| {
        let sender = sender.clone();
        async move {
            let content = request.into_body().collect().await;
            sender.send(content.is_ok()).unwrap();
            Ok(Response::new(Body::empty()))
        }
    })))
    .await;
    let head = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "a"),
        (":path", "/"),
    ];
    for (value, is_whole) in [("b", true), (" b", false), ("b\t", false)] {
        let mut stream = connect(&server).await;
        let content = [0, 0, 5, 0, 0, 0, 0, 0, 1, b'h', b'e', b'l', b'l', b'o'];
        let trailers = header_frame(&[("x-a", value)], true);
        let request = [header_frame(&head, false), content.to_vec(), trailers].concat();
        stream.write_all(&request).await.unwrap();
        let outcome = tokio::time::timeout(LIMIT, outcomes.recv()).await.unwrap();
        assert_eq!(outcome, Some(is_whole), "{value:?}");
    }
}
