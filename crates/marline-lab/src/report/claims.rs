//! Whether the results show what they must.

use marline_report::Report;
use marline_report::chart::Unit;
use marline_report::html::{Table, Verdict};

use crate::run::MustResult;

use super::comparisons;
use super::data::Evidence;
use super::names::{self, Quantity};

/// Tables with more rows than this show on a click.
const SHOWN: usize = 12;

pub(super) fn add(page: Report, evidence: &Evidence) -> Report {
    let musts = &evidence.results.must;
    if musts.is_empty() {
        return page;
    }
    let page = page.section("What was to be shown");
    let page = musts.iter().fold(page, |page, must| {
        let verdict = match must.holds {
            Some(true) => Verdict::Holds,
            Some(false) => Verdict::Fails,
            None => Verdict::Unknown,
        };
        let text = must.text.trim_end_matches('.');
        let page = page.verdict(verdict, &format!("{text}: {}.", must.tally()));
        let page = match &must.explanation {
            Some(explanation) => page.text(explanation),
            None => page,
        };
        let table = violations(evidence, must);
        match must.violations.len() {
            0 => page,
            count @ 1..=SHOWN => page
                .text(&format!("Not as claimed ({count}):"))
                .table(&table),
            count => page.details(
                &format!("{count} comparisons that are not as claimed"),
                |page| page.table(&table),
            ),
        }
    });
    page.note(
        "It is the improvement that was measured which counts; confidence that one variant is better \
         needs an interval without zero.",
    )
}

fn violations(evidence: &Evidence, must: &MustResult) -> Table {
    let mut table = evidence
        .points
        .table("comparison")
        .column("what")
        .number_column("ours")
        .number_column("95 % interval")
        .published_column("published")
        .column("source");
    let percent = Quantity::plain("improvement", Unit::Percent);
    for result in &must.violations {
        let cells = [
            names::of(result.statistic, &Quantity::of(&result.metric).name),
            percent.maybe(result.improvement_percent),
            percent.interval(result.ci95),
            percent.maybe(result.published_percent),
            names::source(result.source.as_deref().unwrap_or_default()),
        ];
        let point = evidence.points.name_of(&result.parameters);
        table.row(
            evidence
                .points
                .row(&comparisons::pair(result), point, cells),
        );
    }
    table
}
