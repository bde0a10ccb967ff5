//! Page loads over a simulated link.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use marline_http::client::{Assignment, Progress};
use marline_http::page::{
    Discovery, Kind, LoadOptions, Page, PageObject, PageObjectReport, PageReport, load,
};

use crate::setup::{client, run, serve};

const SITE: &str = "example.test";
const STATIC: &str = "static.test";
const HTML_BYTES: u64 = 200_000;
const MS: Duration = Duration::from_millis(1);

fn object(id: &str, kind: Kind, size: u64, discovered_by: Option<(&str, f64)>) -> PageObject {
    PageObject {
        id: id.to_owned(),
        host: SITE.to_owned(),
        path: format!("/{id}"),
        kind,
        size,
        discovered_by: discovered_by.map(|(object, share)| Discovery {
            object: object.to_owned(),
            share,
        }),
        parse: Duration::ZERO,
        think: Duration::ZERO,
        blocking: false,
        urgency: None,
        incremental: None,
    }
}

/// A document in which objects are discovered early, halfway and at its end, some of which refer to others.
fn page() -> Page {
    let mut objects = vec![
        object("html", Kind::Html, HTML_BYTES, None),
        object("css", Kind::Css, 8_000, Some(("html", 0.2))),
        object("head.js", Kind::Js, 20_000, Some(("html", 0.2))),
        object("image", Kind::Image, 60_000, Some(("html", 0.5))),
        object("late.js", Kind::Js, 40_000, Some(("html", 1.0))),
        object("font", Kind::Font, 25_000, Some(("css", 1.0))),
        object("data", Kind::Other, 900, Some(("late.js", 1.0))),
    ];
    objects[0].parse = 20 * MS;
    objects[0].think = 20 * MS;
    objects[1].blocking = true;
    objects[2].blocking = true;
    objects[2].parse = 4 * MS;
    objects[3].host = STATIC.to_owned();
    objects[4].parse = 8 * MS;
    Page { objects }
}

/// Loads the page from its hosts. The object `hidden` is missing on its host; `open` connections to one host are open.
fn load_from(hidden: &str, open: usize, options: LoadOptions) -> PageReport {
    let page = page();
    run(async |network| {
        let mut hosts = Vec::new();
        let mut handles = Vec::new();
        for (server, host) in network.servers.iter().zip([SITE, STATIC]) {
            let mut objects = page.generated(host);
            objects.remove(&format!("/{hidden}"));
            let serving = serve(server, objects).await;
            hosts.push((host, serving.address));
            handles.push(serving.handle);
        }
        let client = client(&network.client, hosts);
        let url = format!("https://{SITE}/");
        client.open(&url, open).await.unwrap();
        let progress = Arc::<Progress>::default();
        let report = load(&client, &page, options, &progress).await.unwrap();
        let bytes: u64 = report.objects.iter().map(|object| object.bytes).sum();
        // Whether objects come whole or in ranges.
        assert_eq!(progress.received.load(Relaxed), bytes);
        assert_eq!(progress.expected.load(Relaxed), bytes);
        report
    })
}

fn load_page(options: LoadOptions) -> PageReport {
    load_from("", 0, options)
}

fn named<'a>(report: &'a PageReport, id: &str) -> &'a PageObjectReport {
    report
        .objects
        .iter()
        .find(|object| object.id == id)
        .unwrap()
}

#[test]
fn objects_are_requested_when_they_are_discovered() {
    let report = load_page(LoadOptions::default());
    assert!(report.is_complete(), "{report:?}");
    for (object, expected) in report.objects.iter().zip(page().objects) {
        let times = [
            object.discovered_s,
            object.start_s,
            object.first_byte_s,
            object.end_s,
            object.done_s,
        ];
        let times = times.map(Option::unwrap);
        assert!(times.is_sorted(), "{object:?}");
        assert_eq!(object.bytes, expected.size);
    }
    // A child discovered at 20 % of the document starts before that ends.
    let html = named(&report, "html");
    for early in ["css", "head.js", "image"] {
        let start = named(&report, early).start_s;
        assert!(start > html.first_byte_s && start < html.end_s, "{early}");
    }
    assert!(named(&report, "css").start_s < named(&report, "image").start_s);

    let close = |a: Option<f64>, b: Option<f64>, wait: f64| {
        let waited = a.unwrap() - b.unwrap();
        assert!((waited - wait).abs() < 1e-9, "{waited} is not {wait}");
    };
    close(html.done_s, html.end_s, 0.020);
    close(named(&report, "late.js").discovered_s, html.done_s, 0.0);
    close(
        named(&report, "head.js").done_s,
        named(&report, "head.js").end_s,
        0.004,
    );
    close(
        named(&report, "data").discovered_s,
        named(&report, "late.js").end_s,
        0.008,
    );
    close(
        named(&report, "font").discovered_s,
        named(&report, "css").end_s,
        0.0,
    );

    let last = report.objects.iter().filter_map(|object| object.done_s);
    assert_eq!(report.page_load_s, last.fold(0.0, f64::max));
    let first_render = ["html", "css", "head.js"].map(|id| named(&report, id).done_s.unwrap());
    let expected = first_render.into_iter().fold(0.0, f64::max);
    assert_eq!(report.first_render_s, Some(expected));
    assert!(expected < report.page_load_s);
}

