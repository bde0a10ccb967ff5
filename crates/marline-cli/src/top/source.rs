//! The readings of a metrics address, and the rates that follow from two of them.

use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Limited};
use marline_http::client::{Client, ClientConfig, HttpVersion, parse_url};
use serde::{Deserialize, Serialize};

use super::exposition::Samples;
use crate::failure::Failure;

/// The time that an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest page: the metrics of thousands of sites.
const MAX_BYTES: usize = 32 << 20;

/// The metrics address of a server.
pub(super) struct Source {
    address: SocketAddr,
    client: Client,
}

/// One reading.
#[derive(Debug)]
pub(super) struct Snapshot {
    address: SocketAddr,
    health: Health,
    samples: Samples,
    page: Page,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Health {
    status: String,
    version: String,
    uptime_s: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Page {
    open: usize,
    connections: Vec<Connection>,
}

/// A connection, as the server shows it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Connection {
    pub(super) connection: String,
    pub(super) client: String,
    pub(super) http_version: String,
    pub(super) age_s: f64,
    pub(super) requests: u64,
    pub(super) in_progress: u64,
    pub(super) requests_per_s: f64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_sent_per_s: f64,
    pub(super) lost_share: Option<f64>,
    pub(super) paths: Vec<Path>,
}

/// A path of a QUIC connection.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Path {
    pub(super) id: u32,
    pub(super) local: Option<String>,
    pub(super) remote: String,
    pub(super) stage: String,
    pub(super) rtt_s: Option<f64>,
    pub(super) min_rtt_s: Option<f64>,
    pub(super) window_bytes: u64,
    pub(super) in_flight_bytes: u64,
    pub(super) pacing_bytes_per_s: Option<u64>,
    pub(super) packets_sent: u64,
    pub(super) packets_lost: u64,
    pub(super) controller: String,
    pub(super) phase: String,
}

/// The state of a server, and its rates since the reading before.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) address: SocketAddr,
    pub(super) status: String,
    pub(super) version: String,
    pub(super) uptime_s: f64,
    pub(super) requests_per_s: f64,
    /// Responses with a status of 500 or more.
    pub(super) failures_per_s: f64,
    pub(super) content_bytes_per_s: f64,
    /// Packets of QUIC, since the start.
    pub(super) lost_share: Option<f64>,
    pub(super) open: Open,
    pub(super) sites: Vec<Site>,
    pub(super) upstreams: Vec<Upstream>,
    /// The most active ones first; `open.all` says how many there are.
    pub(super) connections: Vec<Connection>,
}

/// Open connections by version of HTTP.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Open {
    pub(super) all: usize,
    pub(super) http1: u64,
    pub(super) http2: u64,
    pub(super) http3: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Site {
    pub(super) site: String,
    pub(super) responses: u64,
    pub(super) responses_per_s: f64,
    pub(super) responses_4xx: u64,
    pub(super) responses_5xx: u64,
    pub(super) bytes: u64,
    pub(super) bytes_per_s: f64,
    pub(super) mean_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Upstream {
    pub(super) upstream: String,
    pub(super) healthy: bool,
    pub(super) requests: u64,
    pub(super) requests_per_s: f64,
    pub(super) in_progress: u64,
    pub(super) waiting: u64,
    pub(super) failures: u64,
}

impl Source {
    pub(super) fn new(address: SocketAddr) -> Result<Self, Failure> {
        let config = ClientConfig {
            version: HttpVersion::Http11Cleartext,
            ..ClientConfig::default()
        };
        let client = Client::new(config).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Self { address, client })
    }

    /// Whether a server of marline shows its health there.
    pub(super) async fn is_marline(&self) -> bool {
        self.health().await.is_ok()
    }

    async fn health(&self) -> Result<Health, Failure> {
        let text = self.page("/health").await?;
        serde_json::from_str(&text).map_err(|_| self.other())
    }

    /// Reads all pages.
    pub(super) async fn read(&self) -> Result<Snapshot, Failure> {
        let health = self.health().await?;
        let samples = Samples::of(&self.page("/metrics").await?);
        let page = self.page("/connections").await?;
        Ok(Snapshot {
            address: self.address,
            health,
            samples,
            page: serde_json::from_str(&page).map_err(|_| self.other())?,
        })
    }

    fn other(&self) -> Failure {
        Failure::Failed(format!(
            "what answers at {} is not the metrics address of marline; give the one that `metrics on` named when the server started",
            self.address
        ))
    }

    async fn page(&self, path: &str) -> Result<String, Failure> {
        let url = format!("http://{}{path}", self.address);
        let failed = |error: String| Failure::Failed(format!("cannot read {url}: {error}"));
        let reading = async {
            let parsed = parse_url(&url, HttpVersion::Http11Cleartext)
                .map_err(|error| failed(error.to_string()))?;
            let connection = self.client.connect(&parsed.origin).await;
            let connection = connection.map_err(|error| failed(error.to_string()))?;
            let response = connection
                .get(&parsed.origin, &parsed.uri, &HeaderMap::new())
                .await
                .map_err(|error| failed(error.to_string()))?;
            // A server that stops shows its health with 503.
            let status = response.status();
            if !matches!(status, StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE) {
                return Err(self.other());
            }
            let body = Limited::new(response.into_body(), MAX_BYTES)
                .collect()
                .await;
            let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
            String::from_utf8(body.to_vec()).map_err(|_| self.other())
        };
        match tokio::time::timeout(TIMEOUT, reading).await {
            Ok(page) => page,
            Err(_) => Err(failed("it takes too long".to_owned())),
        }
    }
}

