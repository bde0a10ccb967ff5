use std::time::Duration;

use marline::coordination::bundle::BundleConfig;

use super::*;

mod bundle;
mod channels;
mod comparison;
mod correlation;
mod initial_window;
mod keys;
mod library;
mod links;
mod metrics;
mod mistakes;
mod overrides;
mod paths;
mod reference;
mod settings;
mod streams;
mod sweep;
mod tcp;
mod visits;

const TRAIN: &str = r#"title = "A download on the train"
link = "rate=12mbps, rtt=80ms, loss=1%, buffer=200kB"
repeats = 30
[workload]
objects = ["500kB", "2400kB"]
[variant.newreno]
cc = "newreno"
[variant.bbr]
cc = "bbr"
[sweep]
"link.loss" = ["0%", "1%", "3%"]
"#;

fn read(text: &str) -> Experiment {
    read_with(text, &[]).unwrap()
}

fn read_with(text: &str, sets: &[&str]) -> Result<Experiment, String> {
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    Experiment::parse(text, "train.toml", &sets).map_err(|error| error.to_string())
}

/// A scenario with `more` after the first three lines.
fn with(more: &str) -> String {
    let head = "title = 'x'\nlink = 'rate=1mbps, rtt=20ms'\nworkload.objects = '1MB'\n";
    format!("{head}{more}")
}

fn error(text: &str) -> String {
    read_with(text, &[]).unwrap_err()
}

/// The name of the controller of an end.
fn cc(end: &EndpointSettings) -> &'static str {
    end.transport().controller.spec().name()
}

fn spec(experiment: &Experiment, cell: usize) -> &str {
    &experiment.cells[cell].settings.topology.links[0].spec
}
