//! The answer of a report in one sentence: which variant, how much, and how sure that is.

use marline_report::Report;
use marline_report::units;

use crate::run::{ComparisonResult, compare_cells};
use crate::scenario::Comparison;
use crate::stats::{Statistic, is_better_larger};

use super::comparisons::{self, Group};
use super::data::ReportData;
use super::names::Quantity;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    page.answer(&sentence(data))
}

/// The scenario's first comparison answers its question. Without comparisons, it is the variant that is best at most
/// points, against the next best at each.
fn sentence(data: &ReportData) -> String {
    let groups = Group::all(data);
    let contest = match groups.first().map(Group::pairs) {
        Some(pairs) => pairs.into_iter().next().map(|pair| {
            let results: Vec<_> = pair.comparisons.into_iter().cloned().collect();
            let b = results
                .first()
                .map_or_else(String::new, |result| result.b.clone());
            Contest { b, results }
        }),
        None => best(data),
    };
    let text = match contest {
        Some(contest) => contest.sentence(data),
        None => medians(data),
    };
    text.unwrap_or_else(|| "No run counts, so that there is no answer.".to_owned())
}

/// A variant against another, or against the next best, at each point.
struct Contest {
    /// The other one, in words.
    b: String,
    results: Vec<ComparisonResult>,
}

/// The variant that is best at most points; `None` if there is only one variant, or nothing was measured.
fn best(data: &ReportData) -> Option<Contest> {
    let metric = data.main_metric();
    let sign = if is_better_larger(metric) { -1.0 } else { 1.0 };
    let ranks: Vec<Vec<usize>> = (data.points.iter())
        .map(|(point, _)| {
            let medians = data.variants().filter_map(|(variant, _)| {
                let summary = data.cell(point, variant)?.metrics.get(metric)?;
                Some((variant, sign * summary.median))
            });
            let mut medians: Vec<_> = medians.collect();
            medians.sort_by(|a, b| a.1.total_cmp(&b.1));
            medians.into_iter().map(|(variant, _)| variant).collect()
        })
        .collect();
    let wins = |variant: usize| {
        let firsts = ranks.iter().filter_map(|rank| rank.first());
        firsts.filter(|first| **first == variant).count()
    };
    let (first, _) = data
        .variants()
        .rev()
        .max_by_key(|(variant, _)| wins(*variant))?;
    let results = ranks.iter().enumerate().filter_map(|(point, rank)| {
        let next = *rank.iter().find(|variant| **variant != first)?;
        Some(compare(data, point, first, next))
    });
    let results: Vec<_> = results.collect();
    let mut names = results.iter().map(|result| &result.b);
    let name = names.next()?.clone();
    let b = match names.all(|other| *other == name) {
        true => name,
        false => "the next best variant".to_owned(),
    };
    Some(Contest { b, results })
}

fn compare(data: &ReportData, point: usize, a: usize, b: usize) -> ComparisonResult {
    let comparison = Comparison {
        a: data.plan.variants[a].clone(),
        b: data.plan.variants[b].clone(),
        metric: data.main_metric().to_owned(),
        statistic: Statistic::Median,
        points: vec![point],
        published: Vec::new(),
        source: None,
    };
    let [a, b] = [a, b].map(|variant| data.runs(point, variant).iter().collect::<Vec<_>>());
    let mut result = compare_cells(&comparison, &a, &b, &data.plan);
    result.parameters.clone_from(&data.plan.points[point]);
    result
}

/// A measured improvement at a point.
#[derive(Clone, Copy)]
struct Gain<'r> {
    percent: f64,
    result: &'r ComparisonResult,
}

impl Contest {
    /// `None` if nothing was measured.
    fn sentence(&self, data: &ReportData) -> Option<String> {
        let gains = self.results.iter().filter_map(|result| {
            let percent = result.improvement_percent?;
            Some(Gain { percent, result })
        });
        let mut gains: Vec<_> = gains.collect();
        gains.sort_by(|a, b| a.percent.total_cmp(&b.percent));
        match gains[..] {
            [] => None,
            [gain] => Some(self.at_one_point(data, gain)),
            [low, .., high] => Some(self.over_points(data, &gains, low, high)),
        }
    }

    fn at_one_point(&self, data: &ReportData, gain: Gain<'_>) -> String {
        let Gain { percent, result } = gain;
        let (a, b, what) = (&result.a, &self.b, comparisons::what(&[result]));
        let words = Words::of(&result.metric);
        let values = self.values(data, result);
        let size = words.change(percent);
        match result.ci95 {
            Some([low, high]) if low <= 0.0 && high >= 0.0 => format!(
                "It is not decided whether {a} or {b} has the {} {what}: that of {a} is {size} {}{values}.",
                words.better,
                words.interval([low, high])
            ),
            Some(interval) => format!(
                "{a} has a {size} {what} than {b} {}{values}.",
                words.interval(interval)
            ),
            None => format!(
                "{a} has a {size} {what} than {b}{values}; {}.",
                chance(result)
            ),
        }
    }

    /// The two values that are compared.
    fn values(&self, data: &ReportData, result: &ComparisonResult) -> String {
        let quantity = Quantity::of_statistic(&result.metric, result.statistic);
        let value = |name: &str| {
            let point = data.points.find(&result.parameters)?;
            let summary = data
                .cell(point, data.variant(name)?)?
                .metrics
                .get(&result.metric)?;
            Some(quantity.text(result.statistic.of(summary)?))
        };
        match value(&result.a).zip(value(&result.b)) {
            Some((a, b)) => format!(": {a} against {b}"),
            None => String::new(),
        }
    }

