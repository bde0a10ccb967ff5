//! Runs without an outcome, settings, and all numbers.

use std::collections::{BTreeMap, BTreeSet};

use marline_report::Report;
use marline_report::html::Table;
use marline_report::units;

use crate::scenario::Value;
use crate::stats::Statistic;

use super::data::Evidence;
use super::names::{self, Quantity};

pub(super) fn add(page: Report, evidence: &Evidence) -> Report {
    let page = failures(page, evidence);
    let differences = differences(evidence);
    let mut page = page.section("Numbers and settings");
    if !differences.is_empty() {
        page = page
            .text("What tells the variants apart:")
            .table(&differences);
    }
    let page = page.details("Every variant at every point", |page| {
        page.table(&cells(evidence)).note(
            "Variation is the standard deviation divided by the mean. The file runs.csv has every metric of \
             every run.",
        )
    });
    settings(page, evidence)
}

/// Why runs have no outcome, or may not count.
fn failures(page: Report, evidence: &Evidence) -> Report {
    let mut table = evidence
        .points
        .table("variant")
        .number_column("runs")
        .number_column("of")
        .column("what")
        .column("reason");
    for cell in &evidence.results.cells {
        let failed = cell
            .failed
            .iter()
            .map(|(reason, count)| ("failed", reason, count));
        let invalid = cell
            .invalid
            .iter()
            .map(|(reason, count)| ("invalid", reason, count));
        for (what, reason, count) in failed.chain(invalid) {
            let cells = [
                units::count(*count as u64),
                units::count(cell.runs as u64),
                what.to_owned(),
                reason.clone(),
            ];
            let point = evidence.points.name_of(&cell.parameters);
            table.row(evidence.points.row(&cell.variant, point, cells));
        }
    }
    if table.is_empty() {
        return page;
    }
    page.section("Runs that do not count")
        .text("Nothing else on this page knows of these runs.")
        .table(&table)
}

/// Statistics of all metrics that reports show.
fn cells(evidence: &Evidence) -> Table {
    let mut table = evidence
        .points
        .table("variant")
        .column("metric")
        .number_column("runs");
    let statistics = Statistic::NAMES.map(|(_, statistic)| statistic);
    for statistic in statistics {
        table = table.number_column(names::statistic(statistic));
        if statistic == Statistic::Median {
            table = table.number_column("95 % interval");
        }
    }
    for cell in &evidence.results.cells {
        for metric in &evidence.results.metrics {
            let Some(summary) = cell.metrics.get(metric) else {
                continue;
            };
            let cells = [Quantity::of(metric).name, units::count(summary.n as u64)];
            let point = evidence.points.name_of(&cell.parameters);
            let mut row = evidence.points.row(&cell.variant, point, cells);
            for statistic in statistics {
                let quantity = Quantity::of_statistic(metric, statistic);
                row.push(quantity.maybe(statistic.of(summary)));
                if statistic == Statistic::Median {
                    row.push(quantity.interval(summary.ci95));
                }
            }
            table.row(row);
        }
    }
    table
}

/// The scenario, and what it means for each variant.
fn settings(page: Report, evidence: &Evidence) -> Report {
    let settings = &evidence.results.settings;
    let mut scenario = Table::new().column("key").code_column("value");
    for (key, value) in flat(&settings["scenario"]) {
        scenario.row([key, value]);
    }
    page.details("The scenario", |page| page.table(&scenario))
        .details(
            "Settings of each variant at the first point, defaults included",
            |page| page.table(&resolved(evidence, |_| true)),
        )
}

/// What tells variants apart.
fn differences(evidence: &Evidence) -> Table {
    resolved(evidence, |values| {
        values.windows(2).any(|pair| pair[0] != pair[1])
    })
}

/// Settings of each variant at the first point, as far as they are `wanted`.
fn resolved(evidence: &Evidence, wanted: fn(&[Option<String>]) -> bool) -> Table {
    let variants: Vec<_> = evidence
        .variants()
        .map(|(_, name)| (name, flat(&evidence.results.settings["variants"][name])))
        .collect();
    let keys: BTreeSet<&String> = variants.iter().flat_map(|(_, flat)| flat.keys()).collect();
    let mut table = Table::new().column("setting");
    for (name, _) in &variants {
        table = table.column(name);
    }
    for key in keys {
        let values: Vec<_> = variants
            .iter()
            .map(|(_, flat)| flat.get(key).cloned())
            .collect();
        if wanted(&values) {
            let values = values
                .into_iter()
                .map(|value| value.unwrap_or_else(names::nothing));
            table.row(std::iter::once(key.clone()).chain(values));
        }
    }
    table
}

/// A tree as lines, with dots in the keys.
fn flat(tree: &Value) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    flatten("", tree, &mut lines);
    lines
}

fn flatten(path: &str, value: &Value, lines: &mut BTreeMap<String, String>) {
    let inner = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                flatten(&inner(key), value, lines);
            }
        }
        Value::Array(members) if members.iter().any(Value::is_object) => {
            for (number, member) in (1..).zip(members) {
                flatten(&inner(&number.to_string()), member, lines);
            }
        }
        Value::Null => {}
        plain => {
            lines.insert(path.to_owned(), names::plain(plain));
        }
    }
}
