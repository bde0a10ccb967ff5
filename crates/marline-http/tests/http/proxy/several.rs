//! Several applications, of which some do not work.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, StatusCode};
use marline_http::Body;
use marline_http::proxy::{ProxyConfig, UpstreamMetrics, reverse_proxy};
use marline_http::server::MetricsSource;

use super::application::{Application, Then};
use super::{get, proxy, proxy_with, request, whole};
use crate::common::VERSIONS;
use crate::metrics::wait_for;

fn named(name: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}",
        name.len()
    )
}

async fn unused_url() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn applications_take_turns() {
    let first = Application::that_sends(named("first"), Then::Continue).await;
    let second = Application::that_sends(named("second"), Then::Continue).await;
    let proxy = proxy(&[first.url(), second.url()]).await;
    let mut counts = BTreeMap::new();
    for _ in 0..6 {
        *counts
            .entry(get(&proxy, VERSIONS[0]).await.text)
            .or_insert(0) += 1;
    }
    let expected = [("first".to_owned(), 3), ("second".to_owned(), 3)];
    assert_eq!(counts, BTreeMap::from(expected));
}

#[tokio::test]
async fn requests_go_to_another_application_if_one_cannot_be_reached() {
    let works = Application::that_sends(named("works"), Then::Continue).await;
    let proxy = proxy(&[unused_url().await, works.url()]).await;
    for version in VERSIONS {
        for method in [Method::GET, Method::POST] {
            // Nothing of the content was sent, so that it can be sent elsewhere.
            let body = match method {
                Method::POST => Body::full("content"),
                _ => Body::empty(),
            };
            let response = request(&proxy, version, method, &[], body).await.unwrap();
            assert_eq!(whole(response).await.text, "works");
        }
    }
}

#[tokio::test]
async fn only_requests_that_may_be_repeated_are_sent_again_after_a_lost_connection() {
    let broken = Application::that_sends("", Then::Close).await;
    let works = Application::that_sends(named("works"), Then::Continue).await;
    let proxy = proxy(&[broken.url(), works.url()]).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        assert_eq!(get(&proxy, VERSIONS[0]).await.text, "works");
        // Applications take turns: of two requests, each gets one.
        for _ in 0..2 {
            let response = request(&proxy, VERSIONS[0], Method::POST, &[], Body::empty());
            statuses.push(response.await.unwrap().status());
        }
    }
    assert!(statuses.contains(&StatusCode::BAD_GATEWAY), "{statuses:?}");
}

#[tokio::test]
async fn a_request_that_may_be_repeated_goes_to_another_application_where_one_is_unavailable() {
    let busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
    let busy = Application::that_sends(busy, Then::Continue).await;
    let works = Application::that_sends(named("works"), Then::Continue).await;
    let urls = [busy.url(), works.url()];
    let server = proxy(&urls).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        assert_eq!(get(&server, VERSIONS[0]).await.text, "works");
        // Applications take turns: of two requests, each gets one.
        for _ in 0..2 {
            let response = request(&server, VERSIONS[0], Method::POST, &[], Body::empty());
            statuses.push(response.await.unwrap().status());
        }
    }
    assert!(statuses.contains(&StatusCode::SERVICE_UNAVAILABLE));
    let repeated = format!(
        "marline_upstream_repeated_total{{upstream=\"{}\",reason=\"unavailable\"}} ",
        busy.url()
    );
    let page = server.metrics.render();
    let count = page.lines().find_map(|line| line.strip_prefix(&repeated));
    assert!(count.is_some_and(|count| count != "0"), "{page}");
    let without = [
        proxy_with(&urls, |config| config.retries = 0).await,
        proxy_with(&urls, |config| config.retry_budget = 0.0).await,
        proxy(&[busy.url()]).await,
    ];
    for server in without {
        let texts = [
            get(&server, VERSIONS[0]).await,
            get(&server, VERSIONS[0]).await,
        ];
        assert!(texts.iter().any(|answer| answer.text == "busy"));
    }
}

