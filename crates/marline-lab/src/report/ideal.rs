//! The distance of the main metric from the physical limit.

use marline_report::Report;
use marline_report::chart::{Axis, Bars, Unit};
use marline_report::html::Table;

use crate::stats::{quantile, sorted};

use super::data::ReportData;
use super::names::{self, Quantity};

/// The points that are listed as furthest from the limit.
const SHOWN: usize = 10;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let mut cells = data.results.cells.iter();
    if !cells.any(|cell| cell.ideal_ratio.is_some()) {
        return page;
    }
    let quantity = Quantity::of(data.main_metric());
    let page = match data.points.are_few() {
        true => page.chart(&bars(data)),
        false => page.subsection("Times the physical limit"),
    };
    let page = page.table(&table(data)).note(&format!(
        "The ratio of the median {} to the physical limit: divided by the time that rate and delay of the \
         links alone would need.",
        quantity.name
    ));
    // The bars show each of few points.
    match data.points.are_few() {
        true => page,
        false => worst(page, data),
    }
}

/// The points at which each variant is furthest from the limit.
fn worst(page: Report, data: &ReportData) -> Report {
    let quantity = Quantity::of(data.main_metric());
    let names = data.variants().map(|(_, name)| name);
    let worst = names.filter_map(|name| data.results.worst(Some(name), SHOWN));
    worst.fold(page, |page, worst| {
        let mut table = data
            .points
            .table("variant")
            .number_column("times the limit")
            .number_column(&quantity.title());
        for cell in &worst.cells {
            let median = cell.metrics.get(data.main_metric());
            let median = median.and_then(|one| one.median);
            let ratio = cell.ideal_ratio.map(|ratio| format!("{ratio:.2}\u{d7}"));
            let cells = [ratio.unwrap_or_else(names::nothing), quantity.maybe(median)];
            let point = data.points.name_of(&cell.parameters);
            table.row(data.points.row(worst.variant, point, cells));
        }
        let title = format!("Where {} is furthest from the limit", worst.variant);
        page.details(&title, |page| page.table(&table).note(&format!("{worst}.")))
    })
}

/// The ratio of each variant at each point.
fn bars(data: &ReportData) -> Bars {
    let points = &data.points;
    let axis = Axis::new("times the limit", Unit::Number);
    let mut bars = Bars::new("Times the physical limit", points.title(), axis)
        .series(data.variants().map(|(_, name)| name));
    for (point, name) in points.iter() {
        for (variant, series) in data.variants() {
            let ratio = ratio(data, point, variant);
            bars = bars.bar(name, series, ratio.unwrap_or(f64::NAN), None);
        }
    }
    bars
}

/// A row for each variant: over all points, or the only one.
fn table(data: &ReportData) -> Table {
    let table = Table::new().column("variant");
    let is_one = data.points.len() == 1;
    let mut table = match is_one {
        true => table.number_column("times the limit"),
        false => table
            .number_column("points")
            .number_column("nearest to the limit")
            .number_column("median of the points")
            .number_column("furthest"),
    };
    for (variant, name) in data.variants() {
        let points = data.points.iter();
        let ratios = points.filter_map(|(point, _)| ratio(data, point, variant));
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

fn ratio(data: &ReportData, point: usize, variant: usize) -> Option<f64> {
    data.cell(point, variant)?.ideal_ratio
}