    fn over_points(
        &self,
        data: &ReportData,
        gains: &[Gain<'_>],
        low: Gain<'_>,
        high: Gain<'_>,
    ) -> String {
        let first = &gains[0].result;
        let (a, b, what) = (&first.a, &self.b, comparisons::what(&[first]));
        let words = Words::of(&first.metric);
        let intervals: Vec<_> = gains.iter().filter_map(|gain| gain.result.ci95).collect();
        let total = gains.len();
        let at = |gain: Gain<'_>, name: &str| {
            let point = data.points.name_of(&gain.result.parameters);
            let interval = match gain.result.ci95 {
                Some(interval) => format!("{name}{}; ", words.span(interval)),
                None => String::new(),
            };
            format!("{} ({interval}{point})", words.change(gain.percent))
        };
        let range = format!(
            "from {} to {}",
            at(low, "95\u{a0}% interval "),
            at(high, "")
        );
        if intervals.is_empty() {
            let better = gains.iter().filter(|gain| gain.percent > 0.0).count();
            return format!(
                "{a} has a {} {what} than {b} at {better} of {total} points, {range}; {}.",
                words.better,
                chance(first)
            );
        }
        let better = intervals.iter().filter(|[low, _]| *low > 0.0).count();
        let worse = intervals.iter().filter(|[_, high]| *high < 0.0).count();
        let others = match (worse, total - better - worse) {
            (0, 0) => String::new(),
            (0, unsure) => format!(" (undecided at {unsure})"),
            (worse, 0) => format!(" ({} at {worse})", words.worse),
            (worse, unsure) => format!(" ({} at {worse}, undecided at {unsure})", words.worse),
        };
        match (better, worse) {
            (0, 0) => format!(
                "It is not decided at any of {total} points whether {a} or {b} has the {} {what}: that of {a} is {range}.",
                words.better
            ),
            _ => format!(
                "{a} has a {} {what} than {b} at {better} of {total} points with 95\u{a0}% confidence{others}: {range}.",
                words.better
            ),
        }
    }
}

/// Why there is no interval.
fn chance(result: &ComparisonResult) -> String {
    match result.pairs {
        0 | 1 => "with one run of each, that may be chance".to_owned(),
        pairs => format!("no interval can be given from {pairs} runs of each"),
    }
}

/// The size of a percentage, with as many digits as one says: 82, 3.3, 0.3.
fn rounded(percent: f64) -> String {
    let decimals = if percent.abs() < 9.95 { 10.0 } else { 1.0 };
    units::number((percent.abs() * decimals).round() / decimals)
}

/// The words for an improvement and for its opposite.
struct Words {
    better: &'static str,
    worse: &'static str,
}

impl Words {
    fn of(metric: &str) -> Self {
        match is_better_larger(metric) {
            true => Self {
                better: "larger",
                worse: "smaller",
            },
            false => Self {
                better: "smaller",
                worse: "larger",
            },
        }
    }

    const fn word(&self, percent: f64) -> &'static str {
        if percent < 0.0 {
            self.worse
        } else {
            self.better
        }
    }

    /// `20 % smaller`.
    fn change(&self, percent: f64) -> String {
        let size = rounded(percent);
        format!("{size}\u{a0}% {}", self.word(percent))
    }

    /// `(95 % interval 12 to 25 %)`.
    fn interval(&self, interval: [f64; 2]) -> String {
        format!("(95\u{a0}% interval {})", self.span(interval))
    }

    /// `12 to 25 %`, or with words where both ends have different ones.
    fn span(&self, [low, high]: [f64; 2]) -> String {
        let number = |percent: f64| rounded(percent);
        if number(low) == number(high) && (low < 0.0) == (high < 0.0) {
            return format!("{}\u{a0}%", number(low));
        }
        match (low < 0.0, high <= 0.0) {
            (false, _) => format!("{} to {}\u{a0}%", number(low), number(high)),
            (true, true) => format!("{} to {}\u{a0}%", number(high), number(low)),
            (true, false) => format!("{} to {}", self.change(low), self.change(high)),
        }
    }
}

/// The medians of the main metric, where there is nothing to compare.
fn medians(data: &ReportData) -> Option<String> {
    let metric = data.main_metric();
    let quantity = Quantity::of(metric);
    let medians = data.points.iter().flat_map(|(point, name)| {
        data.variants().filter_map(move |(variant, _)| {
            Some((name, data.cell(point, variant)?.metrics.get(metric)?))
        })
    });
    let mut medians: Vec<_> = medians.collect();
    medians.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let interval = |summary: &crate::stats::Summary| match summary.ci95 {
        Some(interval) => format!("95\u{a0}% interval {}", quantity.interval(Some(interval))),
        None => "one run".to_owned(),
    };
    let at = |(name, summary): (&str, &crate::stats::Summary)| {
        let median = quantity.text(summary.median);
        format!("{median} ({}; {name})", interval(summary))
    };
    match medians[..] {
        [] => None,
        [(_, one)] => Some(format!(
            "The median {} is {} ({}).",
            quantity.name,
            quantity.text(one.median),
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
