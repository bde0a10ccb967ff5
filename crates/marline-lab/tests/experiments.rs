//! Every committed experiment can be read, tables of published values included.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marline_lab::run::{Options, run};
use marline_lab::scenario::{Backend, Cell, Experiment, Job, list};
use marline_lab::sim::Simulator;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn committed_experiments_are_read() {
    let entries = list(&root().join("experiments")).unwrap();
    assert!(!entries.is_empty());
    for entry in entries {
        if let Err(error) = Experiment::load(&entry.path, &entry.id, &[]) {
            panic!("{error}");
        }
    }
}

/// Runs every variant of the experiments with bundles once, at the first point, as time permits in a debug
/// build. The other experiments have no engine that decides.
#[test]
fn variants_of_bundles_measure_their_metrics() {
    for id in ["bundle/locations", "bundle/ranges", "bundle/pages"] {
        let path = root().join(format!("experiments/{id}.toml"));
        let experiment = Experiment::load(&path, id, &[]).unwrap();
        for cell in &experiment.cells[..experiment.variants.len()] {
            let metrics = metrics_of(&experiment, cell);
            let decisions = metrics.get("bundle_decisions").copied();
            match &*cell.variant {
                "1c" | "3c-iw" => assert_eq!(decisions, None, "{id} {}", cell.variant),
                "3c" | "3c-handed" => assert_eq!(decisions, Some(0.0), "{id} {}", cell.variant),
                _ => assert!(decisions.is_some(), "{id} {}", cell.variant),
            }
        }
    }
}

/// The metrics of the first run of `cell`, which must be those that the experiment lists.
fn metrics_of(experiment: &Experiment, cell: &Cell) -> BTreeMap<String, f64> {
    let job = Job {
        experiment: experiment.id.as_str().into(),
        variant: Arc::clone(&cell.variant),
        parameters: Arc::clone(&cell.parameters),
        repeat: 0,
        seed: 1,
        settings: Arc::clone(&cell.settings),
        qlog: None,
        pcap: None,
        har: None,
        watch: false,
    };
    let metrics = Simulator
        .run(&job)
        .expect("the backend supports it")
        .metrics;
    for metric in &experiment.metrics {
        let id = &experiment.id;
        assert!(metrics.contains_key(metric), "{id} has no {metric}");
    }
    metrics
}

/// The same for the experiments with history.
#[test]
fn variants_of_history_measure_their_metrics() {
    let path = root().join("experiments/history/simple.toml");
    let experiment = Experiment::load(&path, "history/simple", &[]).unwrap();
    let cells = &experiment.cells[..experiment.variants.len()];
    let metrics = cells.iter().map(|cell| {
        let metrics = metrics_of(&experiment, cell);
        (&*cell.variant, metrics)
    });
    let metrics: BTreeMap<_, _> = metrics.collect();
    let window = |variant: &str| metrics[variant]["initial_window_bytes"];
    assert!(window("history") > window("default"), "{metrics:?}");
    assert!(
        window("history-published") > window("default"),
        "{metrics:?}"
    );
    assert_eq!(window("careful"), window("default"));
}

#[test]
fn the_scenario_of_the_guide_works() {
    let guide = root().join("docs/laboratory.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = guide.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    assert!(text.lines().count() <= 17, "the guide counts fifteen lines");
    let mut experiment = Experiment::parse(text, "train.toml", &[]).unwrap();
    experiment.repeats = 1;
    let options = Options::default();
    let finished = run(&experiment, &Simulator, &options, &mut |_| {}).unwrap();
    let results = finished.results.unwrap();
    assert_eq!((results.cells.len(), finished.failed), (6, 0));
    for cell in &results.cells {
        let completion = &cell.metrics["completion_s"];
        assert!(
            completion.median > Some(0.33),
            "500 kB at 12 Mb/s: {completion:?}"
        );
    }
}

/// 40 packets precede the end of the small stream instead of 910, as derived in experiments/multipath/turns.toml.
#[test]
fn a_small_stream_overtakes_by_its_priority() {
    let path = root().join("experiments/multipath/turns.toml");
    let experiment = Experiment::load(&path, "multipath/turns", &[]).unwrap();
    let cells = &experiment.cells[..experiment.variants.len()];
    let metrics = cells.iter().map(|cell| {
        let metrics = metrics_of(&experiment, cell);
        (&*cell.variant, metrics["streams_small_mean_s"])
    });
    let small: BTreeMap<_, _> = metrics.collect();
    // A packet of full size, with headers, at 10 Mbit/s.
    let packet = 1480.0 * 8.0 / 10e6;
    let packets = (small["wrr"] - small["scattered"]) / packet;
    assert!((850.0..880.0).contains(&packets), "{packets}: {small:?}");
    assert!((small["wrr"] - small["fifo"]).abs() < packet, "{small:?}");
    assert!(small["rfc9218"] < small["scattered"], "{small:?}");
}
