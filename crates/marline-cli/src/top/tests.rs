use std::net::{Ipv4Addr, SocketAddr};

use marline_http::server::{Server, ServerConfig, directory};

use super::source::{Snapshot, Source, Summary};
use super::view;

const PAGE: &str = r#"{"interval_s":2.0,"open":7,"connections":[
    {"connection":"c0ffee","client":"192.0.2.7:4000","http_version":"3","age_s":75.0,"requests":9,"in_progress":1,
     "requests_per_s":4.5,"bytes_sent":2000000,"bytes_sent_per_s":1000000.0,"lost_share":0.012,"paths":[
        {"id":0,"local":null,"remote":"192.0.2.7:4000","stage":"validated","rtt_s":0.0804,"min_rtt_s":0.08,"window_bytes":64000,
         "in_flight_bytes":3000,"pacing_bytes_per_s":null,"packets_sent":200,"packets_lost":3,"controller":"wireless","phase":"startup"},
        {"id":1,"local":null,"remote":"192.0.2.8:4000","stage":"validated","rtt_s":0.002,"min_rtt_s":0.001,"window_bytes":12000,
         "in_flight_bytes":0,"pacing_bytes_per_s":null,"packets_sent":0,"packets_lost":0,"controller":"wireless","phase":"cruise"}]},
    {"connection":"tcp-1","client":"192.0.2.9:4001","http_version":"2","age_s":7200.0,"requests":1,"in_progress":0,
     "requests_per_s":0.0,"bytes_sent":10,"bytes_sent_per_s":0.0,"lost_share":null,"paths":[]}]}"#;

/// Metrics after `n` times as much has happened.
fn metrics(n: u32) -> String {
    format!(
        "marline_http_responses_total{{version=\"3\",status=\"2xx\"}} {}\n\
         marline_http_responses_total{{version=\"3\",status=\"5xx\"}} {n}\n\
         marline_connections_open{{version=\"3\"}} 6\n\
         marline_connections_open{{version=\"2\"}} 1\n\
         marline_site_responses_total{{site=\"a.example\",status=\"4xx\"}} {n}\n\
         marline_site_request_duration_seconds_sum{{site=\"a.example\"}} {n}\n\
         marline_site_request_duration_seconds_count{{site=\"a.example\"}} {}\n\
         marline_upstream_requests_total{{upstream=\"http://127.0.0.1:8000\"}} {}\n\
         marline_upstream_healthy{{upstream=\"http://127.0.0.1:8000\"}} 0\n",
        10 * n,
        2 * n,
        3 * n
    )
}

fn summary() -> Summary {
    let before = Snapshot::of(100.0, &metrics(1), PAGE);
    Summary::of(&before, &Snapshot::of(102.0, &metrics(5), PAGE))
}

#[test]
fn rates_are_those_between_two_readings() {
    let summary = summary();
    assert_eq!(summary.requests_per_s, 22.0);
    assert_eq!(summary.failures_per_s, 2.0);
    assert_eq!(summary.sites[0].responses_4xx, 5);
    assert_eq!(summary.sites[0].mean_s, Some(0.5));
    assert_eq!(summary.upstreams[0].requests_per_s, 6.0);
    assert!(!summary.upstreams[0].healthy);
    let restarted = Summary::of(
        &Snapshot::of(100.0, &metrics(5), PAGE),
        &Snapshot::of(1.0, &metrics(1), PAGE),
    );
    assert_eq!(restarted.requests_per_s, 0.0);
}

#[test]
fn the_view_has_connections_with_their_paths() {
    let text = view::lines(&summary()).join("\n");
    for words in [
        "marline 0.1.0 at 127.0.0.1:9090, serving, up 1 min",
        "22 requests/s",
        "7 connections: 6 of HTTP/3, 1 of HTTP/2",
        "http://127.0.0.1:8000  not healthy",
        "a.example",
        "  path 0 192.0.2.7:4000 validated",
        "80 ms  64.0 kB  wireless startup",
        "1.20 %",
        "8.0 Mbit/s",
        "and 5 less active ones",
    ] {
        assert!(text.contains(words), "`{words}` in\n{text}");
    }
}

#[tokio::test]
async fn a_running_server_is_read() {
    let directory_served = tempfile::tempdir().unwrap();
    let site = directory(directory_served.path(), false).unwrap();
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut config = ServerConfig::cleartext(local, site);
    config.metrics = Some(local);
    let server = Server::bind(config).await.unwrap();
    let source = Source::new(server.metrics_addr().unwrap()).unwrap();
    let main = Source::new(server.local_addr()).unwrap();
    let handle = server.handle();
    let serving = tokio::spawn(server.run());
    assert!(source.is_marline().await);
    assert!(!main.is_marline().await);
    let before = source.read().await.unwrap();
    let summary = Summary::of(&before, &source.read().await.unwrap());
    assert_eq!(summary.status, "serving");
    assert_eq!(summary.version, env!("CARGO_PKG_VERSION"));
    handle.hurry();
    serving.await.unwrap().unwrap();
}
