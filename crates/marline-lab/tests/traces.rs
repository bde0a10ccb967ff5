//! Experiments over recorded links.

use std::error::Error;
use std::fs;

use marline_lab::run::{Options, Results, run};
use marline_lab::scenario::Experiment;
use marline_lab::sim::Simulator;

/// Half a second at 12 Mb/s, and half a second at 1.2 Mb/s.
fn trace() -> String {
    let fast = 1..=500;
    let slow = (510..=1000).step_by(10);
    fast.chain(slow)
        .map(|millis| format!("{millis}\n"))
        .collect()
}

const SCENARIO: &str = r#"
title = "Over a trace"
repeats = 6
workload.objects = ["100kB"]
[variant.newreno]
cc = "newreno"
[variant.cubic]
cc = "cubic"
"#;

/// Half a second at 10 ms, and half a second at 60 ms.
const DELAYS: &str = "0 10\n500 60\n1000 60\n";

/// The results over a link with the traces, from a directory with all files.
fn results(link: &str) -> Result<Results, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("walk"), DELAYS)?;
    fs::write(directory.path().join("half"), trace())?;
    let file = directory.path().join("half.toml");
    fs::write(&file, format!("link = \"{link}\"\n{SCENARIO}"))?;
    let experiment = Experiment::load(&file, "half", &[])?;
    let finished = run(&experiment, &Simulator, &Options::default(), &mut |_| {})?;
    assert_eq!(finished.failed, 0);
    Ok(finished.results.ok_or("no results")?)
}

#[test]
fn each_repeat_begins_elsewhere_in_the_trace() -> Result<(), Box<dyn Error>> {
    for link in ["trace=half, rtt=20ms", "rate=10mbps, delay-trace=walk"] {
        let results = results(link)?;
        let cell = &results.cells[0];
        let summary = &cell.metrics["completion_s"];
        assert!(!cell.deterministic, "{link}");
        assert!(
            summary.max > summary.min.map(|min| 1.3 * min),
            "{link}: {summary:?}"
        );
    }
    Ok(())
}

#[test]
fn repeats_from_the_first_line_are_one_measurement_and_called_deterministic()
-> Result<(), Box<dyn Error>> {
    let results = results("trace=half, rtt=20ms, trace-start=0s")?;
    assert!(results.cells.iter().all(|cell| cell.deterministic));
    let summary = &results.cells[0].metrics["completion_s"];
    assert_eq!((summary.ci95, summary.min), (None, summary.max));
    Ok(())
}

#[test]
fn repeats_from_the_first_line_of_delays_are_alike() -> Result<(), Box<dyn Error>> {
    let results = results("rate=10mbps, delay-trace=walk, trace-start=0s")?;
    let summary = &results.cells[0].metrics["completion_s"];
    // Signatures of the handshake differ by a byte.
    let spread = summary.max.zip(summary.min).map(|(max, min)| max - min);
    assert!(spread.is_some_and(|spread| spread < 1e-4), "{summary:?}");
    Ok(())
}
