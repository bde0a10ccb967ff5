//! Heat maps over two parameters.

use marline_report::Report;
use marline_report::chart::{Axis, Heat, Unit};

use super::comparisons;
use super::data::ReportData;
use super::names::{self, Quantity};
use super::points::Factor;

/// Factors with fewer values have no map.
const FEWEST_VALUES: usize = 3;
/// Most variants that have a map of their own.
const MAPS: usize = 4;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let [rows, columns] = &data.points.factors[..] else {
        return page;
    };
    let is_map = |factor: &Factor| factor.values.len() >= FEWEST_VALUES;
    // A map of points that were drawn at random would have mostly empty cells.
    let is_full = data.points.len() * 2 > rows.values.len() * columns.values.len();
    if !is_map(rows) || !is_map(columns) || !is_full {
        return page;
    }
    let title = format!("{} and {}", names::capitalized(&rows.name), columns.name);
    let maps = match data.results.comparisons.is_empty() {
        true => medians(data, rows, columns),
        false => vec![improvements(data, rows, columns)],
    };
    let page = page.section(&title);
    maps.iter().fold(page, |page, map| page.chart(map))
}

/// The median of the main metric, with a map for each variant.
fn medians(data: &ReportData, rows: &Factor, columns: &Factor) -> Vec<Heat> {
    let metric = data.main_metric();
    let quantity = Quantity::of(metric);
    let maps = data.variants().take(MAPS).map(|(variant, name)| {
        let values = data.points.iter().map(|(point, _)| {
            let cell = data.cell(point, variant);
            let summary = cell.and_then(|cell| cell.metrics.get(metric));
            let median = summary.and_then(|summary| summary.median);
            (point, median.map(|median| quantity.base(median)))
        });
        let axis = Axis::new(format!("median {}", quantity.name), quantity.unit);
        fill(name.to_owned(), axis, rows, columns, values)
    });
    maps.collect()
}

/// The improvement of the first comparison.
fn improvements(data: &ReportData, rows: &Factor, columns: &Factor) -> Heat {
    let all = &data.results.comparisons;
    let first = &all[0];
    let same = all.iter().filter(|result| {
        (&result.a, &result.b, &result.metric, result.statistic)
            == (&first.a, &first.b, &first.metric, first.statistic)
    });
    let values = same.filter_map(|result| {
        let point = data.points.find(&result.parameters)?;
        Some((point, result.improvement_percent))
    });
    let what = names::of(first.statistic, &Quantity::of(&first.metric).name);
    let axis = Axis::new(format!("improvement of {what}"), Unit::Percent);
    fill(comparisons::pair(first), axis, rows, columns, values)
}

fn fill(
    title: String,
    axis: Axis,
    rows: &Factor,
    columns: &Factor,
    values: impl Iterator<Item = (usize, Option<f64>)>,
) -> Heat {
    let mut heat = Heat::new(title, columns.name.as_str(), rows.name.as_str(), axis);
    for (point, value) in values {
        if let (Some(&row), Some(&column)) = (rows.at.get(point), columns.at.get(point)) {
            let (column, row) = (&columns.values[column], &rows.values[row]);
            heat = heat.cell(column, row, value.unwrap_or(f64::NAN));
        }
    }
    heat
}