#[tokio::test]
async fn requests_of_one_key_get_one_application_until_it_fails() {
    let first = Application::that_sends(named("first"), Then::Continue).await;
    let second = Application::that_sends(named("second"), Then::Continue).await;
    let proxy = proxy_with(&[first.url(), second.url()], |config| {
        config.balance = "hash cookie session".parse().unwrap();
    })
    .await;
    let ask = async |session: String| {
        let cookie = [("cookie", session.as_str())];
        let response = request(&proxy, VERSIONS[0], Method::GET, &cookie, Body::empty());
        whole(response.await.unwrap()).await.text
    };
    let mut chosen = BTreeMap::new();
    for round in 0..2 {
        for number in 0..12 {
            let session = format!("session={number}");
            let text = ask(session.clone()).await;
            match round {
                0 => drop(chosen.insert(session, text)),
                _ => assert_eq!(chosen[&session], text),
            }
        }
    }
    assert!(chosen.values().any(|text| text == "first"));
    assert!(chosen.values().any(|text| text == "second"));
    drop(second);
    for (session, before) in chosen {
        let text = ask(session).await;
        assert!(text == "first" || before == "second", "{before}, {text}");
    }
}

#[tokio::test]
async fn an_idle_connection_that_the_application_has_closed_costs_no_request() {
    let application = Application::with(std::sync::Arc::new(|mut stream, _| {
        Box::pin(async move {
            use tokio::io::AsyncWriteExt;
            stream.write_all(named("works").as_bytes()).await.ok()?;
            // Closed without notice in the header.
            None
        })
    }))
    .await;
    let proxy = proxy(&[application.url()]).await;
    for _ in 0..50 {
        assert_eq!(get(&proxy, VERSIONS[0]).await.text, "works");
    }
}

#[tokio::test]
async fn an_application_that_fails_its_health_checks_gets_no_requests() {
    let sick = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nsick";
    let sick = Application::that_sends(sick, Then::Continue).await;
    let works = Application::that_sends(named("works"), Then::Continue).await;
    let proxy = proxy_with(&[sick.url(), works.url()], |config| {
        config.health_path = Some("/health".parse().unwrap());
        config.health_interval = Duration::from_millis(20);
    })
    .await;
    let checked = || sick.requests.lock().unwrap().len() > 2;
    while !checked() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..6 {
        assert_eq!(get(&proxy, VERSIONS[0]).await.text, "works");
    }
    let checks = sick.requests.lock().unwrap();
    assert!(checks.iter().all(|one| one.starts_with("GET /health ")));
}

#[tokio::test]
async fn more_requests_than_allowed_wait_and_are_503_if_none_ends() {
    let application = Application::that_sends("", Then::Hang).await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.max_requests = 1;
        config.place_timeout = Duration::from_millis(200);
        config.response_timeout = Duration::from_secs(3);
    })
    .await;
    let (one, other) = tokio::join!(get(&proxy, VERSIONS[0]), get(&proxy, VERSIONS[2]));
    let mut statuses = [one.status, other.status];
    statuses.sort();
    let expected = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn a_request_goes_to_an_application_that_has_a_place() {
    let busy = Application::that_sends("", Then::Hang).await;
    let works = Application::that_sends(named("works"), Then::Continue).await;
    let proxy = proxy_with(&[busy.url(), works.url()], |config| {
        config.max_requests = 1;
        config.place_timeout = Duration::from_secs(60);
    })
    .await;
    let waits = request(&proxy, VERSIONS[0], Method::GET, &[], Body::empty());
    let others = async {
        while busy.requests.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for _ in 0..4 {
            assert_eq!(get(&proxy, VERSIONS[0]).await.text, "works");
        }
    };
    tokio::select! {
        response = waits => panic!("{:?}", response.map(|response| response.status())),
        () = others => {}
    }
}

