//! How the metric of most interest spreads.

use marline_report::Report;
use marline_report::chart::{Axis, Boxes, Chart, Unit};
use marline_report::html::Table;

use crate::stats::Statistic;

use super::data::Evidence;
use super::ideal;
use super::names::{Quantity, ends};

/// Distributions of fewer runs have no shape.
const FEWEST_RUNS: usize = 5;
/// Distributions that show at once; the others show on a click.
const SHOWN: usize = 4;
/// The largest value is this many times the smallest where equal ratios should look equal: among
/// medians of points, and among runs.
const WIDE_MEDIANS: f64 = 8.0;
const WIDE_RUNS: f64 = 30.0;

pub(super) fn add(page: Report, evidence: &Evidence) -> Report {
    let metric = evidence.main_metric();
    let quantity = Quantity::of(metric);
    let page = page.section(&quantity.title());
    let page = match evidence.points.are_few() {
        true => page
            .chart(&boxes(evidence, metric))
            .table(&medians(evidence, metric)),
        false => page.chart(&over_points(evidence, metric)),
    };
    let page = distributions(page, evidence, metric);
    others(ideal::add(page, evidence), evidence)
}

/// A box for each variant at each point.
fn boxes(evidence: &Evidence, metric: &str) -> Boxes {
    let quantity = Quantity::of(metric);
    let points = &evidence.points;
    let title = points.by(&quantity.title());
    let mut boxes = Boxes::new(title, points.title(), axis(evidence, metric))
        .series(evidence.variants().map(|(_, name)| name));
    for (point, name) in points.iter() {
        for (variant, series) in evidence.variants() {
            boxes = boxes.samples(name, series, evidence.samples(point, variant, metric));
        }
    }
    let published = evidence.results.published.iter();
    for value in published.filter(|value| value.metric == metric) {
        if value.statistic == Statistic::Median {
            let point = points.name_of(&value.parameters);
            boxes = boxes.published(point, &value.variant, quantity.base(value.value));
        }
    }
    boxes
}

/// Linear, unless the points lie decades apart.
fn axis(evidence: &Evidence, metric: &str) -> Axis {
    let quantity = Quantity::of(metric);
    let medians = evidence
        .results
        .cells
        .iter()
        .filter_map(|cell| Some(cell.metrics.get(metric)?.median));
    let (low, high) = ends(medians);
    match low > 0.0 && high > WIDE_MEDIANS * low {
        true => quantity.axis().logarithmic(),
        false => quantity.axis(),
    }
}

/// The medians, a row for each point.
fn medians(evidence: &Evidence, metric: &str) -> Table {
    let quantity = Quantity::of(metric);
    let points = &evidence.points;
    let mut table = Table::new();
    if !points.factors.is_empty() {
        table = table.column(&points.title());
    }
    for (_, name) in evidence.variants() {
        table = table
            .number_column(&format!("{name}, median"))
            .number_column("95 % interval");
    }
    for (point, name) in points.iter() {
        let mut row = Vec::new();
        if !points.factors.is_empty() {
            row.push(name.to_owned());
        }
        for (variant, _) in evidence.variants() {
            let cell = evidence.cell(point, variant);
            let summary = cell.and_then(|cell| cell.metrics.get(metric));
            row.push(quantity.maybe(summary.map(|summary| summary.median)));
            row.push(quantity.interval(summary.and_then(|summary| summary.ci95)));
        }
        table.row(row);
    }
    table
}

/// The distribution of the points' medians, where there are too many to name.
fn over_points(evidence: &Evidence, metric: &str) -> Chart {
    let quantity = Quantity::of(metric);
    let title = format!(
        "Median {} over {} points",
        quantity.name,
        evidence.points.len()
    );
    let share = Axis::new("share of points", Unit::Share).spanning(0.0, 1.0);
    let chart = Chart::new(title, axis(evidence, metric), share);
    evidence.variants().fold(chart, |chart, (variant, name)| {
        let medians = evidence.points.iter().filter_map(|(point, _)| {
            let summary = evidence.cell(point, variant)?.metrics.get(metric)?;
            Some(quantity.base(summary.median))
        });
        chart.ecdf(name, medians.collect())
    })
}

/// The distribution of the runs, a picture for each point.
fn distributions(page: Report, evidence: &Evidence, metric: &str) -> Report {
    let charts: Vec<_> = evidence
        .points
        .iter()
        .filter_map(|(point, _)| distribution(evidence, metric, point))
        .collect();
    let (shown, hidden) = charts.split_at(charts.len().min(SHOWN));
    let all =
        |page: Report, charts: &[Chart]| charts.iter().fold(page, |page, chart| page.chart(chart));
    let page = all(page, shown);
    match hidden.len() {
        0 => page,
        more if evidence.points.are_few() => page
            .details(&format!("{more} more distributions"), |page| {
                all(page, hidden)
            }),
        _ => page,
    }
}

fn distribution(evidence: &Evidence, metric: &str, point: usize) -> Option<Chart> {
    let quantity = Quantity::of(metric);
    let samples: Vec<_> = evidence
        .variants()
        .map(|(variant, name)| (name, evidence.samples(point, variant, metric)))
        .collect();
    if samples
        .iter()
        .all(|(_, samples)| samples.len() < FEWEST_RUNS)
    {
        return None;
    }
    // What never varies is told by the boxes.
    let varies = |samples: &Vec<f64>| samples.windows(2).any(|pair| pair[0] != pair[1]);
    if !samples.iter().any(|(_, samples)| varies(samples)) {
        return None;
    }
    let all = || samples.iter().flat_map(|(_, samples)| samples).copied();
    let (low, high) = ends(all());
    let axis = match low > 0.0 && high > WIDE_RUNS * low {
        true => quantity.axis().logarithmic(),
        false => quantity.axis_around(all()),
    };
    let title = evidence.points.at(&quantity.title(), point);
    let share = Axis::new("share of runs", Unit::Share).spanning(0.0, 1.0);
    let chart = Chart::new(title, axis, share);
    Some(
        samples
            .into_iter()
            .fold(chart, |chart, (name, samples)| chart.ecdf(name, samples)),
    )
}

/// Boxes of the other metrics.
fn others(page: Report, evidence: &Evidence) -> Report {
    let others = evidence.results.metrics.get(1..).unwrap_or_default();
    if others.is_empty() || !evidence.points.are_few() {
        return page;
    }
    page.details("Other metrics", |page| {
        others
            .iter()
            .fold(page, |page, metric| page.chart(&boxes(evidence, metric)))
    })
}
