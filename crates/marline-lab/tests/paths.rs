//! Several paths between client and server, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use marline_lab::play::network;
use marline_lab::scenario::{Backend, Experiment, Job};
use marline_lab::sim::{Datagram, Simulator};
use marline_link::Seed;

const TWO: &str = r#"
title = "Two paths"
paths = ["rate=10mbps, rtt=20ms, buffer=200kB", "rate=5mbps, rtt=80ms, buffer=200kB"]
[workload]
WORKLOAD
[variant.first]
[variant.second]
path = 2
"#;

/// The completion time over each of the paths, and what it could be at best.
fn completions(workload: &str) -> Vec<(f64, f64)> {
    let text = TWO.replace("WORKLOAD", workload);
    let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap();
    let runs = experiment.cells.iter().map(|cell| {
        let job = Job {
            experiment: "test".into(),
            variant: cell.variant.clone(),
            parameters: cell.parameters.clone(),
            repeat: 0,
            seed: 7,
            settings: cell.settings.clone(),
            qlog: None,
            pcap: None,
            watch: false,
        };
        let metrics = Simulator.run(&job).unwrap().metrics;
        (metrics["completion_s"], metrics["ideal_s"])
    });
    runs.collect()
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
        let [(first, ideal), (second, second_ideal)] = times[..] else {
            panic!("{times:?}");
        };
        assert!((0.4..0.7).contains(&first), "{workload}: {first}");
        assert!((0.9..1.5).contains(&second), "{workload}: {second}");
        assert!(ideal <= first && second_ideal <= second, "{times:?}");
        assert!(second_ideal > 0.9, "{times:?}");
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
