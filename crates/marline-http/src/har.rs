//! HTTP Archive (HAR) 1.2: fetched objects and their times, as browsers export them.
//!
//! Archives are passed on: they have no header fields with credentials or cookies, as those that browsers export by default.
//! Reports of pages have no header fields at all. Sizes of headers are unknown (-1). Connecting includes the handshake of TLS or QUIC.

use std::collections::BTreeSet;
use std::time::Duration;

use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
use http::{HeaderMap, HeaderName};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::client::{ConnectionReport, Exchange, Report};
use crate::page::{Page, PageReport};

/// An archive. It is serialized as the specification has it.
#[derive(Clone, Debug, Serialize)]
pub struct Har {
    log: Log,
}

#[derive(Clone, Debug, Serialize)]
struct Log {
    version: &'static str,
    creator: Creator,
    #[serde(skip_serializing_if = "Option::is_none")]
    browser: Option<Browser>,
    pages: Vec<HarPage>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize)]
struct Creator {
    name: &'static str,
    version: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct Browser {
    name: String,
    version: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HarPage {
    started_date_time: String,
    id: &'static str,
    title: String,
    page_timings: PageTimings,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageTimings {
    on_content_load: f64,
    on_load: f64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    pageref: &'static str,
    started_date_time: String,
    time: f64,
    request: HarRequest,
    response: HarResponse,
    cache: Empty,
    timings: Timings,
    #[serde(rename = "serverIPAddress", skip_serializing_if = "Option::is_none")]
    server_ip_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Empty {}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    http_version: &'static str,
    cookies: Vec<Field>,
    headers: Vec<Field>,
    query_string: Vec<Field>,
    headers_size: i64,
    body_size: i64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HarResponse {
    status: u16,
    status_text: &'static str,
    http_version: &'static str,
    cookies: Vec<Field>,
    headers: Vec<Field>,
    content: Content,
    #[serde(rename = "redirectURL")]
    redirect_url: String,
    headers_size: i64,
    body_size: i64,
    /// As in Chromium's archives.
    #[serde(rename = "_error", skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Field {
    name: String,
    value: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    size: u64,
    mime_type: String,
}

/// Milliseconds; -1 where a step does not apply.
#[derive(Clone, Copy, Debug, Serialize)]
struct Timings {
    blocked: f64,
    dns: f64,
    connect: f64,
    send: f64,
    wait: f64,
    receive: f64,
    ssl: f64,
}

/// The name of the only page.
const PAGE: &str = "page_1";

/// A step that does not apply.
const NONE: f64 = -1.0;

/// The data of an entry. Times are seconds since the start.
struct Fetched<'a> {
    url: String,
    status: Option<u16>,
    mime_type: &'a str,
    bytes: u64,
    known_s: f64,
    resolved_s: Option<f64>,
    requested_s: Option<f64>,
    connected_s: Option<f64>,
    first_byte_s: Option<f64>,
    end_s: f64,
    connection: Option<u64>,
    error: Option<&'a String>,
    exchange: Option<&'a Exchange>,
}

impl Har {
    /// The load of `page`, which started at `started` since 1970-01-01 UTC. Objects that were never discovered are left out.
    pub fn of_page(page: &Page, report: &PageReport, started: Duration, title: &str) -> Self {
        let scheme = match report.connections.first() {
            Some(connection) if connection.http_version == "1.1c" => "http",
            _ => "https",
        };
        let objects = page.objects.iter().zip(&report.objects);
        let fetched = objects.filter_map(|(object, report)| {
            let known_s = report.discovered_s?;
            Some(Fetched {
                url: format!("{scheme}://{}{}", object.host, object.path),
                status: report.status,
                mime_type: object.kind.content_type(),
                bytes: report.bytes,
                known_s,
                resolved_s: report.resolved_s,
                requested_s: report.start_s,
                connected_s: report.connected_s,
                first_byte_s: report.first_byte_s,
                end_s: report.end_s.unwrap_or(known_s),
                connection: report.connection,
                error: report.error.as_ref(),
                exchange: None,
            })
        });
        let document = page.objects.iter().position(|o| o.discovered_by.is_none());
        let document = document.and_then(|index| report.objects.get(index)?.done_s);
        let timings = PageTimings {
            on_content_load: document.map_or(NONE, milliseconds),
            on_load: milliseconds(report.page_load_s),
        };
        Self::new(
            title,
            started,
            timings,
            fetched.collect(),
            &report.connections,
        )
    }

    /// A fetch, which started at `started` since 1970-01-01 UTC.
    pub fn of_fetch(report: &Report, started: Duration) -> Self {
        let fetched = report.objects.iter().map(|object| Fetched {
            url: object
                .exchanges
                .last()
                .map_or_else(|| object.url.clone(), |last| last.uri.to_string()),
            status: object.status,
            mime_type: object.exchanges.last().map_or("", Exchange::content_type),
            bytes: object.bytes,
            known_s: object.start_s,
            resolved_s: None,
            requested_s: Some(object.start_s),
            connected_s: object.connected_s,
            first_byte_s: object.first_byte_s,
            end_s: object.end_s,
            connection: object.connection,
            error: object.error.as_ref(),
            exchange: object.exchanges.last(),
        });
        let title = report.objects.first().map_or("", |object| &object.url);
        let timings = PageTimings {
            on_content_load: NONE,
            on_load: milliseconds(report.page_load_s),
        };
        Self::new(
            title,
            started,
            timings,
            fetched.collect(),
            &report.connections,
        )
    }

    /// Sets the browser that has loaded the page, as `Chrome/156.0.8078.108`.
    #[must_use]
    pub fn by_browser(mut self, product: &str) -> Self {
        let (name, version) = product.split_once('/').unwrap_or((product, ""));
        self.log.browser = Some(Browser {
            name: name.to_owned(),
            version: version.to_owned(),
        });
        self
    }

    fn new(
        title: &str,
        started: Duration,
        page_timings: PageTimings,
        mut fetched: Vec<Fetched<'_>>,
        connections: &[ConnectionReport],
    ) -> Self {
        let key = |one: &Fetched<'_>| (one.requested_s.unwrap_or(one.known_s), one.known_s);
        fetched.sort_by(|a, b| {
            let (a, b) = (key(a), key(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let mut used = BTreeSet::new();
        let entries = fetched.into_iter().map(|one| {
            let connection = connections.iter().find(|c| Some(c.id) == one.connection);
            let opens = one.connection.is_some_and(|id| used.insert(id));
            entry(one, connection, opens, started)
        });
        Self {
            log: Log {
                version: "1.2",
                creator: Creator {
                    name: "marline",
                    version: env!("CARGO_PKG_VERSION"),
                },
                browser: None,
                entries: entries.collect(),
                pages: vec![HarPage {
                    started_date_time: date(started, 0.0),
                    id: PAGE,
                    title: title.to_owned(),
                    page_timings,
                }],
            },
        }
    }
}

/// The entry of an object, which is the first one on its connection if it `opens` it.
fn entry(
    fetched: Fetched<'_>,
    connection: Option<&ConnectionReport>,
    opens: bool,
    started: Duration,
) -> Entry {
    let timings = Timings::of(&fetched, opens);
    let http_version = connection.map_or("", |connection| match connection.http_version {
        "3" => "h3",
        "2" => "h2",
        _ => "http/1.1",
    });
    let status = fetched.status.unwrap_or(0);
    let reason = http::StatusCode::from_u16(status).ok();
    Entry {
        pageref: PAGE,
        started_date_time: date(started, fetched.known_s),
        time: timings.total(),
        request: HarRequest {
            method: fetched
                .exchange
                .map_or_else(|| "GET".to_owned(), |one| one.method.to_string()),
            query_string: query(&fetched.url),
            url: fetched.url,
            http_version,
            cookies: Vec::new(),
            headers: fields(fetched.exchange.map(|one| &one.request)),
            headers_size: -1,
            body_size: fetched
                .exchange
                .and_then(|one| i64::try_from(one.content_length.unwrap_or(0)).ok())
                .unwrap_or(0),
        },
        response: HarResponse {
            status,
            status_text: reason.and_then(|r| r.canonical_reason()).unwrap_or(""),
            http_version,
            cookies: Vec::new(),
            headers: fields(fetched.exchange.map(|one| &one.response)),
            content: Content {
                size: fetched.bytes,
                mime_type: fetched.mime_type.to_owned(),
            },
            redirect_url: fetched
                .exchange
                .and_then(Exchange::redirect_url)
                .unwrap_or_default(),
            headers_size: -1,
            body_size: i64::try_from(fetched.bytes).unwrap_or(-1),
            error: fetched.error.cloned(),
        },
        cache: Empty {},
        timings,
        server_ip_address: connection
            .and_then(|connection| connection.paths.first())
            .map(|path| path.remote.ip().to_string()),
        connection: fetched.connection.map(|id| id.to_string()),
    }
}

impl Timings {
    fn of(fetched: &Fetched<'_>, opens: bool) -> Self {
        let requested = fetched.requested_s.unwrap_or(fetched.end_s);
        let resolved = fetched.resolved_s.unwrap_or(fetched.known_s);
        let connected = fetched.connected_s.unwrap_or(fetched.end_s).max(requested);
        let first_byte = fetched.first_byte_s.unwrap_or(fetched.end_s).max(connected);
        let span = |from: f64, to: f64| milliseconds((to - from).max(0.0));
        // Others wait for the connection that the first one opens.
        let waiting = if opens { requested } else { connected };
        Self {
            blocked: span(resolved, waiting),
            dns: fetched
                .resolved_s
                .map_or(NONE, |resolved| span(fetched.known_s, resolved)),
            connect: if opens {
                span(requested, connected)
            } else {
                NONE
            },
            send: 0.0,
            wait: span(connected, first_byte),
            receive: span(first_byte, fetched.end_s),
            ssl: NONE,
        }
    }

    /// The sum of the steps that apply.
    fn total(self) -> f64 {
        let Self {
            blocked,
            dns,
            connect,
            send,
            wait,
            receive,
            ssl: _,
        } = self;
        let all = [blocked, dns, connect, send, wait, receive];
        all.into_iter().filter(|part| *part > 0.0).sum()
    }
}

fn milliseconds(seconds: f64) -> f64 {
    seconds * 1e3
}

/// The moment `offset_s` after `started`, as in RFC 3339.
fn date(started: Duration, offset_s: f64) -> String {
    let offset = Duration::try_from_secs_f64(offset_s).unwrap_or_default();
    let at = i128::try_from((started + offset).as_nanos()).unwrap_or(i128::MAX);
    let at = OffsetDateTime::from_unix_timestamp_nanos(at).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    at.format(&Rfc3339).unwrap_or_default()
}

/// Header fields that may have secrets.
const PRIVATE: [HeaderName; 4] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE];

/// Header fields without secrets.
fn fields(headers: Option<&HeaderMap>) -> Vec<Field> {
    let all = headers.into_iter().flatten();
    let shown = all.filter(|(name, _)| !PRIVATE.contains(name));
    let shown = shown.map(|(name, value)| Field {
        name: name.to_string(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
    });
    shown.collect()
}

/// The fields of a query, not decoded.
fn query(url: &str) -> Vec<Field> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let fields = query.split('&').filter(|field| !field.is_empty());
    let fields = fields.map(|field| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        Field {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    });
    fields.collect()
}

#[cfg(test)]
mod tests;
