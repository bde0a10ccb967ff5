//! Several paths between client and server, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod job;

use std::collections::BTreeMap;

use marline_lab::execution::network;
use marline_lab::scenario::{Backend, Experiment};
use marline_lab::sim::Simulator;
use marline_link::Seed;
use marline_sim::Datagram;

use self::job::job;

const TWO: &str = r#"
title = "Two paths"
paths = ["rate=10mbps, rtt=20ms, buffer=200kB", "rate=5mbps, rtt=80ms, buffer=200kB"]
[workload]
WORKLOAD
[variant.first]
[variant.second]
path = 2
[variant.both]
multipath = true
"#;

/// The metrics of each variant of `text`.
fn metrics(text: &str) -> Vec<BTreeMap<String, f64>> {
    let experiment = Experiment::parse(text, "test.toml", &[]).unwrap();
    let runs = experiment.cells.iter();
    runs.map(|cell| Simulator.run(&job(cell)).unwrap().metrics)
        .collect()
}

/// The times of one variant, in seconds.
#[derive(Debug)]
struct Completion {
    measured: f64,
    ideal: f64,
}

/// The completion times over each of the paths and over both, which HTTP does not use.
fn completions(workload: &str) -> Vec<Completion> {
    let mut text = TWO.replace("WORKLOAD", workload);
    if workload.starts_with("objects") {
        text = text.replace("multipath = true", "");
    }
    let runs = metrics(&text).into_iter();
    let times = runs.map(|metrics| Completion {
        measured: metrics["completion_s"],
        ideal: metrics["ideal_s"],
    });
    times.collect()
}

#[test]
fn connections_stay_on_the_path_on_which_they_begin() {
    for workload in [
        "transfer = '500kB'",
        "objects = '500kB'",
        "visits = [{ size = '500kB' }]",
        "streams = [{ id = 1, size = '500kB' }]",
    ] {
        let times = completions(workload);
        let [first, second, ..] = &times[..] else {
            panic!("{times:?}");
        };
        assert!(
            (0.4..0.7).contains(&first.measured),
            "{workload}: {times:?}"
        );
        assert!(
            (0.9..1.5).contains(&second.measured),
            "{workload}: {times:?}"
        );
        assert!(first.ideal <= first.measured, "{times:?}");
        assert!(second.ideal <= second.measured, "{times:?}");
        assert!(second.ideal > 0.9, "{times:?}");
    }
}

#[test]
fn each_path_has_addresses_of_its_own() {
    let text = TWO.replace("WORKLOAD", "transfer = '1kB'");
    let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap();
    let topology = &experiment.cells[0].settings.topology;
    let fabric = network::<Datagram>(topology, Seed::new(1)).unwrap();
    let [client, server] = ["client", "server"].map(|name| fabric.find(name).unwrap());
    let (near, far) = (fabric.addresses(client), fabric.addresses(server));
    assert_eq!((near.len(), far.len()), (2, 2));
    for path in 0..2 {
        assert_eq!(fabric.source_for(client, far[path]), Some(near[path]));
        assert_eq!(fabric.source_for(server, near[path]), Some(far[path]));
    }
}

#[test]
fn a_multipath_connection_uses_every_path() {
    for workload in [
        "transfer = '2MB'\nwarm = true",
        "transfer = '2MB'\nwarm = true\ndirection = 'up'",
        "streams = [{ id = 1, size = '1MB' }, { id = 2, size = '1MB' }]",
    ] {
        let times = completions(workload);
        let [first, second, both] = &times[..] else {
            panic!("{times:?}");
        };
        let single = first.measured.min(second.measured);
        assert!(both.measured < 0.9 * single, "{workload}: {times:?}");
        assert!(both.ideal < both.measured, "{workload}: {times:?}");
        let runs = metrics(&TWO.replace("WORKLOAD", workload));
        let percent = |path| runs[2][&format!("path_{path}_percent")];
        assert!(
            (10.0..60.0).contains(&percent(2)),
            "{workload}: {}",
            percent(2)
        );
        assert!((percent(1) + percent(2) - 100.0).abs() < 1e-9);
        assert_eq!(runs[0]["path_2_percent"], 0.0);
    }
}

#[test]
fn a_failed_path_pauses_the_transfer_for_less_than_a_second() {
    let fails = "transfer = '4MB'\nwarm = true\n\
                [[change]]\nat = '2s'\npaths.1.loss = '100%'";
    let alone = "[variant.first]\n[variant.second]\npath = 2\n";
    let runs = metrics(&TWO.replace(alone, "").replace("WORKLOAD", fails));
    let both = &runs[0];
    assert!(both["path_1_percent"] > 10.0, "{both:?}");
    assert!(both["longest_pause_s"] < 1.0, "{both:?}");
}

#[test]
fn http_uses_every_address_of_the_client() {
    let text = r#"
title = "Two paths to one server"
routers = ["internet"]
[links.first]
between = ["client", "internet"]
spec = "rate=10mbps, rtt=20ms, buffer=200kB"
[links.second]
between = ["client", "internet"]
spec = "rate=10mbps, rtt=30ms, buffer=200kB"
[links.server]
between = ["internet", "server"]
rtt = "5ms"
[workload]
objects = ["2MB"]
[variant.one]
[variant.both]
multipath = true
[variant.three-alike]
multipath = true
same_tuple_paths = 3
bundle_paths = "default"
path_scheduler = "lrf"
"#;
    let times: Vec<_> = metrics(text)
        .iter()
        .map(|run| run["completion_s"])
        .collect();
    let [one, both, alike] = times[..] else {
        panic!("{times:?}");
    };
    assert!(both < 0.7 * one, "{times:?}");
    assert!(alike < 1.1 * one, "{times:?}");
}

/// Before, while and after the handshakes of its connections, some of which have only this path then.
#[test]
fn a_page_survives_the_failure_of_a_network_at_any_time() {
    for at in [20, 50, 80, 300, 330] {
        let text = format!(
            r#"
title = "The first network fails"
routers = ["internet"]
[links.first]
between = ["client", "internet"]
spec = "rate=20mbps, rtt=25ms, buffer=150kB"
[links.second]
between = ["client", "internet"]
spec = "rate=10mbps, rtt=55ms, buffer=150kB"
[links.server]
between = ["internet", "server"]
rtt = "5ms"
[workload]
page = "today/medium"
[variant.both]
profile = "multipath"
[[change]]
at = "{at}ms"
links.first.loss = "100%"
"#
        );
        let runs = metrics(&text);
        assert!(runs[0]["completion_s"] < 3.0, "{at} ms: {runs:?}");
    }
}

#[test]
fn http_over_several_server_addresses_is_unsupported() {
    let text = TWO.replace("WORKLOAD", "objects = '1kB'");
    let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap();
    let both = experiment
        .cells
        .iter()
        .find(|cell| &*cell.variant == "both");
    let error = Simulator.run(&job(both.unwrap())).unwrap_err().to_string();
    assert!(error.contains("a server with one address"), "{error}");
}
