use super::*;
use crate::runtime::RuntimeHandle;
use crate::server::monitor::Activity;

#[tokio::test]
async fn rendered_metrics_hold_the_counts() {
    let metrics = Arc::new(Metrics::default());
    let recorder = Arc::new(Recorder {
        runtime: RuntimeHandle::new(None).unwrap(),
        metrics: Arc::clone(&metrics),
        client: ([127, 0, 0, 1], 1).into(),
        connection: String::new(),
        alt_svc: None,
        tls: std::sync::OnceLock::new(),
        progress: None,
        activity: Activity::default(),
        quic: None,
    });
    let _open = metrics.connection_opened(&recorder, Version::HTTP_3);
    metrics.responded(
        Version::HTTP_3,
        None,
        StatusCode::PARTIAL_CONTENT,
        10,
        Duration::from_millis(2),
    );
    metrics.responded(
        Version::HTTP_11,
        None,
        StatusCode::NOT_FOUND,
        0,
        Duration::from_secs(100),
    );
    let text = metrics.render();
    for line in [
        "marline_http_responses_total{version=\"3\",status=\"2xx\"} 1",
        "marline_http_responses_total{version=\"1.1\",status=\"4xx\"} 1",
        "marline_http_response_bytes_total{version=\"3\"} 10",
        "marline_connections_open{version=\"3\"} 1",
        "marline_http_request_duration_seconds_bucket{le=\"0.005\"} 1",
        "marline_http_request_duration_seconds_bucket{le=\"+Inf\"} 2",
        "marline_http_request_duration_seconds_count 2",
    ] {
        assert!(text.lines().any(|have| have == line), "{line}\nin\n{text}");
    }
}

#[test]
fn metrics_of_transport_and_process_are_always_there() {
    let text = Metrics::default().render();
    for name in [
        "marline_quic_connections{state=\"handshake\"}",
        "marline_quic_handshakes_total{outcome=\"failed\"}",
        "marline_quic_handshake_duration_seconds_count",
        "marline_quic_last_rtt_seconds_count",
        "marline_quic_refused_total{reason=\"connections_of_address\"}",
        "marline_quic_packets_lost_total",
        "marline_quic_retransmitted_bytes_total",
        "marline_quic_window_bytes",
        "marline_quic_sent_datagrams_total",
    ] {
        let has = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest == " 0");
        assert!(text.lines().any(has), "{name}\nin\n{text}");
    }
    assert!(text.contains("\nmarline_build_info{version="));
    #[cfg(target_os = "linux")]
    for name in [
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
    ] {
        assert!(text.contains(&format!("\n{name} ")), "{name}");
    }
}
