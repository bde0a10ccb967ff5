//! Whole objects and pieces over one and several connections.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use marline_http::client::{ClientError, Destination, FetchOptions, Ranges, Report, Target};
use marline_http::server::{Identity, ServeError, Server, ServerConfig, generated};

use crate::setup::{client, object, serve, world};

const PATHS: [&str; 6] = ["/0", "/1", "/999", "/40000", "/300000", "/1000003"];
const THINK: Duration = Duration::from_millis(30);

/// Fetches `paths`, closes everything; tells of both in text, to the nanosecond.
fn fetch(paths: &[&str], options: FetchOptions, destination: &Destination) -> (Report, String) {
    let world = world();
    let server_host = world.host(1);
    let clock = Arc::clone(&server_host);
    let mut objects: BTreeMap<_, _> = PATHS
        .map(|path| {
            (
                path.to_owned(),
                object(path[1..].parse().unwrap(), Duration::ZERO),
            )
        })
        .into();
    objects.insert("/slow".to_owned(), object(10, THINK));
    world.run(async {
        let (address, handle) = serve(server_host, objects).await;
        let client = client(world.host(2), [("example.test", address)]);
        let targets = paths.iter().map(|path| Target {
            url: format!("https://example.test{path}"),
            destination: destination.clone(),
            size: None,
        });
        let report = client
            .fetch(targets.collect(), options, &Arc::default())
            .await;
        Arc::into_inner(client).unwrap().close().await;
        handle.shut_down();
        let text = format!("{report:?} {:?}", clock.now());
        (report, text)
    })
}

fn fetch_twice(options: FetchOptions, destination: &Destination) -> Report {
    let (report, text) = fetch(&PATHS, options, destination);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(fetch(&PATHS, options, destination).1, text);
    for object in &report.objects {
        assert!(object.end_s >= 0.08, "faster than light: {object:?}");
        assert!(object.end_s < 3.0, "{object:?}");
        let size = object.url.rsplit('/').next().unwrap();
        assert_eq!(object.bytes, size.parse::<u64>().unwrap());
    }
    report
}

#[test]
fn one_connection() {
    let report = fetch_twice(FetchOptions::default(), &Destination::Nowhere);
    assert_eq!(report.connections.len(), 1);
    let handshake_s = report.connections[0].handshake_s;
    assert!((0.04..0.06).contains(&handshake_s), "{handshake_s}");
}

#[test]
fn thinking_takes_its_time() {
    let options = FetchOptions::default();
    let (report, _) = fetch(&["/1", "/slow"], options, &Destination::Nowhere);
    let [quick, slow] = [0, 1].map(|index| report.objects[index].first_byte_s.unwrap());
    let thought = slow - quick;
    assert!((thought - THINK.as_secs_f64()).abs() < 0.001, "{thought}");
}

#[test]
fn three_connections() {
    let options = FetchOptions {
        connections: 3,
        ..FetchOptions::default()
    };
    let report = fetch_twice(options, &Destination::Nowhere);
    assert_eq!(report.connections.len(), 3);
}

#[test]
fn pieces_over_three_connections() {
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
fn what_needs_tokio_says_so() {
    let world = world();
    world.run(async {
        let identity = Identity::repeatable(vec!["example.test".to_owned()]).unwrap();
        let site = generated(BTreeMap::new(), Some(world.host(1))).unwrap();
        let mut config = ServerConfig::new(([0, 0, 0, 0], 443).into(), identity, site);
        config.runtime = Some(world.host(1));
        let refused = Server::bind(config).await.unwrap_err();
        assert!(matches!(
            refused,
            ServeError::Listen {
                protocol: "TCP",
                ..
            }
        ));

        let client = client(world.host(2), []);
        let target = Target {
            url: "https://example.test/".to_owned(),
            destination: Destination::Nowhere,
            size: None,
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
