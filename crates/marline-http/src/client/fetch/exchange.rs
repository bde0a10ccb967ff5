//! The requests for an object: redirects are followed, and failed attempts repeated.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{ACCEPT_ENCODING, AUTHORIZATION, COOKIE};
use http::{HeaderMap, Response, Uri};

use super::{Job, Queue};
use crate::client::decode::ACCEPTED;
use crate::client::pace::Pace;
use crate::client::pooled::{Answer, Outgoing};
use crate::client::redirect::{Hop, location};
use crate::client::{Client, ClientError, Download, Exchange, ObjectReport, Origin, Trust};
use crate::limits::MAX_IGNORED;
use crate::runtime::RuntimeHandle;

/// The response after all redirects.
pub(super) struct Got {
    pub(super) response: Response<Download>,
    /// The URI that it is for, if that is of the server of the first.
    pub(super) uri: Option<Uri>,
}

impl Client {
    /// `url` with `https` if its host is only reached over TLS.
    pub(super) fn upgraded(&self, url: String) -> String {
        let hsts = self.config().hsts.as_ref();
        let now = self.runtime().unix_time();
        hsts.and_then(|hsts| hsts.upgraded(&url, now))
            .unwrap_or(url)
    }

    /// Keeps what a response of `origin` announces about itself, if its certificate was verified (RFC 6797, section 8.1; RFC
    /// 7838, section 2.1).
    fn keep_announced(&self, origin: &Origin, headers: &HeaderMap) {
        let config = self.config();
        if !origin.is_encrypted() || config.trust == Trust::Insecure {
            return;
        }
        let now = self.runtime().unix_time();
        if let Some(hsts) = &config.hsts {
            hsts.keep(origin.host(), headers, now);
        }
        if let Some(services) = &config.alt_services {
            services.keep(origin, headers, now);
        }
    }
}

impl Queue {
    /// Fetches the object of `job`, and repeats what fails for a reason that may pass.
    pub(super) async fn fetch_until_done(
        &self,
        pooled: usize,
        job: &mut Job,
        object: &mut ObjectReport,
    ) -> Result<(), ClientError> {
        let retry = &self.options.retry;
        let mut attempt = 0;
        loop {
            let is_late = |limit| self.client.runtime().now().saturating_since(self.start) >= limit;
            job.may_retry = attempt < retry.times
                && job.hop.message.upload.is_repeatable()
                && !retry.max_time.is_some_and(is_late);
            let fetched = self.fetch_one(pooled, job, object).await;
            let passes = match &fetched {
                Err(error) => retry.covers_error(error),
                Ok(()) => object
                    .exchanges
                    .last()
                    .is_some_and(|last| object.error.is_some() && retry.covers_status(last.status)),
            };
            if !passes || !job.may_retry {
                return fetched;
            }
            attempt += 1;
            let last = object.exchanges.last().map(|last| &last.response);
            let now = SystemTime::UNIX_EPOCH + self.client.runtime().unix_time();
            let delay = retry.delay(attempt, last.filter(|_| fetched.is_ok()), now);
            self.client.runtime().sleep(delay).await;
            *object = ObjectReport {
                url: std::mem::take(&mut object.url),
                http_version: object.http_version,
                start_s: object.start_s,
                ..ObjectReport::default()
            };
        }
    }

    /// Requests the object of `job`, with the fields of `more`, and follows redirects.
    pub(super) async fn get(
        &self,
        pooled: usize,
        job: &Job,
        more: &HeaderMap,
        object: &mut ObjectReport,
    ) -> Result<Got, ClientError> {
        let config = self.client.config();
        let mut hop = job.hop.clone();
        let mut followed = 0;
        loop {
            let response = self.send(pooled, job, &hop, more, object).await?;
            let is_here = hop.origin == job.hop.origin;
            let found = location(&hop.uri, response.status(), response.headers());
            let (Some(policy), Some(url)) = (&config.redirects, found) else {
                let uri = is_here.then_some(hop.uri);
                return Ok(Got { response, uri });
            };
            if let Some(limit) = policy.limit.filter(|limit| followed >= *limit) {
                return Err(ClientError::TooManyRedirects { limit });
            }
            followed += 1;
            let url = self.client.upgraded(url);
            hop = hop.redirected(policy, &url, response.status(), config.version)?;
            ignore(response.into_body(), self.client.runtime()).await;
        }
    }

    /// Sends the request of `hop`, and records the response.
    async fn send(
        &self,
        pooled: usize,
        job: &Job,
        hop: &Hop,
        more: &HeaderMap,
        object: &mut ObjectReport,
    ) -> Result<Response<Download>, ClientError> {
        let mut headers = self.fields(hop);
        headers.extend(more.clone());
        let elsewhere;
        let connection = match hop.origin == job.hop.origin {
            true => &self.pooled_connections[pooled],
            false => {
                elsewhere = self.elsewhere.to(&self.client, &hop.origin);
                &elsewhere
            }
        };
        let pace = self
            .options
            .rate
            .map(|rate| Arc::new(Pace::new(rate.get())));
        let request = Outgoing {
            method: &hop.message.method,
            uri: &hop.uri,
            headers: &headers,
            upload: &hop.message.upload,
            pace: pace.as_ref(),
        };
        let Answer {
            connection,
            connected,
            content_length,
            response,
        } = connection.send(&self.client, request).await?;
        object.connected_s.get_or_insert(self.seconds_at(connected));
        self.record_response(object, &connection, response.status());
        if let Some(jar) = &self.client.config().cookies {
            jar.keep(&hop.uri, response.headers());
        }
        self.client.keep_announced(&hop.origin, response.headers());
        object.exchanges.push(Exchange {
            uri: hop.uri.clone(),
            method: hop.message.method.clone(),
            request: headers,
            content_length,
            connection: connection.id,
            http_version: connection.version().label(),
            status: response.status(),
            response: response.headers().clone(),
        });
        Ok(response)
    }

    /// The header fields for the server of `hop`, with credentials and cookies.
    pub(super) fn fields(&self, hop: &Hop) -> HeaderMap {
        let config = self.client.config();
        let mut headers = hop.message.headers.clone();
        let credentials = hop.message.credentials.as_ref();
        let credentials = credentials.or_else(|| config.credentials.get(hop.origin.host()));
        if let Some(credentials) = credentials
            && !headers.contains_key(AUTHORIZATION)
        {
            headers.insert(AUTHORIZATION, credentials.value().clone());
        }
        if let Some(jar) = &config.cookies
            && let Some(value) = jar.field(&hop.uri, headers.get(COOKIE))
        {
            headers.insert(COOKIE, value);
        }
        if config.decompress && !headers.contains_key(ACCEPT_ENCODING) {
            headers.insert(ACCEPT_ENCODING, ACCEPTED);
        }
        headers
    }
}

/// The longest wait for the content of a redirect.
const IGNORING: Duration = Duration::from_secs(1);

/// Reads the short content of a response, so that its connection can be used again.
async fn ignore(mut download: Download, runtime: &RuntimeHandle) {
    if download.expected().is_none_or(|bytes| bytes > MAX_IGNORED) {
        return;
    }
    let reading = async { while let Ok(Some(_)) = download.chunk().await {} };
    let _ = runtime.timeout(IGNORING, reading).await;
}
