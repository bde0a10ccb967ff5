//! Two variants against each other: the sentence about one point, or over several.

use crate::run::ComparisonResult;

use super::super::comparisons;
use super::super::data::ReportData;
use super::super::names::Quantity;
use super::super::verdict::{Verdict, is_equal};
use super::words::{Words, chance};

/// A variant against another at each point.
pub(super) struct Contest {
    results: Vec<ComparisonResult>,
}

impl Contest {
    pub(super) const fn of(results: Vec<ComparisonResult>) -> Self {
        Self { results }
    }

    /// `None` if nothing was measured.
    pub(super) fn sentence(&self, data: &ReportData) -> Option<String> {
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
        let (a, b, what) = (&result.a, &result.b, comparisons::what(&[result]));
        let words = Words::of(&result.metric);
        let values = self.values(data, result);
        let size = words.change(percent);
        match result.sure_interval() {
            Some(interval) if is_equal(percent) && interval.map(is_equal) == [true; 2] => {
                format!("The {what} of {a} is equal to that of {b}{values}.")
            }
            Some([low, high]) if is_equal(percent) || (low <= 0.0 && high >= 0.0) => format!(
                "It is not decided whether {a} or {b} has the {} {what}: that of {a} is {size} {}{values}.",
                words.better,
                words.interval([low, high])
            ),
            Some(interval) => format!(
                "{a} has a {size} {what} than {b} {}{values}.",
                words.interval(interval)
            ),
            None if is_equal(percent) => {
                let chance = chance(result);
                format!("The {what} of {a} is equal to that of {b}{values}, {chance}.")
            }
            None => format!(
                "It is not decided whether {a} or {b} has the {} {what}, {}: that of {a} is {size}{values}.",
                words.better,
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
        let (a, b, what) = (&first.a, &first.b, comparisons::what(&[first]));
        let words = Words::of(&first.metric);
        let total = gains.len();
        let at = |gain: Gain<'_>, name: &str| {
            let point = data.points.unambiguous(&gain.result.parameters);
            let interval = match gain.result.sure_interval() {
                Some(_) if gain.result.deterministic => "deterministic; ".to_owned(),
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
        let count = |verdict: Verdict| {
            let verdicts = gains.iter().map(|gain| Verdict::of(gain.result));
            verdicts.filter(|found| *found == verdict).count()
        };
        let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
        let others = match (worse, total - better - worse) {
            (0, 0) => String::new(),
            (0, unsure) => format!(" (undecided at {unsure})"),
            (worse, 0) => format!(" ({} at {worse})", words.worse),
            (worse, unsure) => format!(" ({} at {worse}, undecided at {unsure})", words.worse),
        };
        let unsure = gains
            .iter()
            .find(|gain| gain.result.sure_interval().is_none());
        let caution = unsure.map_or_else(String::new, |gain| format!(", {}", chance(gain.result)));
        match (better, worse) {
            (0, 0) => format!(
                "It is not decided at any of {total} points whether {a} or {b} has the {} {what}{caution}: that of {a} is {range}.",
                words.better
            ),
            _ => format!(
                "{a} has a {} {what} than {b} at {better} of {total} points with 95\u{a0}% confidence{others}: {range}.",
                words.better
            ),
        }
    }
}

/// A measured improvement at a point.
#[derive(Clone, Copy)]
struct Gain<'r> {
    percent: f64,
    result: &'r ComparisonResult,
}
