//! Fetches over one and several connections.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use marline::Runtime;
use marline_http::client::{
    Assignment, ClientError, Destination, FetchOptions, Message, Ranges, Report, Target,
};
use marline_http::server::{Identity, ServeError, Server, ServerConfig, generated};

use crate::setup::{PORT, Serving, client, client_as, object, run, serve, serve_as};

const PATHS: [&str; 6] = ["/0", "/1", "/999", "/40000", "/300000", "/1000003"];
const THINK: Duration = Duration::from_millis(30);

struct Fetched {
    report: Report,
    /// The report and the time at which everything was closed, to the nanosecond.
    text: String,
}

/// Fetches `paths` and closes everything.
fn fetch(paths: &[&str], options: FetchOptions, destination: &Destination) -> Fetched {
    let sized = |path: &str| object(path[1..].parse().unwrap(), Duration::ZERO);
    let mut objects = BTreeMap::from(PATHS.map(|path| (path.to_owned(), sized(path))));
    objects.insert("/slow".to_owned(), object(10, THINK));
    run(async |network| {
        let Serving { address, handle } = serve(&network.servers[0], objects).await;
        let client = client(&network.client, [("example.test", address)]);
        let targets = paths.iter().map(|path| Target {
            url: format!("https://example.test{path}"),
            destination: destination.clone(),
            size: None,
            message: Message::default(),
        });
        let report = client
            .fetch(targets.collect(), options, &Arc::default())
            .await;
        Arc::into_inner(client).unwrap().close().await;
        handle.shut_down();
        let text = format!("{report:?} {:?}", network.client.now());
        Fetched { report, text }
    })
}

fn fetch_twice(options: FetchOptions, destination: &Destination) -> Report {
    let Fetched { report, text } = fetch(&PATHS, options, destination);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(fetch(&PATHS, options, destination).text, text);
    for object in &report.objects {
        assert!(object.end_s >= 0.08, "below two round trips: {object:?}");
        assert!(object.end_s < 3.0, "{object:?}");
        let size = object.url.rsplit('/').next().unwrap();
        assert_eq!(object.bytes, size.parse::<u64>().unwrap());
    }
    report
}

#[test]
fn fetches_over_one_connection_are_deterministic() {
    let report = fetch_twice(FetchOptions::default(), &Destination::Nowhere);
    assert_eq!(report.connections.len(), 1);
    let handshake_s = report.connections[0].handshake_s;
    assert!((0.04..0.06).contains(&handshake_s), "{handshake_s}");
}

#[test]
fn the_think_time_of_a_server_delays_the_first_byte() {
    let options = FetchOptions::default();
    let report = fetch(&["/1", "/slow"], options, &Destination::Nowhere).report;
    let [quick, slow] = [0, 1].map(|index| report.objects[index].first_byte_s.unwrap());
    let thought = slow - quick;
    assert!((thought - THINK.as_secs_f64()).abs() < 0.001, "{thought}");
}

#[test]
fn fetches_over_three_connections_are_deterministic() {
    let options = FetchOptions {
        connections: 3,
        ..FetchOptions::default()
    };
    let report = fetch_twice(options, &Destination::Nowhere);
    assert_eq!(report.connections.len(), 3);
}

#[test]
fn ranges_are_spread_over_three_connections() {
    let options = FetchOptions {
        connections: 3,
        split: NonZeroU64::new(50_000),
        ranges: Ranges::Equal,
        ..FetchOptions::default()
    };
    let report = fetch_twice(options, &Destination::Counted);
    assert_eq!(report.connections.len(), 3);
    for connection in &report.connections {
        assert!(connection.bytes_received > 300_000, "{connection:?}");
    }
}

