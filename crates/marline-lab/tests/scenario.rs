//! Results of a scenario, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use marline_lab::run::{Options, Results, run};
use marline_lab::scenario::Experiment;
use marline_lab::sim::Simulator;

const TRAIN: &str = r#"
title = "A download on the train"
link = "rate=12mbps, rtt=80ms, loss=1%, buffer=200kB"
repeats = 2
[workload]
objects = ["100kB", "150kB"]
[variant.newreno]
cc = "newreno"
[variant.bbr]
cc = "bbr"
[sweep]
"link.loss" = ["0%", "3%"]
[[comparison]]
a = "bbr"
b = "newreno"
"#;

fn results(jobs: usize) -> Results {
    let experiment = Experiment::parse(TRAIN, "train.toml", &[]).unwrap();
    let options = Options {
        jobs,
        ..Options::default()
    };
    let finished = run(&experiment, &Simulator, &options, &mut |_| {}).unwrap();
    finished.results.unwrap()
}

#[test]
fn a_scenario_gives_equal_results_on_any_threads() {
    let results = results(1);
    assert_eq!(results.digest, self::results(3).digest);
    assert_eq!(results.cells.len(), 4);
    for cell in &results.cells {
        assert!(cell.failed.is_empty(), "{:?}", cell.failed);
        let completion = &cell.metrics["completion_s"];
        // Two round trips of handshake and request, and 250 kB at 12 Mbit/s.
        assert!(completion.min > 0.32, "{}", completion.min);
        assert!(
            cell.ideal_ratio.is_none_or(|ratio| ratio >= 1.0),
            "{cell:?}"
        );
    }
    assert!(results.comparisons[0].improvement_percent.is_some());
}
