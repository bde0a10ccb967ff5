//! Close-ups: the runs whose time series are shown in reports.
//!
//! The typical run of a cell is known once all of them have ended. In virtual time it is then repeated identically,
//! with time series. In real time, the first repeats have time series.

use super::{Plan, Record, Results};

/// Most close-ups of an experiment, to limit the size of files and pages.
pub(crate) const MOST: usize = 24;
/// Repeats of each cell that have time series where a run cannot be repeated.
pub(super) const FIRST_REPEATS: u32 = 3;

/// A cell of the plan, by the indices of its point and variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) point: usize,
    pub(crate) variant: usize,
}

/// The cells that have close-ups, in the order in which they are shown: points by descending median of the main metric.
pub(crate) fn cells(plan: &Plan, results: &Results) -> Vec<Cell> {
    let metric = plan.main_metric();
    let variants = plan.variants.len();
    let size = |point: usize| {
        let cells = results.cells.iter();
        let there = cells.filter(|cell| Some(&cell.parameters) == plan.points.get(point));
        let medians = there.filter_map(|cell| cell.metrics.get(metric)?.median);
        medians.fold(f64::NEG_INFINITY, f64::max)
    };
    let mut points: Vec<_> = (0..plan.points.len())
        .map(|point| (point, size(point)))
        .collect();
    points.sort_by(|a, b| b.1.total_cmp(&a.1));
    let cells = points
        .into_iter()
        .flat_map(|(point, _)| (0..variants).map(move |variant| Cell { point, variant }));
    cells.take(MOST).collect()
}

/// The run whose `metric` is nearest to `median`, the first of equals. Of runs without the metric, such as those that
/// failed, the first if there is no other.
pub(crate) fn typical<'r>(
    runs: impl Iterator<Item = &'r Record>,
    metric: &str,
    median: Option<f64>,
) -> Option<&'r Record> {
    let distance = |run: &Record| {
        let value = run.metrics.get(metric).filter(|_| run.counts());
        value
            .zip(median)
            .map_or(f64::INFINITY, |(value, median)| (value - median).abs())
    };
    runs.min_by(|a, b| {
        distance(a)
            .total_cmp(&distance(b))
            .then(a.repeat.cmp(&b.repeat))
    })
}

/// The numbers of the typical runs that have no time series yet.
pub(super) fn missing(plan: &Plan, records: &[Record], results: &Results) -> Vec<usize> {
    let metric = plan.main_metric();
    let typical = cells(plan, results).into_iter().filter_map(|cell| {
        let (name, parameters) = (&plan.variants[cell.variant], &plan.points[cell.point]);
        let mut all = results.cells.iter();
        let found = all.find(|found| found.variant == *name && found.parameters == *parameters);
        let median = found.and_then(|found| found.metrics.get(metric)?.median);
        let runs = records.iter();
        let runs = runs.filter(|run| run.point == cell.point && run.variant == *name);
        typical(runs.filter(|run| run.counts()), metric, median)
    });
    typical
        .filter(|run| run.series.is_none())
        .map(|run| run.run)
        .collect()
}
