//! The points at which a variant is furthest from what the links would allow, on a terminal.

use marline_lab::run::Results;
use marline_lab::scenario::Experiment;
use marline_report::units;

use super::table::{align, words};
use crate::failure::Failure;

/// Checks that `experiment` has `variant`, before it runs.
pub(super) fn check(experiment: &Experiment, variant: &str) -> Result<(), Failure> {
    let names: Vec<_> = experiment.variants.iter().map(|name| &**name).collect();
    match names.contains(&variant) {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "--worst-of: there is no variant {variant:?}; there are {}",
            names.join(", ")
        ))),
    }
}

/// Prints `count` points of `variant`, by default the first.
pub(super) fn print(results: &Results, variant: Option<&str>, count: usize) {
    let Some(metric) = results.metrics.first() else {
        return;
    };
    let Some(worst) = results.worst(variant, count) else {
        return;
    };
    let mut rows = vec![
        ["times the ideal", "median", "at"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for cell in &worst.cells {
        let median = cell.metrics.get(metric);
        let median = median.and_then(|summary| summary.median);
        rows.push(vec![
            cell.ideal_ratio
                .map_or(String::new(), |ratio| format!("{ratio:.2}")),
            median.map_or(String::new(), units::number),
            words(&cell.parameters),
        ]);
    }
    outln!(
        "\nwhere {} is furthest from the ideal ({metric})",
        worst.variant
    );
    align(&rows);
    outln!("{worst}");
}
