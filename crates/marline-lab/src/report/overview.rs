//! Overview of a report: what the experiment shows, and what qualifies the answer.

use marline_report::{Report, units};

use crate::run::CellResult;

use super::data::ReportData;

/// With fewer repeats, bootstrap intervals are unreliable: resamples contain only values that were drawn.
const MIN_REPEATS: u32 = 30;

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
    for (count, what) in [
        (of(|cell| cell.failed.values().sum()), "failed"),
        (of(|cell| cell.invalid.values().sum()), "are invalid"),
    ] {
        if count > 0 {
            let (count, runs) = (units::count(count), units::count(runs));
            page = page.text(&format!("{count} of {runs} runs {what}, and do not count."));
        }
    }
    match results.repeats < MIN_REPEATS {
        true => page.note(&format!(
            "Fewer than {MIN_REPEATS} repeats: the intervals on this page are approximate, and too narrow."
        )),
        false => page,
    }
}