impl Summary {
    /// The state at `now`, with rates since `before`.
    pub(super) fn of(before: &Snapshot, now: &Snapshot) -> Self {
        let change = Change::between(before, now);
        let samples = &now.samples;
        let count = |name: &str, labels: &[(&str, &str)]| samples.sum(name, labels) as u64;
        let responses = "marline_http_responses_total";
        let open = |version| count("marline_connections_open", &[("version", version)]);
        let lost = samples.sum("marline_quic_packets_lost_total", &[]);
        let sent = samples.sum("marline_quic_packets_sent_total", &[]);
        Self {
            address: now.address,
            status: now.health.status.clone(),
            version: now.health.version.clone(),
            uptime_s: now.health.uptime_s,
            requests_per_s: change.rate(responses, &[]),
            failures_per_s: change.rate(responses, &[("status", "5xx")]),
            content_bytes_per_s: change.rate("marline_http_response_bytes_total", &[]),
            lost_share: (sent > 0.0).then(|| lost / sent),
            open: Open {
                all: now.page.open,
                http1: open("1.1"),
                http2: open("2"),
                http3: open("3"),
            },
            sites: change.sites(),
            upstreams: change.upstreams(),
            connections: now.page.connections.clone(),
        }
    }
}

/// The counters of two readings.
struct Change<'a> {
    before: &'a Samples,
    now: &'a Samples,
    seconds: f64,
}

impl<'a> Change<'a> {
    fn between(before: &'a Snapshot, now: &'a Snapshot) -> Self {
        Self {
            before: &before.samples,
            now: &now.samples,
            // By the clock of the server, which may have been started again.
            seconds: now.health.uptime_s - before.health.uptime_s,
        }
    }

    fn rate(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let change = self.now.sum(name, labels) - self.before.sum(name, labels);
        match self.seconds > 0.0 {
            true => (change / self.seconds).max(0.0),
            false => 0.0,
        }
    }

    fn sites(&self) -> Vec<Site> {
        let responses = "marline_site_responses_total";
        let bytes = "marline_site_response_bytes_total";
        let duration = "marline_site_request_duration_seconds";
        let sites = self.now.values(responses, "site").into_iter();
        let site = |site: &str| {
            let of_site = [("site", site)];
            let count = |name: &str| self.now.sum(name, &of_site);
            let of_class = |class| {
                self.now
                    .sum(responses, &[("site", site), ("status", class)])
            };
            let durations = count(&format!("{duration}_count"));
            let total = count(&format!("{duration}_sum"));
            Site {
                site: site.to_owned(),
                responses: count(responses) as u64,
                responses_per_s: self.rate(responses, &of_site),
                responses_4xx: of_class("4xx") as u64,
                responses_5xx: of_class("5xx") as u64,
                bytes: count(bytes) as u64,
                bytes_per_s: self.rate(bytes, &of_site),
                mean_s: (durations > 0.0).then(|| total / durations),
            }
        };
        sites.map(site).collect()
    }

    fn upstreams(&self) -> Vec<Upstream> {
        let requests = "marline_upstream_requests_total";
        let upstreams = self.now.values(requests, "upstream").into_iter();
        let upstream = |upstream: &str| {
            let labels = [("upstream", upstream)];
            let count = |what: &str| self.now.sum(&format!("marline_upstream_{what}"), &labels);
            Upstream {
                upstream: upstream.to_owned(),
                healthy: count("healthy") > 0.0,
                requests: count("requests_total") as u64,
                requests_per_s: self.rate(requests, &labels),
                in_progress: count("in_flight") as u64,
                waiting: count("waiting") as u64,
                failures: count("failures_total") as u64,
            }
        };
        upstreams.map(upstream).collect()
    }
}

#[cfg(test)]
impl Snapshot {
    /// A reading after `uptime_s` with these metrics and this page of connections.
    pub(super) fn of(uptime_s: f64, metrics: &str, page: &str) -> Self {
        Self {
            address: ([127, 0, 0, 1], 9090).into(),
            health: Health {
                status: "serving".to_owned(),
                version: "0.1.0".to_owned(),
                uptime_s,
            },
            samples: Samples::of(metrics),
            page: serde_json::from_str(page).unwrap(),
        }
    }
}
