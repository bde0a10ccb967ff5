//! Improvements as pictures: ours with their intervals, and on the same line what was published.

use marline_report::chart::{Axis, Forest, ForestRow, Interval, Unit};

use crate::run::ComparisonResult;

use super::comparisons::{Group, pair, what};
use super::data::Evidence;

/// Pairs of variants that stand beside each other; further ones have a picture of their own.
const PANELS: usize = 3;

/// Pictures of all groups of which others published something.
pub(super) fn pictures(evidence: &Evidence) -> Vec<Forest> {
    let groups = Group::all(evidence).into_iter();
    let published = groups.filter(Group::is_published);
    published.flat_map(|group| of(evidence, &group)).collect()
}

/// How many of the published improvements are reached, if there are any.
pub(super) fn reached(evidence: &Evidence) -> Option<String> {
    let comparisons = evidence.results.comparisons.iter();
    let pairs = comparisons.filter_map(|result| {
        let published = result.published_percent?;
        Some((result.improvement_percent, result.ci95, published))
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
            "Of {} published improvements, ours are as large or larger in {}. In {} of these comparisons \
             there is an improvement with 95 % confidence.",
            pairs.len(),
            reached.count(),
            better.count()
        )
    })
}

fn of(evidence: &Evidence, group: &Group<'_>) -> Vec<Forest> {
    let pairs = group.pairs();
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(_, members)| members.as_slice())
        .collect();
    pairs
        .chunks(PANELS)
        .map(|pairs| picture(evidence, pairs))
        .collect()
}

fn picture(evidence: &Evidence, pairs: &[&[&ComparisonResult]]) -> Forest {
    let points = &evidence.points;
    // Where there are too many points, those that others did not look at have no row.
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
    let title = format!("Improvement of {what}, ours and published");
    let note = format!(
        "Right of the line at zero the first variant is better. Whiskers: 95 % interval of ours{}.",
        sources(&shown)
    );
    shown
        .into_iter()
        .fold(Forest::new(title, axis).note(note), |forest, result| {
            let (section, name) = points
                .find(&result.parameters)
                .map_or_else(Default::default, |point| points.section_and_row(point));
            let (panel, row) = (
                pair(result),
                ForestRow {
                    section: &section,
                    name: &name,
                },
            );
            let interval = result.ci95.map(|[low, high]| Interval { low, high });
            let value = result.improvement_percent.unwrap_or(f64::NAN);
            let forest = forest.value(&panel, row, value, interval);
            match result.published_percent {
                Some(published) => forest.published(&panel, row, published),
                None => forest,
            }
        })
}

/// Where the diamonds stand.
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
