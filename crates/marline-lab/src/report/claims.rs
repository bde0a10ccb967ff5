//! The verdicts on the claims of an experiment.

use marline_report::Report;
use marline_report::chart::Unit;
use marline_report::html::{Table, Verdict};

use crate::run::{self, ComparisonResult};

use super::comparisons::pair;
use super::data::ReportData;
use super::names::{self, Quantity};

/// Tables with more rows than this are folded.
const SHOWN: usize = 12;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let musts = &data.results.must;
    if musts.is_empty() {
        return page;
    }
    let page = page.section("Claims");
    let page = musts.iter().fold(page, |page, must| {
        let verdict = match must.verdict {
            run::Verdict::Holds => Verdict::Holds,
            run::Verdict::DoesNotHold => Verdict::Fails,
            run::Verdict::Undecided => Verdict::Undecided,
            run::Verdict::NotKnown => Verdict::Unknown,
        };
        let text = must.text.trim_end_matches('.');
        let page = page.verdict(verdict, &format!("{text}: {}.", must.tally()));
        let page = match &must.explanation {
            Some(explanation) => page.text(explanation),
            None => page,
        };
        let page = list(page, data, &must.violations, "do not meet the claim");
        list(page, data, &must.open, "do not decide")
    });
    page.note(
        "A comparison meets a claim if its whole 95 % interval does, and does not if none of it does; between them it is \
         undecided, as it is with fewer than six pairs. Where nothing is random, the value decides. The correction for many \
         comparisons keeps those that are so by chance below 2.5 % of all that are found (Benjamini and Hochberg, 1995).",
    )
}

/// The `comparisons` of a claim that `are` so, if there are any.
fn list(page: Report, data: &ReportData, comparisons: &[ComparisonResult], are: &str) -> Report {
    let table = table(data, comparisons);
    match comparisons.len() {
        0 => page,
        count @ 1..=SHOWN => page
            .text(&format!("Comparisons that {are} ({count}):"))
            .table(&table),
        count => page.details(&format!("{count} comparisons that {are}"), |page| {
            page.table(&table)
        }),
    }
}

fn table(data: &ReportData, comparisons: &[ComparisonResult]) -> Table {
    let mut table = data
        .points
        .table("comparison")
        .column("what")
        .number_column("measured")
        .number_column("95 % interval")
        .published_column("published")
        .column("source");
    let percent = Quantity::plain("improvement", Unit::Percent);
    for result in comparisons {
        let cells = [
            names::of(result.statistic, &Quantity::of(&result.metric).name),
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
