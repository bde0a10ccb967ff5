use super::*;

#[test]
fn rendered_metrics_hold_the_counts() {
    let metrics = Metrics::default();
    metrics.connection_opened(Version::HTTP_3);
    metrics.responded(
        Version::HTTP_3,
        StatusCode::PARTIAL_CONTENT,
        10,
        Duration::from_millis(2),
    );
    metrics.responded(
        Version::HTTP_11,
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