#[test]
fn page_loads_are_deterministic_to_the_nanosecond() {
    for connections in [1, 3] {
        let options = LoadOptions {
            connections,
            ..LoadOptions::default()
        };
        let report = load_page(options);
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(format!("{report:?}"), format!("{:?}", load_page(options)));
        let used: BTreeSet<_> = report.objects.iter().map(|o| o.connection).collect();
        assert_eq!(used.len(), report.connections.len());
        // Two hosts; three connections to the one that has several objects.
        assert_eq!(used.len(), connections + 1, "{report:?}");
    }
}

#[test]
fn critical_objects_are_split_over_all_connections() {
    let whole = LoadOptions {
        connections: 3,
        ..LoadOptions::default()
    };
    let split = LoadOptions {
        split_critical: NonZeroU64::new(1000),
        ..whole
    };
    let report = load_from("", 3, split);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(
        format!("{report:?}"),
        format!("{:?}", load_from("", 3, split))
    );
    for (object, expected) in report.objects.iter().zip(page().objects) {
        assert_eq!(object.bytes, expected.size);
    }
    // An object is discovered halfway when the first half has arrived, not when any half of the bytes has.
    let html = named(&report, "html");
    for early in ["css", "image"] {
        let found = named(&report, early).discovered_s;
        assert!(found > html.first_byte_s && found < html.done_s, "{early}");
    }
    // Each connection has its third of the document, at least.
    let site = report.connections.iter().filter(|c| c.id < 3);
    assert!(
        site.map(|c| c.bytes_received)
            .all(|bytes| bytes > HTML_BYTES / 3)
    );
    // With three initial windows, the document arrives earlier than with one.
    let end_s = |report| named(report, "html").end_s.unwrap();
    assert!(end_s(&report) < end_s(&load_from("", 3, whole)));

    let missing = load_from("html", 3, split);
    let error = named(&missing, "html").error.as_deref().unwrap();
    assert!(error.contains("404"), "{error}");
}

#[test]
fn a_page_over_the_first_connections_is_loaded_as_over_one() {
    let one = load_page(LoadOptions::default());
    for split_critical in [None, NonZeroU64::new(1000)] {
        let first = load_page(LoadOptions {
            connections: 3,
            assignment: Assignment::First,
            split_critical,
            ..LoadOptions::default()
        });
        assert_eq!(format!("{first:?}"), format!("{one:?}"));
    }
}

#[test]
fn open_connections_save_the_handshake() {
    let cold = load_page(LoadOptions::default());
    let warm = load_from("", 1, LoadOptions::default());
    assert_eq!(warm.connections.len(), 2);
    let first_byte_s = |report| named(report, "html").first_byte_s.unwrap();
    let saved = first_byte_s(&cold) - first_byte_s(&warm);
    assert!((0.039..0.045).contains(&saved), "one round trip: {saved}");
}

#[test]
fn objects_say_when_their_connection_was_open() {
    for options in [
        LoadOptions::default(),
        LoadOptions {
            connections: 2,
            split_critical: NonZeroU64::new(1000),
            ..LoadOptions::default()
        },
    ] {
        let report = load_page(options);
        for object in &report.objects {
            let [requested, connected, first_byte] =
                [object.start_s, object.connected_s, object.first_byte_s].map(Option::unwrap);
            assert!(
                requested <= connected && connected < first_byte,
                "{object:?}"
            );
        }
        let html = named(&report, "html");
        let handshake = html.connected_s.unwrap() - html.start_s.unwrap();
        assert!(
            (0.039..0.045).contains(&handshake),
            "one round trip: {handshake}"
        );
    }
}

#[test]
fn urgent_objects_overtake_others() {
    let by_urgency = load_page(LoadOptions::default());
    let in_turn = load_page(LoadOptions {
        priorities: false,
        ..LoadOptions::default()
    });
    // With equal urgencies, the document is sent first, as it was requested first.
    let css = |report| named(report, "css").end_s.unwrap();
    let html = |report| named(report, "html").end_s.unwrap();
    assert!(css(&in_turn) >= html(&in_turn), "{in_turn:?}");
    // The style sheet is as urgent as the document, which is incremental and shares the connection.
    assert!(css(&by_urgency) < html(&by_urgency), "{by_urgency:?}");
}

#[test]
fn objects_named_by_a_failed_one_are_never_discovered() {
    let report = load_from("css", 0, LoadOptions::default());
    assert!(!report.is_complete());
    assert_eq!(report.first_render_s, None);
    let error = |id| named(&report, id).error.as_deref().unwrap_or_default();
    assert!(error("css").contains("404"), "{report:?}");
    assert!(error("font").contains("never discovered"), "{report:?}");
    assert_eq!(named(&report, "font").discovered_s, None);
    assert!(named(&report, "data").done_s.is_some());
}
