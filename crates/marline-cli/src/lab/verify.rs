//! `marline lab verify`.

use clap::Args;
use marline_lab::verify::{Verified, verify};
use serde::Serialize;

use super::progress::Bar;
use super::table::align;
use crate::failure::Failure;

/// Measure the presets and the models of links, and check them against their specifications
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  marline lab verify
  marline lab verify lte-a wifi-n-190 shaper --seed 7")]
pub(crate) struct Arguments {
    /// The links [default: all that `marline lab presets` lists, and all models]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// The seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// The checks, and whether all have passed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Answer {
    /// The seed of all randomness.
    seed: u64,
    /// Whether every measured value is within its bounds.
    passed: bool,
    /// The checks.
    checks: Vec<Verified>,
}

impl Answer {
    pub(super) fn new(seed: u64, checks: Vec<Verified>) -> Self {
        Self {
            seed,
            passed: checks.iter().all(|check| check.passed),
            checks,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut bar = Bar::new("verify");
    let checks = verify(&arguments.names, arguments.seed, &mut |progress| {
        bar.show(progress);
    });
    drop(bar);
    let checks = checks.map_err(|error| Failure::Usage(error.to_string()))?;
    let outside = checks.iter().filter(|check| !check.passed).count();
    let total = checks.len();
    if arguments.json {
        super::print_json(&Answer::new(arguments.seed, checks))?;
    } else {
        print(&checks);
    }
    match outside {
        0 => Ok(()),
        _ => Err(Failure::Failed(format!(
            "{outside} of {total} values are outside of their bounds, with seed {}",
            arguments.seed
        ))),
    }
}

fn print(checks: &[Verified]) {
    let titles = ["link", "quantity", "measured", "expected", "", "source"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for check in checks {
        let measured = match check.measured {
            Some(value) => format!("{} {}", digits(value), check.unit),
            None => "nothing".to_owned(),
        };
        rows.push(vec![
            check.preset.to_owned(),
            check.quantity.to_owned(),
            measured,
            format!("{} {}", check.expected, check.unit),
            if check.passed { "ok" } else { "OUTSIDE" }.to_owned(),
            check.source.to_owned(),
        ]);
    }
    align(&rows);
}

/// A number with about four significant digits.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
