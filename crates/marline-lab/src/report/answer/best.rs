//! The answer without comparisons: the variant that is decidedly the best, and the number of
//! points.

use marline_report::chart::Unit;

use crate::run::{ComparisonResult, compare_cells};
use crate::scenario::Comparison;
use crate::stats::{Statistic, is_better_larger};

use super::super::comparisons;
use super::super::data::ReportData;
use super::super::names::Quantity;
use super::super::verdict::{Verdict, is_equal};
use super::contest::Contest;
use super::words::{Words, chance};

/// `None` if there is only one variant, or nothing was measured.
pub(super) fn sentence(data: &ReportData) -> Option<String> {
    let points = data.points.iter();
    let rankings: Vec<_> = points
        .filter_map(|(point, _)| Ranking::at(data, point))
        .collect();
    match &rankings[..] {
        [] => None,
        [one] if data.points.len() == 1 => {
            let results = vec![one.closest().clone()];
            Contest::of(results).sentence(data)
        }
        _ => Some(over_points(data, &rankings)),
    }
}

/// The variant that is best at a point, against each other one.
struct Ranking {
    next: ComparisonResult,
    /// The others, after the next best.
    others: Vec<ComparisonResult>,
}

impl Ranking {
    /// `None` if fewer than two variants were measured.
    fn at(data: &ReportData, point: usize) -> Option<Self> {
        let metric = data.main_metric();
        let sign = if is_better_larger(metric) { -1.0 } else { 1.0 };
        let medians = data.variants().filter_map(|(variant, _)| {
            let summary = data.cell(point, variant)?.metrics.get(metric)?;
            Some((variant, sign * summary.median?))
        });
        let mut medians: Vec<_> = medians.collect();
        medians.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut ranks = medians.into_iter().map(|(variant, _)| variant);
        let best = ranks.next()?;
        let mut results = ranks.map(|other| compare(data, point, best, other));
        Some(Self {
            next: results.next()?,
            others: results.collect(),
        })
    }

    fn results(&self) -> impl Iterator<Item = &ComparisonResult> {
        std::iter::once(&self.next).chain(&self.others)
    }

    /// The comparison that decides: with the first variant than which the best is not decidedly better, else with the next best.
    fn closest(&self) -> &ComparisonResult {
        let mut results = self.results();
        results
            .find(|result| Verdict::of(result) != Verdict::Better)
            .unwrap_or(&self.next)
    }

    /// Whether the best variant is better than all others: with 95 % confidence, if any point has enough runs for that.
    fn is_won(&self, is_sure: bool) -> bool {
        self.results().all(|result| match is_sure {
            true => Verdict::of(result) == Verdict::Better,
            false => (result.improvement_percent)
                .is_some_and(|percent| percent > 0.0 && !is_equal(percent)),
        })
    }
}

/// Compares the medians of two variants.
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

fn over_points(data: &ReportData, rankings: &[Ranking]) -> String {
    let is_sure = rankings
        .iter()
        .any(|ranking| ranking.next.sure_interval().is_some());
    let caution = match rankings.first() {
        Some(first) if !is_sure => format!(", {}", chance(&first.next)),
        _ => String::new(),
    };
    let won = |name: &str| -> Vec<&Ranking> {
        let won = rankings.iter().filter(|ranking| ranking.is_won(is_sure));
        won.filter(|ranking| ranking.next.a == name).collect()
    };
    let total = rankings.len();
    let mut winners: Vec<_> = data.variants().map(|(_, name)| won(name)).collect();
    winners.retain(|won| !won.is_empty());
    winners.sort_by_key(|won| std::cmp::Reverse(won.len()));
    let Some((first, others)) = winners.split_first() else {
        let decidedly = if is_sure { "decidedly " } else { "" };
        let fastest = fastest(data);
        return format!("No variant is {decidedly}{fastest} at any of {total} points{caution}.");
    };
    let (name, count) = (&first[0].next.a, first.len());
    let (words, what) = (
        Words::of(data.main_metric()),
        comparisons::what(&[&first[0].next]),
    );
    let best = format!("the {} {what}", words.best);
    let mut text = format!(
        "{name} has {best} at {count} of {total} points{caution}: {}.",
        sizes(data, &words, first)
    );
    for won in others {
        text += &format!(" {} has it at {}.", won[0].next.a, won.len());
    }
    let undecided = total - winners.iter().map(Vec::len).sum::<usize>();
    let rest = match undecided {
        0 => return text,
        1 => "the other one".to_owned(),
        more => format!("the other {more}"),
    };
    text + &match is_sure {
        true => format!(" No variant is decidedly the best at {rest}."),
        false => format!(" At {rest}, the best are equal."),
    }
}

/// By how much the best variant is better than the next best, at the points that it won.
fn sizes(data: &ReportData, words: &Words, won: &[&Ranking]) -> String {
    let percent = |ranking: &Ranking| ranking.next.improvement_percent.unwrap_or(0.0);
    let mut won = won.to_vec();
    won.sort_by(|a, b| percent(a).total_cmp(&percent(b)));
    let at = |ranking: &Ranking, than: &str, name: &str| {
        let point = data.points.unambiguous(&ranking.next.parameters);
        let interval = match ranking.next.sure_interval() {
            Some(interval) => format!("{name}{}; ", words.span(interval)),
            None => String::new(),
        };
        let (change, next) = (words.change(percent(ranking)), &ranking.next.b);
        format!("{change} than {than}{next} ({interval}{point})")
    };
    let (next, name) = ("the next best, ", "95\u{a0}% interval ");
    match won[..] {
        [] => String::new(),
        [one] => at(one, next, name),
        [low, .., high] => format!("from {} to {}", at(low, next, name), at(high, "", "")),
    }
}

/// The adjective for the best variant, such as `fastest`.
fn fastest(data: &ReportData) -> &'static str {
    let is_speed = matches!(
        Quantity::of(data.main_metric()).unit,
        Unit::Seconds | Unit::BitsPerSecond
    );
    match (is_speed, data.plan.variants.len() > 2) {
        (true, true) => "the fastest",
        (true, false) => "faster",
        (false, true) => "the best",
        (false, false) => "better",
    }
}
