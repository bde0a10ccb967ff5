use super::*;
use crate::scenario::HttpVersion;
use crate::workload::page::page;
use serde_json::json;

fn site(version: HttpVersion) -> Site {
    Site {
        version,
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 443)),
        pin: None,
    }
}

/// The events of a load in which each object arrives over `protocol` at once.
fn events(page: &Page, site: &Site, protocol: &str) -> Vec<(&'static str, Value)> {
    let mut events = Vec::new();
    for (number, object) in page.objects.iter().enumerate() {
        let at = 100.0 + number as f64;
        let request = number.to_string();
        let sent = json!({ "requestId": request, "loaderId": "0", "timestamp": at, "wallTime": 1e9,
            "request": { "url": site.url(object) } });
        let timing = json!({ "requestTime": at, "connectStart": if number == 0 { 1.0 } else { -1.0 },
            "connectEnd": if number == 0 { 31.0 } else { -1.0 }, "sendStart": 40.0, "receiveHeadersEnd": 90.0 });
        let response = json!({ "status": 200, "protocol": protocol, "connectionId": 7,
            "remoteIPAddress": "10.77.0.2", "remotePort": 4433, "timing": timing });
        events.extend([
            ("Network.requestWillBeSent", sent),
            (
                "Network.responseReceived",
                json!({ "requestId": request, "response": response }),
            ),
            (
                "Network.dataReceived",
                json!({ "requestId": request, "dataLength": object.size }),
            ),
            (
                "Network.loadingFinished",
                json!({ "requestId": request, "timestamp": at + 0.2 }),
            ),
        ]);
    }
    events.push(("Page.loadEventFired", json!({ "timestamp": 500.0 })));
    events
}

fn record(page: &Page, site: &Site, events: Vec<(&'static str, Value)>) -> Result<Loaded, String> {
    let mut recording = Recording::new(site, page);
    for (method, parameters) in events {
        recording.note(Event {
            method: method.to_owned(),
            parameters,
        });
    }
    assert!(recording.is_over());
    recording.finish()
}

#[test]
fn times_count_from_the_request_for_the_document() {
    let (page, site) = (page("cloned/google", 1).unwrap(), site(HttpVersion::Http3));
    let loaded = record(&page, &site, events(&page, &site, "h3")).unwrap();
    assert_eq!(loaded.load_event_s, 400.0);
    let report = loaded.report;
    assert_eq!(report.page_load_s, 400.0);
    let near = |time: Option<f64>, expected: f64| (time.unwrap() - expected).abs() < 1e-9;
    let [first, second] = [&report.objects[0], &report.objects[1]];
    assert!(near(first.start_s, 0.001) && near(first.connected_s, 0.031));
    assert!(near(first.first_byte_s, 0.09) && near(first.end_s, 0.2));
    assert!(near(second.discovered_s, 1.0) && near(second.start_s, 1.04));
    assert!(report.objects.iter().all(|object| object.error.is_none()));
    assert_eq!(report.connections.len(), 1);
    let connection = &report.connections[0];
    assert_eq!((connection.id, connection.http_version), (0, "3"));
    assert!((connection.handshake_s - 0.03).abs() < 1e-9);
}

#[test]
fn a_response_over_another_version_is_no_result() {
    let (page, site) = (page("cloned/google", 1).unwrap(), site(HttpVersion::Http3));
    let error = record(&page, &site, events(&page, &site, "h2"))
        .err()
        .unwrap();
    assert_eq!(error, "html0 came over \"h2\" instead of \"h3\"");
}

#[test]
fn an_object_that_failed_or_is_not_whole_has_an_error() {
    let (page, site) = (page("cloned/google", 1).unwrap(), site(HttpVersion::Http2));
    let mut events = events(&page, &site, "h2");
    events[2].1["dataLength"] = json!(1);
    let last = events.len() - 2;
    let failed = json!({ "requestId": (page.objects.len() - 1).to_string(), "timestamp": 130.0, "errorText": "net::ERR_FAILED" });
    events[last] = ("Network.loadingFailed", failed);
    let report = record(&page, &site, events).unwrap().report;
    let error = report.objects[0].error.clone().unwrap();
    assert!(error.starts_with("Chromium received 1 of "), "{error}");
    let failed = report.objects.last().unwrap();
    assert_eq!(failed.error.as_deref(), Some("net::ERR_FAILED"));
    assert_eq!(failed.done_s, None);
}

#[test]
fn events_of_other_requests_and_of_unknown_form_are_ignored() {
    let (page, site) = (page("cloned/google", 1).unwrap(), site(HttpVersion::Http2));
    let mut all = vec![
        (
            "Network.dataReceived",
            json!({ "requestId": "x", "dataLength": 5 }),
        ),
        ("Network.requestWillBeSent", json!({ "requestId": 3 })),
        ("Page.loadEventFired", json!({ "timestamp": 1.0 })),
    ];
    all.extend(events(&page, &site, "h2"));
    assert!(record(&page, &site, all).is_ok());
}
