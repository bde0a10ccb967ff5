//! Charts of measured and published improvements.

use marline_report::chart::{Axis, Forest, ForestRow, Interval, Unit};

use crate::run::ComparisonResult;

use super::comparisons::{Group, pair, what};
use super::data::ReportData;
use super::points::PointLabel;

/// Pairs of variants in one chart; further pairs have charts of their own.
const PANELS: usize = 3;

/// Charts of all groups in which an improvement is published.
pub(super) fn pictures(data: &ReportData) -> Vec<Forest> {
    let groups = Group::all(data).into_iter();
    let published = groups.filter(Group::is_published);
    published.flat_map(|group| of(data, &group)).collect()
}

/// The number of published improvements that are reached, if any is published.
pub(super) fn reached(data: &ReportData) -> Option<String> {
    let comparisons = data.results.comparisons.iter();
    let pairs = comparisons.filter_map(|result| {
        let published = result.published_percent?;
        Some((
            result.improvement_percent,
            result.sure_interval(),
            published,
        ))
    });
    let pairs: Vec<_> = pairs.collect();
    let reached = pairs
        .iter()
        .filter(|(ours, _, published)| ours.is_some_and(|ours| ours >= *published));
    let better = pairs
        .iter()
        .filter(|(_, interval, _)| interval.is_some_and(|[low, _]| low > 0.0));
    (!pairs.is_empty()).then(|| {
        format!(
            "Of {} published improvements, the measured ones are as large or larger in {}. In {} of these comparisons \
             there is an improvement with 95 % confidence.",
            pairs.len(),
            reached.count(),
            better.count()
        )
    })
}

fn of(data: &ReportData, group: &Group<'_>) -> Vec<Forest> {
    let pairs = group.pairs();
    let pairs: Vec<_> = pairs
        .iter()
        .map(|pair| pair.comparisons.as_slice())
        .collect();
    pairs
        .chunks(PANELS)
        .map(|pairs| picture(data, pairs))
        .collect()
}

fn picture(data: &ReportData, pairs: &[&[&ComparisonResult]]) -> Forest {
    let points = &data.points;
    // With too many points for a row each, those without a published value have no row.
    let shows =
        |result: &&&ComparisonResult| points.are_few() || result.published_percent.is_some();
    let shown: Vec<&ComparisonResult> = pairs
        .iter()
        .copied()
        .flatten()
        .filter(shows)
        .copied()
        .collect();
    let what = what(&shown);
    let axis = Axis::new(format!("improvement of {what}"), Unit::Percent);
    let title = format!("Improvement of {what}, measured and published");
    let note = format!(
        "Right of the line at zero the first variant is better. Whiskers: 95 % interval of the measured improvement{}.",
        sources(&shown)
    );
    shown
        .into_iter()
        .fold(Forest::new(title, axis).note(note), |forest, result| {
            let PointLabel { section, row: name } = points
                .find(&result.parameters)
                .map_or_else(Default::default, |point| points.section_and_row(point));
            let (panel, row) = (
                pair(result),
                ForestRow {
                    section: &section,
                    name: &name,
                },
            );
            let interval = result
                .sure_interval()
                .filter(|_| !result.deterministic)
                .map(|[low, high]| Interval { low, high });
            let value = result.improvement_percent.unwrap_or(f64::NAN);
            let forest = forest.value(&panel, row, value, interval);
            match result.published_percent {
                Some(published) => forest.published(&panel, row, published),
                None => forest,
            }
        })
}

/// The sources of the published values.
fn sources(shown: &[&ComparisonResult]) -> String {
    let published = shown
        .iter()
        .filter(|result| result.published_percent.is_some());
    let mut sources: Vec<&str> = published
        .filter_map(|result| result.source.as_deref())
        .collect();
    sources.sort_unstable();
    sources.dedup();
    match sources.is_empty() {
        true => String::new(),
        false => format!("; diamonds: {}", sources.join(", ")),
    }
}
