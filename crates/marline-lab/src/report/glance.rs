//! A person's gain: the medians of the first comparison in a sentence, and all variants' in a picture.

use marline_report::Report;
use marline_report::html::{Bar, Glance};
use marline_report::units;

use crate::run::ComparisonResult;
use crate::stats::{Statistic, is_better_larger};

use super::comparisons::{self, Group};
use super::data::ReportData;
use super::names::{self, Quantity};
use super::verdict::is_equal;

/// With more bars than this, nothing is understood at a glance.
const MOST_BARS: usize = 32;

/// Changes for the better that the sentence has with their values.
const SPELT_OUT: usize = 3;

/// Adds nothing if the first comparison is not one of medians, or if there are too many.
pub(super) fn add(page: Report, data: &ReportData) -> Report {
    match sentence(data).zip(picture(data)) {
        Some((sentence, picture)) => page.gain(&sentence).glance(&picture),
        None => page,
    }
}

/// The change from one variant to another at a point.
struct Change {
    /// Positive if it is for the better.
    percent: f64,
    /// Whether its interval has both directions.
    is_undecided: bool,
    point: String,
    from: String,
    to: String,
}

impl Change {
    fn of(data: &ReportData, result: &ComparisonResult) -> Option<Self> {
        let point = data.points.find(&result.parameters)?;
        let text = |variant: &str| {
            let cell = data.cell(point, data.variant(variant)?)?;
            let median = cell.metrics.get(&result.metric)?.median?;
            Some(Quantity::of(&result.metric).text(median))
        };
        Some(Self {
            percent: result.improvement_percent?,
            is_undecided: result
                .sure_interval()
                .is_some_and(|[low, high]| low < 0.0 && high > 0.0),
            point: data.points.unambiguous(&result.parameters),
            from: text(&result.b)?,
            to: text(&result.a)?,
        })
    }

    /// Whether nobody sees it.
    fn is_none(&self) -> bool {
        is_equal(self.percent) || self.from == self.to
    }

    /// `from 10.7 s to 1.86 s (far)`.
    fn words(&self) -> String {
        let Self { from, to, .. } = self;
        match self.point.as_str() {
            "" => format!("from {from} to {to}"),
            point => format!("from {from} to {to} ({point})"),
        }
    }
}

fn sentence(data: &ReportData) -> Option<String> {
    let groups = Group::all(data);
    let pair = groups.first()?.pairs().into_iter().next()?;
    let first = *pair.comparisons.first()?;
    if first.statistic != Statistic::Median || first.metric != data.main_metric() {
        return None;
    }
    let changes = pair.comparisons.iter();
    let mut changes: Vec<_> = changes
        .filter_map(|result| Change::of(data, result))
        .collect();
    changes.sort_by(|one, other| other.percent.total_cmp(&one.percent));
    let (same, changes): (Vec<_>, Vec<_>) = changes.into_iter().partition(Change::is_none);
    let (undecided, changes): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| change.is_undecided);
    let (better, worse): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| change.percent > 0.0);
    let (gets_better, gets_worse) = match is_better_larger(&first.metric) {
        true => ("rises", "falls"),
        false => ("falls", "rises"),
    };
    let mut clauses = Vec::new();
    let (spelt_out, rest) = better.split_at(better.len().min(SPELT_OUT));
    if !spelt_out.is_empty() {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(", and by less at {more} more"),
        };
        clauses.push(format!(
            "{gets_better} {}{more}",
            listed(spelt_out.iter().map(Change::words))
        ));
    }
    if !worse.is_empty() {
        clauses.push(format!(
            "{gets_worse} {}",
            listed(worse.iter().map(Change::words))
        ));
    }
    if !undecided.is_empty() {
        clauses.push(format!("is not shown to change{}", at(&undecided)));
    }
    if !same.is_empty() {
        clauses.push(format!("is the same{}", at(&same)));
    }
    let is_sure = |result: &&ComparisonResult| result.sure_interval().is_some();
    let caution = match pair.comparisons.iter().any(is_sure) {
        true => String::new(),
        false => format!(
            " This is a first look, of {} each.",
            units::counted(first.pairs as u64, "run")
        ),
    };
    (!clauses.is_empty()).then(|| {
        let (a, b, what) = (&first.a, &first.b, comparisons::what(&[first]));
        format!(
            "With {a} instead of {b}, the {what} {}.{caution}",
            clauses.join("; it ")
        )
    })
}

/// ` at one and two`, of the points of `changes` that have names.
fn at(changes: &[Change]) -> String {
    let points = listed(changes.iter().map(|change| change.point.clone()));
    match points.is_empty() {
        true => String::new(),
        false => format!(" at {points}"),
    }
}

/// `one`, `one and two`, or `one, two and three`.
fn listed(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<_> = parts.collect();
    match parts.pop() {
        Some(last) if !parts.is_empty() => format!("{} and {last}", parts.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn picture(data: &ReportData) -> Option<Glance> {
    let metric = data.main_metric();
    let quantity = Quantity::of(metric);
    let (mut fewest, mut most, mut bars) = (usize::MAX, 0, 0);
    let mut groups = Vec::new();
    for (point, name) in data.points.iter() {
        let mut group = Vec::new();
        for (series, variant) in data.variants() {
            let Some(summary) = data
                .cell(point, series)
                .and_then(|cell| cell.metrics.get(metric))
            else {
                continue;
            };
            let median = summary
                .median
                .filter(|median| median.is_finite() && *median >= 0.0)?;
            (fewest, most, bars) = (fewest.min(summary.n), most.max(summary.n), bars + 1);
            group.push(Bar {
                name: variant.to_owned(),
                series,
                length: quantity.base(median),
                value: quantity.text(median),
            });
        }
        groups.push((name, group));
    }
    if !(2..=MOST_BARS).contains(&bars) {
        return None;
    }
    let runs = match fewest == most {
        true => format!("{most}"),
        false => format!("{fewest} to {most}"),
    };
    let what = names::capitalized(&names::of(Statistic::Median, &quantity.name));
    let picture = Glance::new(format!("{what} of {runs} runs each"));
    Some(
        groups
            .into_iter()
            .fold(picture, |picture, (name, bars)| picture.group(name, bars)),
    )
}
