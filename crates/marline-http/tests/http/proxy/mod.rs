//! The reverse proxy in front of correct and faulty applications.

mod answers;
pub(crate) mod application;
mod budgets;
mod forward;
mod gateway;
mod hostile;
mod http3;
mod interim;
pub(crate) mod messages;
mod pipes;
mod secured;
mod several;
mod soak;
mod streams;
mod tunnels;
mod uploads;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use marline_http::Body;
use marline_http::client::{ClientError, Download, HttpVersion};
use marline_http::proxy::{ProxyConfig, UpstreamMetrics, reverse_proxy};

use crate::common::{TestServer, read};

/// Longer than any successful step takes, on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(120);

/// A proxy before `urls`.
pub(crate) async fn proxy(urls: &[String]) -> TestServer {
    proxy_with(urls, |_| {}).await
}

async fn proxy_with(urls: &[String], change: impl FnOnce(&mut ProxyConfig)) -> TestServer {
    let upstreams = urls.iter().map(|url| url.parse().unwrap()).collect();
    let mut config = ProxyConfig::to(upstreams);
    change(&mut config);
    let metrics = Arc::<UpstreamMetrics>::default();
    TestServer::with(reverse_proxy(config, &metrics).unwrap(), |server| {
        server.protocols.tunnels = true;
        server.more_metrics = vec![metrics];
    })
    .await
}

/// Sends one request over a connection of its own.
async fn request(
    server: &TestServer,
    version: HttpVersion,
    method: Method,
    headers: &[(&str, &str)],
    body: Body,
) -> Result<Response<Download>, ClientError> {
    let url = server.url(version, "/path?query");
    let client = crate::common::client(version);
    let origin = marline_http::client::parse_url(&url, version)
        .unwrap()
        .origin;
    let connection = client.connect(&origin).await.unwrap();
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = url.parse().unwrap();
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let response = tokio::time::timeout(LIMIT, connection.request(&origin, request));
    let response = response.await.expect("a response in time");
    // The content of the response still arrives.
    std::mem::forget((client, connection));
    response
}

/// A complete response.
struct Whole {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

async fn get(server: &TestServer, version: HttpVersion) -> Whole {
    let response = request(server, version, Method::GET, &[], Body::empty());
    let response = response.await;
    whole(response.unwrap_or_else(|error| panic!("{version:?}: {error:?}"))).await
}

async fn whole(response: Response<Download>) -> Whole {
    let (parts, download) = response.into_parts();
    let content = tokio::time::timeout(LIMIT, read(download)).await.unwrap();
    Whole {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8_lossy(&content).into_owned(),
    }
}
