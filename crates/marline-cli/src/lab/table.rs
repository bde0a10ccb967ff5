//! Results on a terminal.

use std::collections::BTreeMap;

use marline_lab::run::Results;
use marline_lab::scenario::Value;
use marline_report::units;

/// Prints the first metric of every cell, then the comparisons.
pub(crate) fn print(results: &Results) {
    let Some(metric) = results.metrics.first() else {
        return;
    };
    let mut rows = vec![
        [
            "variant",
            "at",
            "n",
            "median",
            "95 % interval",
            "p95",
            "CoV",
            "published",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for cell in &results.cells {
        for (reason, count) in cell.failed.iter().chain(&cell.invalid) {
            errln!(
                "{} {}: {}: {reason}",
                cell.variant,
                words(&cell.parameters),
                units::counted(*count as u64, "run")
            );
        }
        let Some(summary) = cell.metrics.get(metric) else {
            let none = format!("0 of {}", cell.runs);
            rows.push(vec![cell.variant.clone(), words(&cell.parameters), none]);
            continue;
        };
        let published = results.published.iter().find(|published| {
            published.variant == cell.variant
                && published.parameters == cell.parameters
                && published.metric == *metric
                && published.statistic.name() == "median"
        });
        rows.push(vec![
            cell.variant.clone(),
            words(&cell.parameters),
            match summary.censored {
                0 => summary.n.to_string(),
                longer => format!("{}, {longer} longer", summary.n),
            },
            summary.median.map_or_else(unknown, units::number),
            summary.ci95.as_ref().map_or(String::new(), |interval| {
                let [low, high] = interval.map(units::number);
                format!("{low} to {high}")
            }),
            summary.p95.map_or_else(unknown, units::number),
            summary.cov.map_or(String::new(), |cov| format!("{cov:.2}")),
            published.map_or(String::new(), |published| units::number(published.value)),
        ]);
    }
    outln!("{} ({metric})", results.title);
    align(&rows);
    if !results.comparisons.is_empty() {
        let mut rows = vec![
            ["better by", "95 % interval", "published", "", "", "at"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for comparison in &results.comparisons {
            let percent = |value: f64| format!("{value:.1} %");
            rows.push(vec![
                comparison
                    .improvement_percent
                    .map_or(String::new(), percent),
                comparison.ci95.as_ref().map_or(String::new(), |interval| {
                    let [low, high] = *interval;
                    format!("{low:.1} to {high:.1}")
                }),
                comparison.published_percent.map_or(String::new(), percent),
                format!("{} against {}", comparison.a, comparison.b),
                format!("{} of {}", comparison.statistic.name(), comparison.metric),
                words(&comparison.parameters),
            ]);
        }
        outln!();
        align(&rows);
    }
    if let Some(caution) = results.caution() {
        outln!("\n{caution}");
    }
    for must in &results.must {
        out!("\n{must}");
    }
    outln!();
    let [seconds, packets] = [results.virtual_s, results.packets as f64];
    out!(
        "{} virtual seconds and {} packets",
        units::number(seconds),
        units::count(results.packets)
    );
    // The wall time of earlier starts is not recorded.
    if results.resumed == 0 && results.wall_s > 0.0 {
        out!(
            " in {:.1} s: {} virtual seconds and {} packets a second",
            results.wall_s,
            units::number(seconds / results.wall_s),
            units::number(packets / results.wall_s),
        );
    }
    outln!();
    outln!("digest {}", results.digest);
}

/// Prints claims that do not hold on standard error: they are findings, not failures.
pub(crate) fn warn(results: &Results) {
    for must in results.must.iter().filter(|must| must.holds != Some(true)) {
        errln!("{}: {}: {}", must.verdict(), must.text, must.tally());
    }
}

/// A statistic that depends on runs which exceeded their time limit.
fn unknown() -> String {
    "not known".to_owned()
}

pub(super) fn words(parameters: &BTreeMap<String, Value>) -> String {
    let mut words = Vec::new();
    for (name, value) in parameters {
        words.push(match value {
            Value::String(text) => format!("{name}={text}"),
            value => format!("{name}={value}"),
        });
    }
    words.join(" ")
}

/// Prints rows with aligned columns.
pub(super) fn align(rows: &[Vec<String>]) {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<_> = cells
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        outln!("{}", line.join("  ").trim_end());
    }
}
