//! Requests that show whether an application works.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{CONNECTION, HOST, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri, Version};
use http_body_util::BodyExt;
use marline::settings::text_values;
use tokio::time::{sleep, timeout};

use super::request_body::HeldBody;
use super::upstream::Upstream;
use crate::body::Body;
use crate::log::Level;
use crate::log::messages::{self, Frequent};

/// The path that is requested to check whether an application works, with or without a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthPath(PathAndQuery);

/// A text is not the path of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a path; write one that begins with /, as \"/health\"")]
pub struct InvalidHealthPath(String);

impl FromStr for HealthPath {
    type Err = InvalidHealthPath;

    fn from_str(text: &str) -> Result<Self, InvalidHealthPath> {
        let invalid = || InvalidHealthPath(text.to_owned());
        // Others, as `*` and what follows #, are cut or have another meaning.
        let is_path = text.starts_with('/') && !text.contains('#');
        let path = Some(text).filter(|_| is_path).ok_or_else(invalid)?;
        path.parse().map(Self).map_err(|_| invalid())
    }
}

impl fmt::Display for HealthPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_values!(HealthPath);

/// Requests `path` of an application each `interval` until it is no longer used.
pub(super) async fn watch(upstream: Weak<Upstream>, path: HealthPath, interval: Duration) {
    while let Some(upstream) = upstream.upgrade() {
        let checked = timeout(interval, check(&upstream, &path.0)).await;
        let checked = checked.unwrap_or_else(|_| {
            let seconds = interval.as_secs_f64();
            Err(format!("no answer within {seconds} s"))
        });
        if upstream.set_health(checked.is_ok()) {
            report(&upstream, checked);
        }
        drop(upstream);
        sleep(interval).await;
    }
}

/// Reports that an application works again, or does not any more.
fn report(upstream: &Upstream, checked: Result<(), String>) {
    let url = upstream.url();
    match checked {
        Ok(()) => messages::emit_frequent(Level::Information, Frequent::Upstream, || {
            format!("{url} works again")
        }),
        Err(reason) => messages::emit_frequent(Level::Warning, Frequent::Upstream, || {
            format!("{url} gets no requests, because its health check fails: {reason}")
        }),
    }
}

/// Whether the answer is a success or a redirect, and why not.
async fn check(upstream: &Arc<Upstream>, path: &PathAndQuery) -> Result<(), String> {
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
    let response = upstream.send(request, &content, false).await;
    let response = response.map_err(|error| error.failure.reason())?;
    let status: StatusCode = response.status();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        frame.map_err(|error| format!("its answer ended early: {error}"))?;
    }
    match status.is_success() || status.is_redirection() {
        true => Ok(()),
        false => Err(format!("the answer is {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_a_slash() {
        for text in ["/", "/health", "/health?deep=1"] {
            assert_eq!(text.parse::<HealthPath>().unwrap().to_string(), text);
        }
        for text in ["", "health", "*", "http://a/health", "/a b", "/a#b"] {
            let error = text.parse::<HealthPath>().unwrap_err().to_string();
            assert!(error.contains("begins with /"), "{error}");
        }
    }
}
