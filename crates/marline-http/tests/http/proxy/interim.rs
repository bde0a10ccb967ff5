//! Interim responses on their way through proxies.

use std::sync::{Arc, Mutex};

use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use marline_http::client::{Client, ClientConfig, HttpVersion, Trust, parse_url};
use marline_http::proxy::{GatewayConfig, gateway};
use marline_http::{Body, BoxError, Interim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::application::{Application, Then};
use super::{LIMIT, proxy, whole};
use crate::common::{TestServer, VERSIONS, client};

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// The interim responses that a client got before a response.
type Taken = Arc<Mutex<Vec<(u16, HeaderMap)>>>;

/// Sends `request`, and takes its interim responses; `text` is the content of the response.
struct Exchanged {
    interim: Vec<(u16, HeaderMap)>,
    text: String,
}

async fn exchange(
    server: &TestServer,
    version: HttpVersion,
    mut request: Request<Body>,
    on_interim: impl Fn() + Send + Sync + 'static,
) -> Exchanged {
    let url = server.url(version, "/");
    let client = client(version);
    let origin = parse_url(&url, version).unwrap().origin;
    let connection = client.connect(&origin).await.unwrap();
    *request.uri_mut() = url.parse().unwrap();
    let taken = Taken::default();
    let taking = Arc::clone(&taken);
    request
        .extensions_mut()
        .insert(Interim::new(move |interim| {
            let (parts, ()) = interim.into_parts();
            let one = (parts.status.as_u16(), parts.headers);
            taking.lock().unwrap().push(one);
            on_interim();
        }));
    let response = tokio::time::timeout(LIMIT, connection.request(&origin, request));
    let response = response.await.expect("a response in time").unwrap();
    let text = whole(response).await.text;
    let interim = std::mem::take(&mut *taken.lock().unwrap());
    Exchanged { interim, text }
}

fn get() -> Request<Body> {
    Request::new(Body::empty())
}

#[tokio::test]
async fn early_hints_of_an_application_reach_clients_of_http3() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x-private\r\nX-Private: 1\r\n\r\n";
    let answer = format!("{hints}HTTP/1.1 103 Early Hints\r\nLink: </b.js>\r\n\r\n{HELLO}");
    let application = Application::that_sends(answer, Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    for version in VERSIONS {
        let got = exchange(&proxy, version, get(), || {}).await;
        assert_eq!(got.text, "hello", "{version:?}");
        let links: Vec<_> = got
            .interim
            .iter()
            .map(|(status, headers)| (*status, headers["link"].to_str().unwrap()))
            .collect();
        // hyper's servers do not send any.
        match version {
            HttpVersion::Http3 => assert_eq!(links, [(103, "</a.css>"), (103, "</b.js>")]),
            _ => assert_eq!(links, [], "{version:?}"),
        }
        for (_, headers) in &got.interim {
            assert_eq!(headers["via"], "1.1 marline");
            assert!(!headers.contains_key("connection"), "{headers:?}");
            assert!(!headers.contains_key("x-private"), "{headers:?}");
        }
    }
}

#[tokio::test]
async fn interim_responses_without_end_are_not_all_passed_on() {
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100);
    let application = Application::that_sends(format!("{hints}{HELLO}"), Then::Continue).await;
    let proxy = proxy(&[application.url()]).await;
    let got = exchange(&proxy, HttpVersion::Http3, get(), || {}).await;
    assert_eq!((got.text.as_str(), got.interim.len()), ("hello", 16));
}

#[tokio::test]
async fn clients_of_http3_may_wait_for_an_application_to_want_content() {
    let application = Application::with(Arc::new(|mut stream, _| {
        Box::pin(async move {
            let wanted = b"HTTP/1.1 100 Continue\r\n\r\n";
            stream.write_all(wanted).await.ok()?;
            let mut content = [0; 5];
            stream.read_exact(&mut content).await.ok()?;
            stream.write_all(HELLO.as_bytes()).await.ok()?;
            Some(stream)
        })
    }))
    .await;
    let proxy = proxy(&[application.url()]).await;
    let wanted = Arc::new(Notify::new());
    let asked = Arc::clone(&wanted);
    let content = futures_util::stream::once(async move {
        asked.notified().await;
        Ok::<_, BoxError>(Frame::data(bytes::Bytes::from_static(b"later")))
    });
    let mut request = Request::new(Body::new(StreamBody::new(content)));
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    headers.insert("content-length", "5".parse().unwrap());
    headers.insert("expect", "100-continue".parse().unwrap());
    let wants = move || wanted.notify_one();
    let got = exchange(&proxy, HttpVersion::Http3, request, wants).await;
    let statuses: Vec<_> = got.interim.iter().map(|(status, _)| *status).collect();
    assert_eq!((got.text.as_str(), &*statuses), ("hello", &[100][..]));
}

#[tokio::test]
async fn early_hints_of_an_origin_pass_a_gateway() {
    let origin = TestServer::site(tower::util::BoxCloneSyncService::new(tower::service_fn(
        |request: Request<Body>| async move {
            let mut hints = Response::new(());
            *hints.status_mut() = StatusCode::from_u16(103).unwrap();
            let link = "</a.css>".parse().unwrap();
            hints.headers_mut().insert("link", link);
            if let Some(interim) = request.extensions().get::<Interim>() {
                interim.send(hints);
            }
            Ok(Response::new(Body::full("hello")))
        },
    )))
    .await;
    let to_origin = Client::new(ClientConfig {
        trust: Trust::Insecure,
        fallback: false,
        ..ClientConfig::default()
    });
    let url = format!("https://{}", origin.address);
    let site = gateway(to_origin.unwrap(), &GatewayConfig::to(url)).unwrap();
    let local = TestServer::site(site).await;
    let got = exchange(&local, HttpVersion::Http3, get(), || {}).await;
    assert_eq!(got.text, "hello");
    let [(103, headers)] = &got.interim[..] else {
        panic!("{:?}", got.interim)
    };
    assert_eq!(headers["link"], "</a.css>");
    assert_eq!(headers["via"], "3 marline");
}
