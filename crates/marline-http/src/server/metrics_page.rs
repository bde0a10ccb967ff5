//! `/metrics` for Prometheus.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::accept::{self, Accepted};
use super::idle::IdleTimeout;
use super::metrics::write_process;
use super::{Metrics, MetricsSource};
use crate::body::Body;
use crate::limits;

/// Concurrent scrapers; others wait.
const MAX_SCRAPERS: usize = 16;

/// Serves the metrics of a program without other services, and those of its process, as `/metrics`. Never returns.
pub async fn serve_metrics(socket: TcpListener, source: Arc<dyn MetricsSource>) {
    let metrics = Arc::new(WithProcess(source));
    serve(socket, metrics, std::future::pending()).await;
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

/// Answers requests until `stopped`.
pub(super) async fn serve(
    socket: TcpListener,
    metrics: Arc<dyn MetricsSource>,
    mut stopped: impl Future<Output = ()> + Unpin,
) {
    let mut scrapers = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut stopped => return,
            _ = scrapers.join_next(), if scrapers.len() >= MAX_SCRAPERS => {}
            Accepted { stream, .. } = accept::next(&socket), if scrapers.len() < MAX_SCRAPERS => {
                while scrapers.try_join_next().is_some() {}
                let metrics = Arc::clone(&metrics);
                scrapers.spawn(async move {
                    let stream = TokioIo::new(IdleTimeout::new(stream, limits::IDLE_TIMEOUT));
                    let page = service_fn(move |request| std::future::ready(page(&*metrics, &request)));
                    // A scraper that disconnects is not an error.
                    let _ = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(limits::HEADER_TIMEOUT)
                        .serve_connection(stream, page)
                        .await;
                });
            }
        }
    }
}

fn page(
    metrics: &dyn MetricsSource,
    request: &Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let mut response = Response::new(Body::empty());
    if request.uri().path() != "/metrics" {
        *response.status_mut() = StatusCode::NOT_FOUND;
    } else if ![Method::GET, Method::HEAD].contains(request.method()) {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let methods = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, methods);
    } else {
        let mut text = String::with_capacity(4096);
        // Writing to a String cannot fail.
        let _ = metrics.write(&mut text);
        *response.body_mut() = Body::full(text);
        let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    Ok(response)
}
