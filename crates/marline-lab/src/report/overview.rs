//! Overview of a report: the main results, and their qualifications.

use marline_report::{Report, units};

use crate::run::CellResult;

use super::data::ReportData;

pub(super) fn add(mut page: Report, data: &ReportData) -> Report {
    let results = &data.results;
    if let Some(shows) = &results.shows {
        page = page.lead(&shows.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(paper) = &results.paper {
        let section = results.section.iter().map(|section| format!(": {section}"));
        page = page.note(&format!("After {paper}{}.", section.collect::<String>()));
    }
    let of = |pick: fn(&CellResult) -> usize| -> u64 {
        results.cells.iter().map(|cell| pick(cell) as u64).sum()
    };
    let runs = of(|cell| cell.runs);
    let timed_out = of(|cell| cell.timed_out);
    let failed = of(|cell| cell.failed.values().sum()).saturating_sub(timed_out);
    for (count, what) in [
        (failed, "failed, and do not count"),
        (
            of(|cell| cell.invalid.values().sum()),
            "are invalid, and do not count",
        ),
        (
            timed_out,
            "exceeded their time limit: they count as longer than all others, and are in no chart",
        ),
    ] {
        if count > 0 {
            let (count, runs) = (units::count(count), units::count(runs));
            page = page.text(&format!("{count} of {runs} runs {what}."));
        }
    }
    match results.caution() {
        Some(caution) => page.note(&caution),
        None => page,
    }
}
