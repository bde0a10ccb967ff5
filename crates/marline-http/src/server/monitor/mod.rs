//! The pages of the metrics address: `/metrics` for Prometheus, `/health`, `/connections`, and a page that shows these.

mod connections;

use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use marline::Sha256;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(super) use self::connections::{Activity, Connections};
use super::accept::{self, Accepted};
use super::idle::IdleTimeout;
use super::metrics::write_process;
use super::{Context, Metrics, MetricsSource};
use crate::body::Body;
use crate::limits;

/// Concurrent scrapers; others wait.
const MAX_SCRAPERS: usize = 16;

/// The page that shows the others, in one piece.
const PAGE: &str = include_str!("page.html");

/// Its policy: its own script and its own style, and no other origin.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let (script, style) = (hash_of("script"), hash_of("style"));
    let policy = format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The hash of the content of an element of the page, as a source of a policy.
fn hash_of(element: &str) -> String {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    let content = PAGE
        .split_once(&begin)
        .and_then(|(_, rest)| rest.split_once(&end))
        .map_or("", |(content, _)| content);
    let mut hash = Sha256::new();
    hash.update(content.as_bytes());
    format!("sha256-{}", STANDARD.encode(hash.finish()))
}

/// Serves the metrics of a program without other services, and those of its process, as `/metrics`. Never returns.
pub async fn serve_metrics(socket: TcpListener, source: Arc<dyn MetricsSource>) {
    serve(socket, Arc::new(WithProcess(source))).await;
}

/// Metrics, and those of the process.
#[derive(Debug)]
struct WithProcess(Arc<dyn MetricsSource>);

impl MetricsSource for WithProcess {
    fn write(&self, out: &mut String) -> fmt::Result {
        self.0.write(out)?;
        write_process(out)
    }
}

impl MetricsSource for Metrics {
    fn write(&self, out: &mut String) -> fmt::Result {
        out.push_str(&self.render());
        Ok(())
    }
}

/// The content of the pages.
pub(super) trait Pages: Send + Sync + 'static {
    /// The metrics.
    fn metrics(&self) -> &dyn MetricsSource;

    /// The server, if they are of one.
    fn server(&self) -> Option<&Context> {
        None
    }
}

impl Pages for WithProcess {
    fn metrics(&self) -> &dyn MetricsSource {
        self
    }
}

impl Pages for Context {
    fn metrics(&self) -> &dyn MetricsSource {
        &*self.metrics
    }

    fn server(&self) -> Option<&Context> {
        Some(self)
    }
}

/// Answers requests. Never returns.
pub(super) async fn serve<P: Pages>(socket: TcpListener, pages: Arc<P>) {
    let mut scrapers = JoinSet::new();
    loop {
        tokio::select! {
            _ = scrapers.join_next(), if scrapers.len() >= MAX_SCRAPERS => {}
            Accepted { stream, .. } = accept::next(&socket), if scrapers.len() < MAX_SCRAPERS => {
                while scrapers.try_join_next().is_some() {}
                let pages = Arc::clone(&pages);
                scrapers.spawn(async move {
                    let stream = TokioIo::new(IdleTimeout::new(stream, limits::IDLE_TIMEOUT));
                    let answer = service_fn(move |request| {
                        std::future::ready(Ok::<_, Infallible>(answer(&*pages, &request)))
                    });
                    // A scraper that disconnects is not an error.
                    let _ = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(limits::HEADER_TIMEOUT)
                        .serve_connection(stream, answer)
                        .await;
                });
            }
        }
    }
}