#[tokio::test]
async fn one_client_leaves_places_at_an_application() {
    let application = Application::that_sends("", Then::Hang).await;
    let proxy = proxy_with(&[application.url()], |config| {
        config.max_requests = 2;
        config.place_timeout = Duration::from_millis(200);
        config.response_timeout = Duration::from_secs(3);
    })
    .await;
    let (one, other) = tokio::join!(get(&proxy, VERSIONS[0]), get(&proxy, VERSIONS[2]));
    let mut statuses = [one.status, other.status];
    statuses.sort();
    let expected = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn what_applications_do_is_counted() {
    let works = Application::that_sends(named("works"), Then::Continue).await;
    let malformed =
        Application::that_sends("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Then::Close).await;
    let unused = unused_url().await;
    let (works, malformed) = (works.url(), malformed.url());
    let proxy = proxy(&[works.clone(), malformed.clone(), unused.clone()]).await;
    for _ in 0..6 {
        get(&proxy, VERSIONS[0]).await;
    }
    let line = |metric: &str, url: &str, more: &str, value: u64| {
        format!("marline_upstream_{metric}{{upstream=\"{url}\"{more}}} {value}")
    };
    let error = |name: &str| format!(",error=\"{name}\"");
    let unavailable = error("destination_unavailable");
    let incomplete = error("http_response_incomplete");
    for expected in [
        line("failures_total", &works, &unavailable, 0),
        line("failures_total", &works, &incomplete, 0),
        line("failures_total", &unused, &unavailable, 1),
        line("requests_total", &unused, "", 1),
        line("healthy", &works, "", 1),
        line("healthy", &unused, "", 0),
        line("in_flight", &works, "", 0),
        line("in_flight", &malformed, "", 0),
    ] {
        wait_for(&proxy, &expected).await;
    }
    let page = proxy.metrics.render();
    let value = |metric: &str, url: &str, more: &str| -> u64 {
        let begin = format!("marline_upstream_{metric}{{upstream=\"{url}\"{more}}} ");
        let mut lines = page.lines();
        let found = lines.find_map(|line| line.strip_prefix(&begin));
        found
            .unwrap_or_else(|| panic!("{begin}\nin\n{page}"))
            .parse()
            .unwrap()
    };
    assert!(value("requests_total", &works, "") >= 2, "{page}");
    let failures = value("failures_total", &malformed, &incomplete);
    assert!(failures >= 1, "{page}");
    assert_eq!(failures, value("requests_total", &malformed, ""), "{page}");
}

#[tokio::test]
async fn requests_are_in_flight_until_their_responses_are_over() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe";
    let slow = Application::that_sends(head, Then::Hang).await;
    let proxy = proxy(&[slow.url()]).await;
    let in_flight = |count| {
        format!(
            "marline_upstream_in_flight{{upstream=\"{}\"}} {count}",
            slow.url()
        )
    };
    wait_for(&proxy, &in_flight(0)).await;
    let response = request(&proxy, VERSIONS[3], Method::GET, &[], Body::empty());
    let response = response.await.unwrap();
    wait_for(&proxy, &in_flight(1)).await;
    drop(response);
    wait_for(&proxy, &in_flight(0)).await;
}

#[tokio::test]
async fn sites_that_share_an_application_each_have_their_view_of_its_health() {
    let answers = |path: &'static str| {
        std::sync::Arc::new(move |mut stream: tokio::net::TcpStream, header: String| {
            Box::pin(async move {
                use tokio::io::AsyncWriteExt;
                let answer = match header.starts_with(path) {
                    true => named("works"),
                    false => {
                        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".to_owned()
                    }
                };
                stream.write_all(answer.as_bytes()).await.ok()?;
                Some(stream)
            }) as futures_util::future::BoxFuture<'static, _>
        })
    };
    let application = Application::with(answers("GET /well")).await;
    let metrics = UpstreamMetrics::default();
    let _sites = ["/well", "/ill", "/well"].map(|path| {
        let mut config = ProxyConfig::to(vec![application.url().parse().unwrap()]);
        config.health_path = Some(path.parse().unwrap());
        reverse_proxy(config, &metrics).unwrap()
    });
    let views = || {
        let upstreams = metrics.upstreams();
        let views = upstreams
            .iter()
            .map(|one| (one.health_path.clone(), one.healthy));
        views.collect::<Vec<_>>()
    };
    let (ill, well) = (Some("/ill".to_owned()), Some("/well".to_owned()));
    let expected = [(ill, false), (well, true)];
    crate::common::until("both views", || views() == expected).await;
    let mut page = String::new();
    metrics.write(&mut page).unwrap();
    let url = application.url();
    let line = format!("marline_upstream_healthy{{upstream=\"{url}\"}} 0");
    assert!(page.lines().any(|one| one == line), "{page}");
}

#[test]
fn a_proxy_that_replaces_another_goes_on_counting() {
    let metrics = UpstreamMetrics::default();
    let config =
        |urls: &[&str]| ProxyConfig::to(urls.iter().map(|url| url.parse().unwrap()).collect());
    let first = reverse_proxy(config(&["http://a:1", "http://b:1"]), &metrics).unwrap();
    let second = reverse_proxy(config(&["http://b:1", "http://c:1"]), &metrics).unwrap();
    drop(first);
    let mut page = String::new();
    metrics.write(&mut page).unwrap();
    let healthy: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("marline_upstream_healthy"))
        .collect();
    let expected = ["b", "c"]
        .map(|host| format!("marline_upstream_healthy{{upstream=\"http://{host}:1\"}} 1"));
    assert_eq!(healthy, expected);
    drop(second);
}
