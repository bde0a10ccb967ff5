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
        assert!(completion.min > Some(0.32), "{:?}", completion.min);
        assert!(
            cell.ideal_ratio.is_none_or(|ratio| ratio >= 1.0),
            "{cell:?}"
        );
    }
    assert!(results.comparisons[0].improvement_percent.is_some());
}

/// A page every 15 seconds over a radio that gets worse after 40.
const RADIO: &str = r#"
title = "A pool and its radio"
link = "model=lte, lte.rate=94.1mbps, rtt=9ms"
repeats = 1
cc = "bbr"
[http]
pipes = "cba(creation=od)"
[workload]
page = "multipipe/small"
loads = 6
pause = "14s"
[[change]]
at = "40s"
link.lte.rate = "6mbps"
link.lte.std = "500kbps"
[variant.link]
http.sinr = "link"
[variant.constant]
http.sinr = "0 25"
"#;

#[test]
fn a_pool_opens_pipes_as_the_radio_of_its_link_gets_worse() {
    let experiment = Experiment::parse(RADIO, "radio.toml", &[]).unwrap();
    let finished = run(&experiment, &Simulator, &Options::default(), &mut |_| {}).unwrap();
    let cells = finished.results.unwrap().cells;
    let open = |variant: &str, load: &str| {
        let cell = cells.iter().find(|cell| cell.variant == variant).unwrap();
        assert!(cell.failed.is_empty(), "{:?}", cell.failed);
        cell.metrics[&format!("pipes_open {load}")].median
    };
    let counts = ["link", "constant"].map(|variant| ["002", "006"].map(|load| open(variant, load)));
    let [[good, poor], [same, other]] = counts;
    // The change is after the third load. A connection that gets slower asks for more pipes as well.
    assert_eq!(good, same, "{counts:?}");
    assert!(poor > good && poor > other, "{counts:?}");
}

#[test]
fn only_the_radio_of_a_link_has_a_sinr() {
    let wire = RADIO.replace("model=lte, lte.rate=94.1mbps", "rate=20mbps");
    let wire = wire
        .replace("link.lte.rate", "link.rate")
        .replace("link.lte.std = \"500kbps\"", "");
    let error = Experiment::parse(&wire, "wire.toml", &[]).unwrap_err();
    let printed = error.to_string();
    for words in ["http] sinr", "has no radio", "model=lte"] {
        assert!(printed.contains(words), "{printed}");
    }
}
