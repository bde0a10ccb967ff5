//! The page of metrics, from those that servers, gateways and exports write.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use marline::coordination::bundle::BundleConfig;
use marline::coordination::history::MemoryStore;
use marline::{MultipathConfig, TokioRuntime};
use marline_certificates::{CertificateDays, Certificates, Stapling};
use marline_http::client::{Client, ClientConfig};
use marline_http::proxy::{PipeMetrics, ProxyConfig, UpstreamMetrics, reverse_proxy};
use marline_http::server::{
    AccessLog, Challenges, MetricsSource, Refusal, Server, ServerConfig, SiteName, StateDirectory,
    generated,
};

use super::*;

/// A metric as the lines before its values describe it.
struct Metric {
    name: String,
    kind: String,
    help: String,
    /// The labels of its values, where it has values before anything happened.
    labels: Vec<String>,
}

/// The metrics of a page in the text format of Prometheus.
fn parsed(text: &str) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# HELP ") {
            let (name, help) = head.split_once(' ').unwrap();
            metrics.push(Metric {
                name: name.to_owned(),
                kind: String::new(),
                help: help.to_owned(),
                labels: Vec::new(),
            });
        } else if let Some(head) = line.strip_prefix("# TYPE ") {
            let metric = metrics.last_mut().unwrap();
            metric.kind = head.split_once(' ').unwrap().1.to_owned();
        } else if let (Some(metric), Some((_, labels))) = (metrics.last_mut(), line.split_once('{'))
        {
            for label in labels
                .split("\",")
                .filter_map(|label| label.split_once('='))
            {
                if label.0 != "le" && !metric.labels.iter().any(|known| known == label.0) {
                    metric.labels.push(label.0.to_owned());
                }
            }
        }
    }
    metrics
}

fn written(source: &dyn MetricsSource) -> String {
    let mut text = String::new();
    source.write(&mut text).unwrap();
    text
}

/// The metrics of a server with `transport`.
async fn of_server(transport: TransportConfig) -> String {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut config = ServerConfig::cleartext(listen, generated(BTreeMap::new(), None).unwrap());
    config.quic.transport = Arc::new(transport);
    config.site_names = vec![SiteName::new("example.org")];
    config.access_log = Some(AccessLog::new(std::io::sink()));
    Server::bind(config).await.unwrap().metrics().render()
}

fn with_history(mut transport: TransportConfig) -> TransportConfig {
    let store = Arc::new(MemoryStore::default());
    transport.set_history(HistoryPolicy::Careful, HistoryConfig::default(), store);
    transport
}

/// A section with the metrics of `text` that are not in `known`, which are added to it.
fn section_of(page: &mut String, title: &str, about: &str, text: &str, known: &mut Vec<String>) {
    let mut lines = String::new();
    for metric in parsed(text) {
        if known.contains(&metric.name) {
            continue;
        }
        let labels: Vec<_> = metric.labels.iter().map(|label| code(label)).collect();
        line(
            &mut lines,
            &[
                &code(&metric.name),
                &metric.kind,
                &labels.join(", "),
                &cell(&metric.help),
            ],
        );
        known.push(metric.name);
    }
    assert!(!lines.is_empty(), "{title}");
    let _ = write!(page, "\n## {title}\n\n{about}\n");
    table(page, &["metric", "type", "labels", "description"], &lines);
}

/// The metrics of a server without certificates.
fn certificates() -> String {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(directory.path(), Duration::ZERO).unwrap();
    let runtime = Arc::new(TokioRuntime::current().unwrap());
    let stapling = Stapling::new(None, runtime.clone()).unwrap();
    let certificates = Certificates::new(
        Arc::new(state),
        Arc::clone(&runtime) as _,
        Challenges::default(),
        stapling.clone(),
        Vec::new(),
    );
    let days = CertificateDays::new(runtime);
    let all: [&dyn MetricsSource; 3] = [&days, &certificates, &stapling];
    all.map(written).concat()
}

