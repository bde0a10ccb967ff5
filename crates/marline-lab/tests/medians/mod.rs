//! The metrics of an experiment of one cell.

use std::collections::BTreeMap;

use marline_lab::run::{Options, run};
use marline_lab::scenario::Experiment;
use marline_lab::sim::Simulator;

/// Runs `scenario` in virtual time; returns the medians of the first cell.
pub(crate) fn medians(scenario: &str) -> BTreeMap<String, f64> {
    let experiment = Experiment::parse(scenario, "test.toml", &[]).unwrap();
    let finished = run(&experiment, &Simulator, &Options::default(), &mut |_| {}).unwrap();
    let results = finished.results.unwrap();
    let cell = &results.cells[0];
    assert!(cell.failed.is_empty(), "{:?}", cell.failed);
    let metrics = cell.metrics.iter();
    metrics
        .filter_map(|(name, metric)| Some((name.clone(), metric.median?)))
        .collect()
}
