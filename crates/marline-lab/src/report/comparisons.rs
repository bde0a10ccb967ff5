//! Comparisons of variants.

use marline_report::Report;
use marline_report::chart::{Axis, Bars, Chart, Interval, Unit};
use marline_report::html::Table;
use marline_report::units;

use crate::run::ComparisonResult;

use super::data::ReportData;
use super::names::{self, Quantity};
use super::verdict::Verdict;

/// Comparisons of one statistic of one metric, which share a chart.
pub(super) struct Group<'r>(Vec<&'r ComparisonResult>);

/// The comparisons of two variants.
pub(super) struct Pair<'r> {
    /// Both variants, on one line.
    pub(super) name: String,
    pub(super) comparisons: Vec<&'r ComparisonResult>,
}

impl<'r> Group<'r> {
    /// All comparisons, in groups.
    pub(super) fn all(data: &'r ReportData) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for result in &data.results.comparisons {
            let same = |group: &&mut Self| {
                let first = group.0[0];
                (&first.metric, first.statistic) == (&result.metric, result.statistic)
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.0.push(result),
                None => groups.push(Self(vec![result])),
            }
        }
        groups
    }

    /// Whether any of the improvements has a published value.
    pub(super) fn is_published(&self) -> bool {
        self.0
            .iter()
            .any(|result| result.published_percent.is_some())
    }

    /// Each pair of variants, with its comparisons.
    pub(super) fn pairs(&self) -> Vec<Pair<'r>> {
        let mut pairs: Vec<Pair<'_>> = Vec::new();
        for &result in &self.0 {
            let name = pair(result);
            match pairs.iter_mut().find(|pair| pair.name == name) {
                Some(pair) => pair.comparisons.push(result),
                None => pairs.push(Pair {
                    name,
                    comparisons: vec![result],
                }),
            }
        }
        pairs
    }
}

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let groups = Group::all(data);
    if groups.is_empty() {
        return page;
    }
    let page = page.section("Comparisons");
    let page = groups.iter().fold(page, |page, group| {
        let page = add_sentences(page, group);
        match (data.points.are_few(), group.is_published()) {
            (false, _) => page.chart(&over_points(group)),
            (true, false) => page.chart(&bars(data, &group.0)),
            // Their chart is in the section about published values.
            (true, true) => page,
        }
    });
    page.table(&table(data))
        .note("Improvement: how much smaller the first is, in percent of the second; of rates, shares and \
               fairness, how much larger. Runs are compared in pairs that met the same luck; intervals: 95 %, bootstrap over pairs.")
}

/// Both variants of a comparison, on one line.
pub(super) fn pair(result: &ComparisonResult) -> String {
    format!("{}\u{a0}over\u{a0}{}", result.a, result.b)
}

/// The quantity that is compared in `group`, such as `median completion time`.
pub(super) fn what(group: &[&ComparisonResult]) -> String {
    group.first().map_or_else(String::new, |first| {
        names::of(first.statistic, &Quantity::of(&first.metric).name)
    })
}

/// Adds a sentence for each pair: at how many points it is better, worse, or undecided.
fn add_sentences(page: Report, group: &Group<'_>) -> Report {
    group.pairs().into_iter().fold(page, |page, pair| {
        let members = pair.comparisons;
        let count = |verdict: Verdict| {
            let verdicts = members.iter().map(|result| Verdict::of(result));
            verdicts.filter(|found| *found == verdict).count()
        };
        let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
        let unsure = members.len() - better - worse;
        let (first, total) = (members[0], members.len());
        let mut gains: Vec<f64> = members.iter().filter_map(|m| m.improvement_percent).collect();
        gains.sort_by(f64::total_cmp);
        let range = match (gains.first(), gains.last()) {
            (Some(low), Some(high)) if gains.len() > 1 => format!(
                " Improvements lie between {} and {} %.",
                units::number(*low),
                units::number(*high)
            ),
            (Some(one), _) => format!(" The improvement is {} %.", units::number(*one)),
            _ => String::new(),
        };
        let (a, b, what) = (&first.a, &first.b, what(&[first]));
        let text = match total {
            1 => format!("{a} against {b}, {what}:{range} {}", conclusion(better, worse)),
            _ => format!(
                "{a} against {b}, {what}: better with 95 % confidence at {better} of {total} points, worse at \
                 {worse}, undecided at {unsure}.{range}"
            ),
        };
        page.text(&text)
    })
}

const fn conclusion(better: usize, worse: usize) -> &'static str {
    match (better, worse) {
        (1, _) => "It is better with 95 % confidence.",
        (_, 1) => "It is worse with 95 % confidence.",
        _ => "Which of them is better is undecided.",
    }
}

fn axis(group: &[&ComparisonResult]) -> Axis {
    Axis::new(format!("improvement of {}", what(group)), Unit::Percent)
}

fn bars(data: &ReportData, group: &[&ComparisonResult]) -> Bars {
    let points = &data.points;
    let title = points.by(&names::capitalized(&what(group)));
    let mut bars = Bars::new(title, points.title(), axis(group));
    for result in group {
        let point = points.name_of(&result.parameters);
        let interval = result
            .sure_interval()
            .filter(|_| !result.deterministic)
            .map(|[low, high]| Interval { low, high });
        let value = result.improvement_percent.unwrap_or(f64::NAN);
        bars = bars.bar(point, &pair(result), value, interval);
    }
    bars
}

/// The distribution of improvements, where there are too many points for a chart with names.
fn over_points(group: &Group<'_>) -> Chart {
    let share = Axis::new("share of points", Unit::Share).spanning(0.0, 1.0);
    let title = names::capitalized(&what(&group.0));
    let chart = Chart::new(title, axis(&group.0), share);
    group.pairs().into_iter().fold(chart, |chart, pair| {
        let gains = pair
            .comparisons
            .iter()
            .filter_map(|result| result.improvement_percent);
        chart.ecdf(pair.name, gains.collect())
    })
}

fn table(data: &ReportData) -> Table {
    let all = &data.results.comparisons;
    let has_published = all.iter().any(|result| result.published_percent.is_some());
    let mut table = data
        .points
        .table("comparison")
        .column("what")
        .number_column("pairs")
        .number_column("improvement")
        .number_column("95 % interval");
    if has_published {
        table = table.published_column("published").column("source");
    }
    let percent = Quantity::plain("improvement", Unit::Percent);
    for result in all {
        // The last two columns are dropped where nothing is published.
        let cells = [
            what(&[result]),
            units::count(result.pairs as u64),
            percent.maybe(result.improvement_percent),
            percent.interval_unless(result.deterministic, result.sure_interval()),
            percent.maybe(result.published_percent),
            names::source(result.source.as_deref().unwrap_or_default()),
        ];
        let point = data.points.name_of(&result.parameters);
        table.row(data.points.row(&pair(result), point, cells));
    }
    table
}
