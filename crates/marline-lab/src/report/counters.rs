//! Counters of a report: what ran, and for how long.

use marline_report::{Report, units};

use crate::scenario::BackendKind;

use super::data::ReportData;
use super::names;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let results = &data.results;
    let runs: usize = results.cells.iter().map(|cell| cell.runs).sum();
    let is_virtual = BackendKind::are_virtual(&results.backend);
    let mut facts = vec![
        ("runs", units::count(runs as u64)),
        ("repeats", units::count(results.repeats.into())),
        (
            match is_virtual {
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
        if is_virtual {
            let speed = a_second(results.virtual_s);
            facts.push(("virtual to wall time", format!("{speed}\u{d7}")));
        }
        facts.push(("packets a second", a_second(results.packets as f64)));
    }
    page.section("Counters").facts(facts)
}
