//! Every committed experiment can be read, tables of published values included.

use std::path::{Path, PathBuf};

use marline_lab::run::{Options, run};
use marline_lab::scenario::{Experiment, list};
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

#[test]
fn the_scenario_of_the_guide_works() {
    let guide = root().join("docs/laboratory.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = guide.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    assert!(text.lines().count() <= 17, "fifteen lines are promised");
    let mut experiment = Experiment::parse(text, "train.toml", &[]).unwrap();
    experiment.repeats = 1;
    let options = Options::default();
    let finished = run(&experiment, &Simulator, &options, &mut |_| {}).unwrap();
    let results = finished.results.unwrap();
    assert_eq!((results.cells.len(), finished.failed), (6, 0));
    for cell in &results.cells {
        let completion = &cell.metrics["completion_s"];
        assert!(completion.median > 1.9, "2.9 MB at 12 Mb/s: {completion:?}");
    }
}
