use std::net::SocketAddr;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;

use super::Har;
use crate::client::{ConnectionReport, Exchange, ObjectReport, PathReport, Report};
use crate::page::{Discovery, Kind, Page, PageObject, PageObjectReport, PageReport};

/// The properties that HAR 1.2 requires: the kind of object, the name of a property, and its type.
const REQUIRED: [(&str, &str, &str); 40] = [
    ("log", "version", "string"),
    ("log", "creator", "object"),
    ("log", "entries", "array"),
    ("creator", "name", "string"),
    ("creator", "version", "string"),
    ("page", "startedDateTime", "date"),
    ("page", "id", "string"),
    ("page", "title", "string"),
    ("page", "pageTimings", "object"),
    ("entry", "startedDateTime", "date"),
    ("entry", "time", "number"),
    ("entry", "request", "object"),
    ("entry", "response", "object"),
    ("entry", "cache", "object"),
    ("entry", "timings", "object"),
    ("request", "method", "string"),
    ("request", "url", "string"),
    ("request", "httpVersion", "string"),
    ("request", "cookies", "array"),
    ("request", "headers", "array"),
    ("request", "queryString", "array"),
    ("request", "headersSize", "number"),
    ("request", "bodySize", "number"),
    ("response", "status", "number"),
    ("response", "statusText", "string"),
    ("response", "httpVersion", "string"),
    ("response", "cookies", "array"),
    ("response", "headers", "array"),
    ("response", "content", "object"),
    ("response", "redirectURL", "string"),
    ("response", "headersSize", "number"),
    ("response", "bodySize", "number"),
    ("content", "size", "number"),
    ("content", "mimeType", "string"),
    ("timings", "send", "number"),
    ("timings", "wait", "number"),
    ("timings", "receive", "number"),
    ("field", "name", "string"),
    ("field", "value", "string"),
    ("pageTimings", "onLoad", "number"),
];

fn check(kind: &str, value: &Value) {
    for (of, name, wanted) in REQUIRED {
        if of != kind {
            continue;
        }
        let property = &value[name];
        let fits = match wanted {
            "string" => property.is_string(),
            "object" => property.is_object(),
            "array" => property.is_array(),
            "number" => property.is_number(),
            _ => property.as_str().is_some_and(|date| {
                let parse = |text| time::OffsetDateTime::parse(text, &super::Rfc3339);
                parse(date).is_ok()
            }),
        };
        assert!(fits, "{kind}.{name} is no {wanted}: {value}");
    }
}

/// Checks the structure of an archive, and that each entry's times add up.
fn check_archive(har: &Har) -> Value {
    let value = serde_json::to_value(har).unwrap();
    let log = &value["log"];
    check("log", log);
    assert_eq!(log["version"], "1.2");
    check("creator", &log["creator"]);
    let pages = log["pages"].as_array().unwrap();
    for page in pages {
        check("page", page);
        check("pageTimings", &page["pageTimings"]);
    }
    for entry in log["entries"].as_array().unwrap() {
        check("entry", entry);
        assert!(pages.iter().any(|page| page["id"] == entry["pageref"]));
        check("request", &entry["request"]);
        for field in entry["request"]["queryString"].as_array().unwrap() {
            check("field", field);
        }
        check("response", &entry["response"]);
        check("content", &entry["response"]["content"]);
        let timings = &entry["timings"];
        check("timings", timings);
        let steps = ["blocked", "dns", "connect", "send", "wait", "receive"];
        let steps = steps.map(|step| timings[step].as_f64().unwrap());
        assert!(steps.iter().all(|step| *step >= 0.0 || *step == -1.0));
        let sum: f64 = steps.iter().filter(|step| **step > 0.0).sum();
        assert!((sum - entry["time"].as_f64().unwrap()).abs() < 1e-6);
    }
    value
}

fn connection(id: u64) -> ConnectionReport {
    let address = SocketAddr::from(([10, 0, 0, 2], 443));
    ConnectionReport {
        id,
        http_version: "2",
        quic_version: None,
        resolve_s: 0.0,
        transport_s: 0.0,
        handshake_s: 0.1,
        bytes_received: 1,
        packets_lost_observed: None,
        peer_loss_estimate: None,
        peer_packets_sent: None,
        peer_packets_missing: None,
        multipath: false,
        mptcp_subflows: None,
        certificates: Default::default(),
        paths: vec![PathReport {
            id: 0,
            local: address,
            remote: address,
            rtt_s: None,
            bytes_received: 1,
            bytes_sent: None,
            packets_lost: None,
            closed: None,
        }],
    }
}

