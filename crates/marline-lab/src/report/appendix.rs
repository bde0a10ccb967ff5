//! Failed and invalid runs, settings, and all statistics.

use std::collections::{BTreeMap, BTreeSet};

use marline_report::Report;
use marline_report::html::Table;
use marline_report::units;

use crate::scenario::Value;
use crate::stats::Statistic;

use super::data::ReportData;
use super::names::{self, Quantity};

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let page = failures(page, data);
    let differences = differences(data);
    let mut page = page.section("Statistics and settings");
    if !differences.is_empty() {
        page = page
            .text("Settings in which the variants differ:")
            .table(&differences);
    }
    let page = page.details("Every variant at every point", |page| {
        page.table(&cells(data)).note(
            "Variation is the standard deviation divided by the mean. The file runs.csv has every metric of \
             every run.",
        )
    });
    settings(page, data)
}

/// Failed runs and invalid runs, by reason.
fn failures(page: Report, data: &ReportData) -> Report {
    let mut table = data
        .points
        .table("variant")
        .number_column("runs")
        .number_column("of")
        .column("what")
        .column("reason");
    for cell in &data.results.cells {
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
            let point = data.points.name_of(&cell.parameters);
            table.row(data.points.row(&cell.variant, point, cells));
        }
    }
    if table.is_empty() {
        return page;
    }
    page.section("Failed and invalid runs")
        .text("No chart includes these runs. Tables count those that exceeded their time limit as longer than all others.")
        .table(&table)
}

/// Statistics of all metrics that reports show.
fn cells(data: &ReportData) -> Table {
    let mut table = data
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
    for cell in &data.results.cells {
        for metric in &data.results.metrics {
            let Some(summary) = cell.metrics.get(metric) else {
                continue;
            };
            let cells = [Quantity::of(metric).name, units::count(summary.n as u64)];
            let point = data.points.name_of(&cell.parameters);
            let mut row = data.points.row(&cell.variant, point, cells);
            for statistic in statistics {
                let quantity = Quantity::of_statistic(metric, statistic);
                row.push(quantity.maybe(statistic.of(summary)));
                if statistic == Statistic::Median {
                    row.push(quantity.interval_unless(cell.deterministic, summary.sure_interval()));
                }
            }
            table.row(row);
        }
    }
    table
}

/// The scenario, and the settings of each variant that follow from it.
fn settings(page: Report, data: &ReportData) -> Report {
    let settings = &data.results.settings;
    let mut scenario = Table::new().column("key").code_column("value");
    for (key, value) in flat(&settings["scenario"]) {
        scenario.row([key, value]);
    }
    page.details("The scenario", |page| page.table(&scenario))
        .details(
            "Settings of each variant at the first point, defaults included",
            |page| page.table(&resolved(data, |_| true)),
        )
}

/// The settings in which variants differ.
fn differences(data: &ReportData) -> Table {
    resolved(data, |values| {
        values.windows(2).any(|pair| pair[0] != pair[1])
    })
}

/// Settings of each variant at the first point, as far as `wanted` selects them.
fn resolved(data: &ReportData, wanted: fn(&[Option<String>]) -> bool) -> Table {
    let variants: Vec<_> = data
        .variants()
        .map(|(_, name)| (name, flat(&data.results.settings["variants"][name])))
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

/// A tree as a flat table, with dots in the keys.
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