async fn page() -> String {
    let mut page = format!(
        "{GENERATED}\n\n# Metrics\n\n\
         `--metrics ADDR:PORT` of `serve`, `proxy`, `gateway` and `flow` serves `http://ADDR:PORT/metrics` in the text format of \
         Prometheus. Counters begin at 0 when the process starts, and go on after `SIGHUP`. \
         Use the address of the machine itself: the page has no access control.\n"
    );
    let mut known = Vec::new();
    let each = &mut known;
    let plain = of_server(TransportConfig::default()).await;
    section_of(
        &mut page,
        "Every server",
        "`serve`, `proxy` and `gateway`.",
        &plain,
        each,
    );
    let history = of_server(with_history(TransportConfig::default())).await;
    section_of(
        &mut page,
        "History",
        "With `--profile history` or `[history]` ([history](../history.md)).",
        &history,
        each,
    );
    let several = of_server(TransportConfig {
        multipath: Some(MultipathConfig::default()),
        bundle: Some(Arc::new(BundleConfig::default())),
        ..TransportConfig::default()
    })
    .await;
    section_of(
        &mut page,
        "Several paths",
        "With `--profile multipath` or `[multipath]` ([several paths](../multipath.md)). `path` is the number of the path in its connection, 0 to 15, and `more` beyond.",
        &several,
        each,
    );
    let upstreams = UpstreamMetrics::default();
    let config = ProxyConfig::to(vec!["http://127.0.0.1:8000".parse().unwrap()]);
    let _site = reverse_proxy(config, &upstreams).unwrap();
    section_of(
        &mut page,
        "Applications",
        "`proxy` ([the proxy](proxy.md)). `upstream` is the URL of the application.",
        &written(&upstreams),
        each,
    );
    section_of(
        &mut page,
        "Certificates",
        "`serve` and `proxy` ([certificates](../guide/certificates.md)). `name` is the first name of the site.",
        &certificates(),
        each,
    );
    let pipes = PipeMetrics::of(Arc::new(Client::new(ClientConfig::default()).unwrap()));
    section_of(
        &mut page,
        "Pools",
        "`gateway --pipes` ([the gateway](gateway.md#a-pool-of-connections)). Labels are `origin`, `pipe` and `state`.",
        &written(&pipes),
        each,
    );
    section_of(
        &mut page,
        "Flows",
        "`flow` ([flows](flows.md)); those of the process are the same as for servers.",
        &crate::flow::of_an_export(),
        each,
    );
    page
}

#[cfg(all(target_os = "linux", feature = "flow"))]
#[tokio::test]
async fn the_page_of_metrics_is_current() {
    is_current("metrics.md", &page().await);
}

#[test]
fn the_reasons_of_refusals_are_current() {
    let page = include_str!("../../../../../docs/reference/errors.md");
    let row = |refusal: Refusal| {
        let (status, name) = (refusal.status().as_u16(), code(refusal.name()));
        format!("| {status} | {name} | ")
    };
    let begin = |line: &&str| line.split(" | ").count() == 3 && line.contains("| `");
    let table = page.split("| status | `reason` | |").nth(1).unwrap();
    let table = table.split("\n\n").next().unwrap();
    let rows: Vec<_> = table.lines().filter(begin).collect();
    assert_eq!(rows.len(), Refusal::ALL.len());
    for refusal in Refusal::ALL {
        let row = row(refusal);
        assert!(rows.iter().any(|line| line.starts_with(&row)), "{row}");
    }
}

#[test]
fn the_errors_of_applications_are_current() {
    let upstreams = UpstreamMetrics::default();
    let config = ProxyConfig::to(vec!["http://127.0.0.1:8000".parse().unwrap()]);
    let _site = reverse_proxy(config, &upstreams).unwrap();
    let text = written(&upstreams);
    let names = text.split("error=\"").skip(1);
    let names: Vec<_> = names
        .filter_map(|rest| rest.split('"').next())
        .map(code)
        .collect();
    part_is_current("errors.md", "errors of applications", &names.join(", "));
}