#[test]
fn a_page_load_is_an_archive() {
    let object = |id: &str, kind| PageObject {
        id: id.to_owned(),
        host: "example.test".to_owned(),
        path: format!("/{id}?a=1&b"),
        kind,
        size: 100,
        discovered_by: None,
        parse: Duration::ZERO,
        think: Duration::ZERO,
        blocking: false,
        urgency: None,
        incremental: None,
    };
    let found = |object: &str| {
        Some(Discovery {
            object: object.to_owned(),
            share: 1.0,
        })
    };
    let page = Page {
        objects: vec![
            object("html", Kind::Html),
            PageObject {
                discovered_by: found("html"),
                ..object("image", Kind::Image)
            },
            PageObject {
                discovered_by: found("image"),
                ..object("never", Kind::Image)
            },
        ],
    };
    let report = PageReport {
        page_load_s: 0.5,
        first_render_s: None,
        pipes: Vec::new(),
        objects: vec![
            PageObjectReport {
                id: "html".to_owned(),
                discovered_s: Some(0.0),
                resolved_s: Some(0.02),
                start_s: Some(0.02),
                connected_s: Some(0.12),
                first_byte_s: Some(0.2),
                end_s: Some(0.3),
                done_s: Some(0.31),
                bytes: 100,
                status: Some(200),
                connection: Some(7),
                error: None,
            },
            PageObjectReport {
                id: "image".to_owned(),
                discovered_s: Some(0.31),
                start_s: Some(0.33),
                connected_s: Some(0.33),
                end_s: Some(0.5),
                connection: Some(7),
                error: Some("reset".to_owned()),
                ..PageObjectReport::default()
            },
            PageObjectReport::default(),
        ],
        connections: vec![connection(7)],
    };
    let har = Har::of_page(&page, &report, Duration::from_secs(1_000_000_000), "a page");
    let value = check_archive(&har);
    let page = &value["log"]["pages"][0];
    assert_eq!(page["startedDateTime"], "2001-09-09T01:46:40Z");
    assert_eq!(page["pageTimings"]["onLoad"], 500.0);
    let entries = value["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    let timings = |entry: &Value| {
        ["blocked", "dns", "connect", "wait", "receive"]
            .map(|step| entry["timings"][step].as_f64().unwrap().round())
    };
    assert_eq!(timings(&entries[0]), [0.0, 20.0, 100.0, 80.0, 100.0]);
    assert_eq!(timings(&entries[1]), [20.0, -1.0, -1.0, 170.0, 0.0]);
    assert_eq!(entries[0]["request"]["queryString"][1]["name"], "b");
    assert_eq!(
        entries[0]["request"]["url"],
        "https://example.test/html?a=1&b"
    );
    assert_eq!(entries[0]["serverIPAddress"], "10.0.0.2");
    assert_eq!(entries[1]["response"]["status"], 0);
    assert_eq!(entries[1]["response"]["_error"], "reset");
    assert!(value["log"]["browser"].is_null());
    let value = check_archive(&har.by_browser("Chrome/156.0.8078.108"));
    let browser = &value["log"]["browser"];
    assert_eq!(browser["name"], "Chrome");
    assert_eq!(browser["version"], "156.0.8078.108");
}

fn headers(fields: &[(HeaderName, &'static str)]) -> HeaderMap {
    let fields = fields.iter().cloned();
    fields
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect()
}

#[test]
fn a_fetch_is_an_archive() {
    let report = Report {
        objects: vec![ObjectReport {
            url: "https://example.test/file".to_owned(),
            status: Some(404),
            start_s: 0.0,
            connected_s: Some(0.1),
            first_byte_s: Some(0.15),
            end_s: 0.2,
            connection: Some(0),
            http_version: "2",
            exchanges: vec![Exchange {
                uri: "https://example.test/file?a=1".parse().unwrap(),
                method: Method::POST,
                request: headers(&[(AUTHORIZATION, "Basic x"), (ACCEPT, "*/*")]),
                content_length: Some(3),
                connection: 0,
                http_version: "2",
                status: StatusCode::NOT_FOUND,
                response: headers(&[(CONTENT_TYPE, "text/css"), (SET_COOKIE, "a=b")]),
            }],
            ..ObjectReport::default()
        }],
        connections: vec![connection(0)],
        page_load_s: 0.2,
        ..Report::default()
    };
    let value = check_archive(&Har::of_fetch(&report, Duration::ZERO));
    let entry = &value["log"]["entries"][0];
    assert_eq!(entry["response"]["statusText"], "Not Found");
    assert_eq!(entry["time"], 200.0);
    let request = &entry["request"];
    assert_eq!(request["httpVersion"], "h2");
    assert_eq!(
        (&request["method"], &request["bodySize"]),
        (&"POST".into(), &3.into())
    );
    let field = |name: &str, value: &str| serde_json::json!([{"name": name, "value": value}]);
    assert_eq!(request["headers"], field("accept", "*/*"));
    let response = &entry["response"];
    assert_eq!(response["headers"], field("content-type", "text/css"));
    assert_eq!(response["content"]["mimeType"], "text/css");
}
