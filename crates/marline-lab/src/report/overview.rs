//! Overview of a report: what ran, and for how long.

use marline_report::{Report, units};

use crate::run::CellResult;
use crate::scenario::BackendKind;

use super::data::ReportData;
use super::names;

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
    let runs: usize = results.cells.iter().map(|cell| cell.runs).sum();
    let of = |pick: fn(&CellResult) -> usize| -> u64 {
        results.cells.iter().map(|cell| pick(cell) as u64).sum()
    };
    let failed = of(|cell| cell.failed.values().sum());
    let invalid = of(|cell| cell.invalid.values().sum());
    let mut facts = vec![
        ("runs", units::count(runs as u64)),
        ("repeats", units::count(results.repeats.into())),
        (
            match results.backend == BackendKind::Sim.name() {
                true => "virtual time",
                false => "time on the links",
            },
            names::span(results.virtual_s),
        ),
        ("packets", units::number(results.packets as f64)),
    ];
    if results.wall_s > 0.0 {
        facts.push(("wall time", names::span(results.wall_s)));
    }
    // The wall time of earlier starts is not recorded.
    if results.wall_s > 0.0 && results.resumed == 0 {
        let a_second = |what: f64| units::number(what / results.wall_s);
        if results.backend == BackendKind::Sim.name() {
            let speed = a_second(results.virtual_s);
            facts.push(("virtual to wall time", format!("{speed}\u{d7}")));
        }
        facts.push(("packets a second", a_second(results.packets as f64)));
    }
    if failed > 0 {
        facts.push(("failed runs", units::count(failed)));
    }
    if invalid > 0 {
        facts.push(("invalid runs", units::count(invalid)));
    }
    let page = page.facts(facts);
    match results.repeats < MIN_REPEATS {
        true => page.note(&format!(
            "Fewer than {MIN_REPEATS} repeats: the intervals on this page are approximate, and too narrow."
        )),
        false => page,
    }
}
