//! The answer of a report in one sentence: which variant is better, by how much, and with what
//! confidence.

mod best;
mod contest;
mod words;

use marline_report::Report;

use crate::stats::Summary;

use super::comparisons::Group;
use super::data::ReportData;
use super::names::Quantity;
use contest::Contest;
use words::runs;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    page.answer(&sentence(data))
}

/// The scenario's first comparison answers its question. Without comparisons, it is the variant that is best at most
/// points.
fn sentence(data: &ReportData) -> String {
    let groups = Group::all(data);
    let text = match groups.first().map(Group::pairs) {
        Some(pairs) => pairs.into_iter().next().and_then(|pair| {
            let results = pair.comparisons.into_iter().cloned().collect();
            Contest::of(results).sentence(data)
        }),
        None => best::sentence(data).or_else(|| medians(data)),
    };
    text.unwrap_or_else(|| "No run counts, so there is no answer.".to_owned())
}

/// The median of the main metric of a cell.
struct Median<'d> {
    value: f64,
    point: usize,
    summary: &'d Summary,
    deterministic: bool,
}

/// The medians of the main metric, where there is nothing to compare.
fn medians(data: &ReportData) -> Option<String> {
    let metric = data.main_metric();
    let quantity = Quantity::of(metric);
    let medians = data.points.iter().flat_map(|(point, _)| {
        data.variants().filter_map(move |(variant, _)| {
            let cell = data.cell(point, variant)?;
            let summary = cell.metrics.get(metric)?;
            Some(Median {
                value: summary.median?,
                point,
                summary,
                deterministic: cell.deterministic,
            })
        })
    });
    let mut medians: Vec<_> = medians.collect();
    medians.sort_by(|a, b| a.value.total_cmp(&b.value));
    let interval = |median: &Median<'_>| match median.summary.sure_interval() {
        _ if median.deterministic => "deterministic".to_owned(),
        Some(interval) => format!("95\u{a0}% interval {}", quantity.interval(Some(interval))),
        None => format!("in {}, too few to be sure", runs(median.summary.n)),
    };
    let at = |median: &Median<'_>| {
        let value = quantity.text(median.value);
        let name = data.points.unambiguous(&data.plan.points[median.point]);
        format!("{value} ({}; {name})", interval(median))
    };
    match &medians[..] {
        [] => None,
        [one] => Some(format!(
            "The median {} is {} ({}).",
            quantity.name,
            quantity.text(one.value),
            interval(one)
        )),
        [low, .., high] => Some(format!(
            "The median {} is between {} and {}.",
            quantity.name,
            at(low),
            at(high)
        )),
    }
}