fn answer<P: Pages>(pages: &P, request: &Request<Incoming>) -> Response<Body> {
    let mut response = match (request.uri().path(), pages.server()) {
        ("/metrics", _) => of_metrics(pages.metrics()),
        ("/health", Some(context)) => health(context),
        ("/connections" | "/", Some(_)) if !is_of_this_host(request) => {
            let text =
                "Open this page by the address of the server, or its name without a domain\n";
            page(StatusCode::MISDIRECTED_REQUEST, TEXT, text.to_owned())
        }
        ("/connections", Some(context)) => {
            let text = context.metrics.connections.page(context.runtime.now());
            page(StatusCode::OK, JSON, text.to_string())
        }
        ("/", Some(_)) => {
            let mut response = page(StatusCode::OK, HTML, PAGE.to_owned());
            let headers = response.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
            response
        }
        _ => page(StatusCode::NOT_FOUND, TEXT, "Not found\n".to_owned()),
    };
    let is_found = response.status() != StatusCode::NOT_FOUND;
    if is_found && ![Method::GET, Method::HEAD].contains(request.method()) {
        response = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, String::new());
        let methods = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, methods);
    }
    response
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";

fn page(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

fn of_metrics(metrics: &dyn MetricsSource) -> Response<Body> {
    let mut text = String::with_capacity(4096);
    // Writing to a String cannot fail.
    let _ = metrics.write(&mut text);
    page(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        text,
    )
}

/// The page of health.
#[derive(Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    uptime_s: f64,
    upstreams: Vec<UpstreamHealth>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ocsp: Vec<StatusHealth>,
}

/// The status of a certificate that asks to be stapled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StatusHealth {
    /// A name of the certificate.
    pub certificate: String,
    /// The status that is stapled, with its end.
    pub stapled: Option<String>,
    /// The reason why the last attempt to get a newer one failed.
    pub problem: Option<String>,
}

/// Whether an application is expected to answer by a site. Sites can have different views of one that they share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UpstreamHealth {
    /// Its URL.
    pub upstream: String,
    /// The path by which the site checks it, if it does.
    pub health_path: Option<String>,
    /// Whether it is.
    pub healthy: bool,
    /// The version of HTTP of the last connection to it; `None` before the first.
    pub version: Option<&'static str>,
}

fn health(context: &Context) -> Response<Body> {
    let (status, word) = match context.stop.is_stopping() {
        false => (StatusCode::OK, "serving"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    };
    let up = context.runtime.now().saturating_since(context.started);
    let health = Health {
        status: word,
        version: env!("CARGO_PKG_VERSION"),
        uptime_s: up.as_secs_f64(),
        upstreams: context.metrics.upstreams(),
        ocsp: context.metrics.statuses(),
    };
    let text = serde_json::to_string(&health).unwrap_or_default();
    page(status, JSON, text)
}

/// Whether a request names an address, `localhost`, or a name without a domain: a page of another domain that resolves to
/// this host (DNS rebinding) cannot read the addresses of clients.
fn is_of_this_host(request: &Request<Incoming>) -> bool {
    let host = request.headers().get(HOST).map(HeaderValue::to_str);
    matches!(host, Some(Ok(host)) if is_local_name(host))
}

fn is_local_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    address.parse::<IpAddr>().is_ok()
        || (!name.is_empty() && !name.contains('.'))
        || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_stranger_has_open_the_pages_about_clients() {
        for host in [
            "localhost:9090",
            "127.0.0.1:9090",
            "[::1]:9090",
            "192.0.2.1",
            "server:9090",
            "x.localhost",
        ] {
            assert!(is_local_name(host), "{host}");
        }
        for host in ["", ":9090", "evil.example:9090", "127.0.0.1.evil.example"] {
            assert!(!is_local_name(host), "{host}");
        }
    }

    #[test]
    fn the_page_needs_nothing_but_itself() {
        for part in [
            "<link",
            "src=",
            "@import",
            "url(",
            "style=\"",
            "onclick",
            "innerHTML",
        ] {
            assert!(!PAGE.contains(part), "{part}");
        }
        for element in ["script", "style"] {
            assert_eq!(PAGE.matches(&format!("<{element}")).count(), 1, "{element}");
            assert_eq!(
                PAGE.matches(&format!("<{element}>")).count(),
                1,
                "{element}"
            );
        }
        assert!(POLICY.to_str().unwrap().contains("script-src 'sha256-"));
    }
}
