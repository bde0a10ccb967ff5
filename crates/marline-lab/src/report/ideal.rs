//! How far the metric of most interest is from the physical limit.

use marline_report::Report;
use marline_report::chart::{Axis, Bars, Unit};
use marline_report::html::Table;

use crate::stats::{quantile, sorted};

use super::data::Evidence;
use super::names::{self, Quantity};

pub(super) fn add(page: Report, evidence: &Evidence) -> Report {
    let mut cells = evidence.results.cells.iter();
    if !cells.any(|cell| cell.ideal_ratio.is_some()) {
        return page;
    }
    let quantity = Quantity::of(evidence.main_metric());
    let page = match evidence.points.are_few() {
        true => page.chart(&bars(evidence)),
        false => page.subsection("Times the physical limit"),
    };
    page.table(&table(evidence)).note(&format!(
        "How many times the physical limit the median {} is: divided by the time that rate and delay of the \
         links alone would need.",
        quantity.name
    ))
}

/// The ratio of each variant at each point.
fn bars(evidence: &Evidence) -> Bars {
    let points = &evidence.points;
    let axis = Axis::new("times the limit", Unit::Number);
    let mut bars = Bars::new("Times the physical limit", points.title(), axis)
        .series(evidence.variants().map(|(_, name)| name));
    for (point, name) in points.iter() {
        for (variant, series) in evidence.variants() {
            let ratio = ratio(evidence, point, variant);
            bars = bars.bar(name, series, ratio.unwrap_or(f64::NAN), None);
        }
    }
    bars
}

/// A row for each variant: over all points, or the only one.
fn table(evidence: &Evidence) -> Table {
    let table = Table::new().column("variant");
    let is_one = evidence.points.len() == 1;
    let mut table = match is_one {
        true => table.number_column("times the limit"),
        false => table
            .number_column("points")
            .number_column("nearest to the limit")
            .number_column("median of the points")
            .number_column("furthest"),
    };
    for (variant, name) in evidence.variants() {
        let points = evidence.points.iter();
        let ratios = points.filter_map(|(point, _)| ratio(evidence, point, variant));
        let ratios = sorted(&ratios.collect::<Vec<_>>());
        let at = |share| match ratios.is_empty() {
            true => names::nothing(),
            false => format!("{:.2}\u{d7}", quantile(&ratios, share)),
        };
        let mut row = vec![name.to_owned()];
        match is_one {
            true => row.push(at(0.5)),
            false => row.extend([ratios.len().to_string(), at(0.0), at(0.5), at(1.0)]),
        }
        table.row(row);
    }
    table
}

fn ratio(evidence: &Evidence, point: usize, variant: usize) -> Option<f64> {
    evidence.cell(point, variant)?.ideal_ratio
}
