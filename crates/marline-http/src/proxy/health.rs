//! Requests that show whether an application works.

use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{CONNECTION, HOST, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri, Version};
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};

use super::request_body::HeldBody;
use super::upstream::Upstream;
use crate::body::Body;

/// Requests `path` of an application each `interval` until it is no longer used.
pub(super) async fn watch(upstream: Weak<Upstream>, path: PathAndQuery, interval: Duration) {
    while let Some(upstream) = upstream.upgrade() {
        let works = timeout(interval, is_answered(&upstream, path.clone())).await;
        upstream.set_health(works == Ok(true));
        drop(upstream);
        sleep(interval).await;
    }
}

/// Whether the answer is a success or a redirect.
async fn is_answered(upstream: &Arc<Upstream>, path: PathAndQuery) -> bool {
    let request = |version| {
        let mut request = Request::new(());
        let agent = HeaderValue::from_static("marline-health");
        request.headers_mut().insert(USER_AGENT, agent);
        if version >= Version::HTTP_2 {
            *request.uri_mut() = upstream.target(None, path.clone());
            *request.version_mut() = version;
            return request;
        }
        *request.uri_mut() = Uri::from(path.clone());
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(upstream.url().authority().as_str()) {
            headers.insert(HOST, host);
        }
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        request
    };
    let content = HeldBody::new(Body::empty(), false, &http::Extensions::new());
    let Ok(response) = upstream.send(request, &content, false).await else {
        return false;
    };
    let status: StatusCode = response.status();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    status.is_success() || status.is_redirection()
}
