//! The rules that every policy of its kind keeps, and an experiment with all of them.

use marline::congestion::conformance as controllers;
use marline::scheduling::path::conformance as schedulers;
use marline::settings::Policy;
use marline_lab::run::{Options, run};
use marline_lab::scenario::Experiment;
use marline_lab::sim::Simulator;

const EXPERIMENT: &str = include_str!("first.toml");

const PATHS: &str = r#"
title = "Two paths"
paths = ["rate=10mbps, rtt=20ms", "rate=5mbps, rtt=80ms"]
workload.transfer = "500kB"
multipath.on = true
[variant.mine]
multipath.scheduler = "least_filled"
[variant.lrf]
multipath.scheduler = "lrf"
"#;

#[test]
fn the_controller_keeps_the_rules_of_controllers() {
    let factory = super::scalable::ENTRY.make_default();
    controllers::conformance(|config| factory.build(config));
}

#[test]
fn the_scheduler_keeps_the_rules_of_schedulers() {
    let make = super::least_filled::ENTRY.make_default();
    schedulers::conformance(|| make());
}

#[test]
fn an_experiment_runs_with_them() -> Result<(), Box<dyn std::error::Error>> {
    let unknown = Experiment::parse(EXPERIMENT, "first.toml", &[]);
    assert!(unknown.is_err(), "nothing is known before it is installed");
    super::own().install()?;
    let mut experiment = Experiment::parse(EXPERIMENT, "first.toml", &[])?;
    experiment.repeats = 2;
    let finished = run(&experiment, &Simulator, &Options::default(), &mut |_| {})?;
    assert_eq!(finished.failed, 0);
    let results = finished.results.ok_or("no results")?;
    let settings = &results.settings["variants"]["scalable"];
    assert!(settings.to_string().contains("scalable"), "{settings}");
    let mut paths = Experiment::parse(PATHS, "paths.toml", &[])?;
    paths.repeats = 1;
    let finished = run(&paths, &Simulator, &Options::default(), &mut |_| {})?;
    assert_eq!(finished.failed, 0);
    Ok(())
}