#[test]
fn whole_objects_go_over_the_first_connection_and_ranges_over_all() {
    let first = FetchOptions {
        connections: 3,
        assignment: Assignment::First,
        ..FetchOptions::default()
    };
    let whole = fetch_twice(first, &Destination::Nowhere);
    assert_eq!(whole.connections.len(), 1, "{whole:?}");

    let options = FetchOptions {
        split: NonZeroU64::new(50_000),
        ranges: Ranges::Equal,
        ..first
    };
    let report = fetch_twice(options, &Destination::Counted);
    assert_eq!(report.connections.len(), 3);
    let small: u64 = 1 + 999 + 40_000;
    let bytes = |id| {
        let mut connections = report.connections.iter();
        let connection = connections.find(|connection| connection.id == id);
        connection.unwrap().bytes_received
    };
    // The others have parts of the two large objects, and nothing of the small ones.
    let large = 300_000 + 1_000_003;
    for other in [1, 2] {
        assert!(
            bytes(other) > large / 4 && bytes(other) <= large / 3,
            "{report:?}"
        );
        assert!(bytes(0) > bytes(other) + small, "{report:?}");
    }
}

#[test]
fn tcp_and_name_lookups_without_tokio_are_errors() {
    run(async |network| {
        let host = &network.servers[0];
        let identity = Identity::repeatable(vec!["example.test".to_owned()]).unwrap();
        let site = generated(BTreeMap::new(), Some(Arc::new(host.clone()))).unwrap();
        let mut config = ServerConfig::new(([0, 0, 0, 0], PORT).into(), identity, site);
        config.runtime = Some(Arc::new(host.clone()));
        let refused = Server::bind(config).await.unwrap_err();
        assert!(matches!(
            refused,
            ServeError::Listen {
                protocol: "TCP",
                ..
            }
        ));

        let client = client(&network.client, []);
        let target = Target {
            url: "https://example.test/".to_owned(),
            destination: Destination::Nowhere,
            size: None,
            message: Message::default(),
        };
        let report = client
            .fetch(vec![target], FetchOptions::default(), &Arc::default())
            .await;
        assert!(matches!(
            report.objects[0].failure.as_deref(),
            Some(ClientError::Resolve { .. })
        ));
    });
}

#[test]
fn a_response_may_wait_for_others_of_its_connection_longer_than_the_idle_timeout() {
    // Each takes 5 s.
    const SIZE: u64 = 12_000_000;
    let urls = ["/first", "/second"];
    let objects = urls.map(|url| (url.to_owned(), object(SIZE, Duration::ZERO)));
    let report = run(async |network| {
        let Serving { address, handle } = serve_as(
            &network.servers[0],
            generated(objects.into(), Some(Arc::new(network.servers[0].clone()))).unwrap(),
            |config| config.limits.idle_timeout = Duration::from_secs(1),
        )
        .await;
        let client = client(&network.client, [("example.test", address)]);
        let targets = urls.map(|url| Target {
            url: format!("https://example.test{url}"),
            destination: Destination::Nowhere,
            size: None,
            message: Message::default(),
        });
        let options = FetchOptions::default();
        let report = client.fetch(targets.into(), options, &Arc::default()).await;
        Arc::into_inner(client).unwrap().close().await;
        handle.shut_down();
        report
    });
    assert!(report.is_complete(), "{report:?}");
}

#[test]
fn a_response_that_never_comes_is_not_waited_for_longer_than_the_stall_timeout() {
    let report = run(async |network| {
        let slow = object(10, Duration::from_secs(1000));
        let objects = [("/".to_owned(), slow)];
        let Serving { address, .. } = serve(&network.servers[0], objects.into()).await;
        let client = client_as(&network.client, [("example.test", address)], |config| {
            config.stall_timeout = Some(Duration::from_secs(5));
        });
        let target = Target {
            url: "https://example.test/".to_owned(),
            destination: Destination::Nowhere,
            size: None,
            message: Message::default(),
        };
        let options = FetchOptions::default();
        client.fetch(vec![target], options, &Arc::default()).await
    });
    let object = &report.objects[0];
    let error = object.error.as_deref().unwrap();
    assert!(error.contains("nothing arrived for 5 s"), "{error}");
    assert!((5.0..7.0).contains(&object.end_s), "{object:?}");
}
