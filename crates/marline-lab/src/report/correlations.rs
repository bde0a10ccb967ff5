//! Correlations of metrics.

use marline_report::Report;
use marline_report::chart::{Chart, Unit};
use marline_report::html::Table;
use marline_report::units;

use crate::run::CorrelationResult;
use crate::stats::Interval;

use super::data::ReportData;
use super::names::{self, Quantity};

/// Charts that are shown at once; others are folded.
const SHOWN: usize = 6;
/// Most charts that are shown at all.
const MAX_CHARTS: usize = 24;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let all = &data.results.correlations;
    if all.is_empty() {
        return page;
    }
    // Variants of one pair of metrics at one point share a chart.
    let mut groups: Vec<Vec<&CorrelationResult>> = Vec::new();
    for result in all {
        let same = |group: &&mut Vec<&CorrelationResult>| {
            let first = group[0];
            (&first.x, &first.y, &first.parameters) == (&result.x, &result.y, &result.parameters)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(result),
            None => groups.push(vec![result]),
        }
    }
    let groups = groups.iter().take(MAX_CHARTS);
    let charts: Vec<_> = groups.map(|group| scatter(data, group)).collect();
    let (shown, hidden) = charts.split_at(charts.len().min(SHOWN));
    let draw =
        |page: Report, charts: &[Chart]| charts.iter().fold(page, |page, chart| page.chart(chart));
    let page = draw(page.section("Correlations"), shown);
    let page = match hidden.len() {
        0 => page,
        more => page.details(&format!("{more} more charts"), |page| draw(page, hidden)),
    };
    page.table(&table(data)).note(
        "r: Pearson's correlation over runs; its interval is Fisher's, 95 %. Lines: least squares. A \
         correlation need not be cause and effect.",
    )
}

fn scatter(data: &ReportData, group: &[&CorrelationResult]) -> Chart {
    let first = group[0];
    let (x, y) = (Quantity::of(&first.x), Quantity::of(&first.y));
    let title = data
        .points
        .by_name(&format!("{} and {}", y.title(), x.name), &first.parameters);
    let clouds: Vec<Vec<(f64, f64)>> = group
        .iter()
        .map(|result| {
            let pairs = pairs(data, result).into_iter();
            pairs.map(|(a, b)| (x.base(a), y.base(b))).collect()
        })
        .collect();
    let all = || clouds.iter().flatten();
    let chart = Chart::new(
        title,
        x.axis_around(all().map(|point| point.0)),
        y.axis_around(all().map(|point| point.1)),
    );
    group
        .iter()
        .zip(&clouds)
        .fold(chart, |chart, (result, points)| {
            let variant = result.variant.as_str();
            let chart = chart.scatter(variant, points.clone());
            let (Some(line), Some(r)) = (fit(points), result.r) else {
                return chart;
            };
            let published = result.published.map_or_else(String::new, |published| {
                format!(" (published {})", coefficient(published))
            });
            let name = format!("r = {}{published}", coefficient(r));
            chart.fit(variant, name, line.slope, line.intercept)
        })
}

/// Both metrics of each run that has them.
fn pairs(data: &ReportData, result: &CorrelationResult) -> Vec<(f64, f64)> {
    let place = data
        .points
        .find(&result.parameters)
        .zip(data.variant(&result.variant));
    let Some((point, variant)) = place else {
        return Vec::new();
    };
    let runs = data.runs(point, variant).iter();
    runs.filter(|run| run.counts())
        .filter_map(|run| Some((*run.metrics.get(&result.x)?, *run.metrics.get(&result.y)?)))
        .collect()
}

/// A straight line.
struct Line {
    slope: f64,
    intercept: f64,
}

/// The line through `points` by least squares.
fn fit(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let (mut both, mut squares) = (0.0, 0.0);
    for (x, y) in points {
        both += (x - mean_x) * (y - mean_y);
        squares += (x - mean_x) * (x - mean_x);
    }
    let slope = both / squares;
    let intercept = mean_y - slope * mean_x;
    slope.is_finite().then_some(Line { slope, intercept })
}

/// The 95 % confidence interval of a correlation of metrics that are about normal (Fisher, 1915).
pub(super) fn interval(r: f64, n: usize) -> Option<Interval> {
    let free = n.checked_sub(3).filter(|free| *free > 0)? as f64;
    let (middle, half) = (libm::atanh(r), 1.96 / free.sqrt());
    let bounds = [middle - half, middle + half].map(libm::tanh);
    bounds
        .iter()
        .all(|bound| bound.is_finite())
        .then_some(bounds)
}

fn coefficient(r: f64) -> String {
    format!("{r:.2}").replace('-', "\u{2212}")
}

fn table(data: &ReportData) -> Table {
    let mut table = data
        .points
        .table("variant")
        .column("x")
        .column("y")
        .number_column("runs")
        .number_column("r")
        .number_column("95 % interval")
        .published_column("published r")
        .column("source");
    for result in &data.results.correlations {
        let bounds = result.r.and_then(|r| interval(r, result.n));
        let cells = [
            Quantity::of(&result.x).name,
            Quantity::of(&result.y).name,
            units::count(result.n as u64),
            result.r.map_or_else(names::nothing, coefficient),
            bounds.map_or_else(names::nothing, |bounds| {
                bounds.map(coefficient).join("\u{a0}to\u{a0}")
            }),
            result.published.map_or_else(names::nothing, coefficient),
            names::source(result.source.as_deref().unwrap_or_default()),
        ];
        let point = data.points.name_of(&result.parameters);
        table.row(data.points.row(&result.variant, point, cells));
    }
    table
}

/// A coefficient as a quantity, for the table of published values.
pub(super) fn quantity(result: &CorrelationResult) -> Quantity {
    let (x, y) = (Quantity::of(&result.x).name, Quantity::of(&result.y).name);
    Quantity::plain(&format!("correlation of {y} with {x}"), Unit::Number)
}
