//! The distribution of the main metric.

use marline_report::Report;
use marline_report::chart::{Axis, Boxes, Chart, Unit};
use marline_report::html::Table;

use crate::stats::{Statistic, Summary};

use super::data::ReportData;
use super::ideal;
use super::names::{Quantity, Range, range};
use super::outliers::Reach;

/// Distributions of fewer runs are not drawn.
const FEWEST_RUNS: usize = 5;
/// Distributions that are shown at once; the others are folded.
const SHOWN: usize = 4;
/// The ratio of the largest to the smallest median of points from which the axis of boxes is logarithmic.
const WIDE_MEDIANS: f64 = 8.0;
/// The length of an axis relative to the last value that it shows.
const MARGIN: f64 = 1.02;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let metric = data.main_metric();
    let quantity = Quantity::of(metric);
    let page = page.section(&quantity.title());
    let page = match data.points.are_few() {
        true => page
            .chart(&boxes(data, metric))
            .table(&medians(data, metric)),
        false => page.chart(&over_points(data, metric)),
    };
    let page = distributions(page, data, metric);
    others(ideal::add(page, data), data)
}

/// A box for each variant at each point.
fn boxes(data: &ReportData, metric: &str) -> Boxes {
    let quantity = Quantity::of(metric);
    let points = &data.points;
    let title = points.by(&quantity.title());
    let mut boxes = Boxes::new(title, points.title(), axis(data, metric))
        .series(data.variants().map(|(_, name)| name));
    for (point, name) in points.iter() {
        for (variant, series) in data.variants() {
            boxes = boxes.samples(name, series, data.samples(point, variant, metric));
        }
    }
    let published = data.results.published.iter();
    for value in published.filter(|value| value.metric == metric) {
        if value.statistic == Statistic::Median {
            let point = points.name_of(&value.parameters);
            boxes = boxes.published(point, &value.variant, quantity.base(value.value));
        }
    }
    boxes
}

/// A linear axis, or a logarithmic one if the values of the points differ widely.
fn axis(data: &ReportData, metric: &str) -> Axis {
    let quantity = Quantity::of(metric);
    let medians = data
        .results
        .cells
        .iter()
        .filter_map(|cell| cell.metrics.get(metric)?.median);
    let Range { low, high } = range(medians);
    match low > 0.0 && high > WIDE_MEDIANS * low {
        true => quantity.axis().logarithmic(),
        // Rates are compared by their differences; times also by their lengths.
        false if quantity.unit == Unit::BitsPerSecond => {
            let points = data.points.iter().map(|(point, _)| point);
            let cells = points.flat_map(|point| {
                let variants = data.variants();
                variants.map(move |(variant, _)| data.samples(point, variant, metric))
            });
            quantity.axis_around(cells.flatten().collect::<Vec<_>>().into_iter())
        }
        false => quantity.axis(),
    }
}

/// The medians, with a row for each point.
fn medians(data: &ReportData, metric: &str) -> Table {
    let quantity = Quantity::of(metric);
    let points = &data.points;
    let mut table = Table::new();
    if !points.factors.is_empty() {
        table = table.column(&points.title());
    }
    for (_, name) in data.variants() {
        table = table
            .number_column(&format!("{name}, median"))
            .number_column("95 % interval");
    }
    for (point, name) in points.iter() {
        let mut row = Vec::new();
        if !points.factors.is_empty() {
            row.push(name.to_owned());
        }
        for (variant, _) in data.variants() {
            let cell = data.cell(point, variant);
            let summary = cell.and_then(|cell| cell.metrics.get(metric));
            row.push(quantity.maybe(summary.and_then(|summary| summary.median)));
            let deterministic = cell.is_some_and(|cell| cell.deterministic);
            let interval = summary.and_then(Summary::sure_interval);
            row.push(quantity.interval_unless(deterministic, interval));
        }
        table.row(row);
    }
    table
}

/// The distribution of the points' medians, where there are too many points for boxes.
fn over_points(data: &ReportData, metric: &str) -> Chart {
    let quantity = Quantity::of(metric);
    let title = format!("Median {} over {} points", quantity.name, data.points.len());
    let share = Axis::new("share of points", Unit::Share).spanning(0.0, 1.0);
    let series = data.variants().map(|(variant, name)| {
        let medians = data.points.iter().filter_map(|(point, _)| {
            let summary = data.cell(point, variant)?.metrics.get(metric)?;
            Some(quantity.base(summary.median?))
        });
        (name, medians.collect())
    });
    over_values(title, &quantity, share, series.collect(), "points")
}

/// The distribution of the runs, with a chart for each point.
fn distributions(page: Report, data: &ReportData, metric: &str) -> Report {
    let charts: Vec<_> = data
        .points
        .iter()
        .filter_map(|(point, _)| distribution(data, metric, point))
        .collect();
    let (shown, hidden) = charts.split_at(charts.len().min(SHOWN));
    let all =
        |page: Report, charts: &[Chart]| charts.iter().fold(page, |page, chart| page.chart(chart));
    let page = all(page, shown);
    match hidden.len() {
        0 => page,
        more if data.points.are_few() => page
            .details(&format!("{more} more distributions"), |page| {
                all(page, hidden)
            }),
        _ => page,
    }
}

fn distribution(data: &ReportData, metric: &str, point: usize) -> Option<Chart> {
    let quantity = Quantity::of(metric);
    let samples: Vec<_> = data
        .variants()
        .map(|(variant, name)| (name, data.samples(point, variant, metric)))
        .collect();
    if samples
        .iter()
        .all(|(_, samples)| samples.len() < FEWEST_RUNS)
    {
        return None;
    }
    // Boxes suffice for values that do not vary.
    let varies = |samples: &Vec<f64>| samples.windows(2).any(|pair| pair[0] != pair[1]);
    if !samples.iter().any(|(_, samples)| varies(samples)) {
        return None;
    }
    let title = data.points.at(&quantity.title(), point);
    let share = Axis::new("share of runs", Unit::Share).spanning(0.0, 1.0);
    Some(over_values(title, &quantity, share, samples, "runs"))
}

/// Distributions over an axis that begins where the values do, also where a narrow screen shows only its beginning, and
/// that extremes do not flatten.
fn over_values(
    title: String,
    quantity: &Quantity,
    share: Axis,
    series: Vec<(&str, Vec<f64>)>,
    of: &str,
) -> Chart {
    let values = || series.iter().flat_map(|(_, samples)| samples).copied();
    let reach = Reach::of(values());
    let top = match reach.beyond {
        0 => reach.largest,
        _ => reach.top,
    };
    let low = range(values()).low;
    let margin = (MARGIN - 1.0) * (top - low);
    let axis = quantity.axis().spanning(low - margin, top + margin);
    let (axis, note) = match reach.beyond {
        0 => (axis, String::new()),
        beyond => (
            axis,
            format!(
                "{beyond} of the {of} are beyond the axis, up to {}.",
                quantity.unit.text(reach.largest)
            ),
        ),
    };
    let chart = Chart::new(title, axis, share).note(note);
    series
        .into_iter()
        .fold(chart, |chart, (name, samples)| chart.ecdf(name, samples))
}

/// Boxes of the other metrics.
fn others(page: Report, data: &ReportData) -> Report {
    let others = data.results.metrics.get(1..).unwrap_or_default();
    if others.is_empty() || !data.points.are_few() {
        return page;
    }
    page.details("Other metrics", |page| {
        others
            .iter()
            .fold(page, |page, metric| page.chart(&boxes(data, metric)))
    })
}
