//! The verdicts on the claims of an experiment.

use marline_report::Report;
use marline_report::chart::Unit;
use marline_report::html::{Table, Verdict};

use crate::run::MustResult;

use super::comparisons;
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
        let table = violations(data, must);
        match must.violations.len() {
            0 => page,
            count @ 1..=SHOWN => page
                .text(&format!(
                    "Comparisons that do not meet the claim ({count}):"
                ))
                .table(&table),
            count => page.details(
                &format!("{count} comparisons that do not meet the claim"),
                |page| page.table(&table),
            ),
        }
    });
    page.note(
        "Verdicts depend on the measured improvement, not on its interval. One variant is better with 95 % \
         confidence if the interval excludes zero.",
    )
}

fn violations(data: &ReportData, must: &MustResult) -> Table {
    let mut table = data
        .points
        .table("comparison")
        .column("what")
        .number_column("measured")
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
        let point = data.points.name_of(&result.parameters);
        table.row(data.points.row(&comparisons::pair(result), point, cells));
    }
    table
}
