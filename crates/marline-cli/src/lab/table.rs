//! Results on a terminal.

use std::collections::{BTreeMap, BTreeSet};

use marline_lab::run::{
    CellResult, ComparisonResult, PublishedAt, PublishedResult, Results, shared_parameters,
};
use marline_lab::scenario::Value;
use marline_lab::stats::Statistic;
use marline_report::units;

/// Prints the first metric of every cell, then the comparisons, and the published values that belong to neither.
pub(crate) fn print(results: &Results) {
    let Some(metric) = results.metrics.first() else {
        return;
    };
    let known = Known::of(results);
    outln!("{} ({metric})", results.title);
    align(&cells(results, metric, &known));
    if !results.comparisons.is_empty() {
        outln!();
        align(&comparisons(results, &known));
    }
    let others = others(results, metric, &known);
    if !others.is_empty() {
        let head = ["published", "here", "", "", "at"].map(str::to_owned);
        outln!();
        align(&[vec![head.to_vec()], others].concat());
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

/// The parameters of which the paper has one value for all of a variant's, or of a comparison's, points.
struct Known {
    shared: BTreeMap<String, BTreeSet<String>>,
}

impl Known {
    fn of(results: &Results) -> Self {
        let mut values: BTreeMap<String, Vec<PublishedAt<'_>>> = BTreeMap::new();
        for value in &results.published {
            values
                .entry(of_value(value))
                .or_default()
                .push(PublishedAt {
                    parameters: &value.parameters,
                    value: value.value,
                });
        }
        for one in &results.comparisons {
            if let Some(value) = one.published_percent {
                values.entry(of_pair(one)).or_default().push(PublishedAt {
                    parameters: &one.parameters,
                    value,
                });
            }
        }
        let shared = values.into_iter();
        let shared = shared.map(|(name, values)| (name, shared_parameters(&values)));
        Self {
            shared: shared.collect(),
        }
    }

    /// Whether each point of `name` has a value of its own.
    fn is_of_points(&self, name: &str) -> bool {
        self.shared.get(name).is_none_or(BTreeSet::is_empty)
    }

    /// The parameters of a point that tell it from others in what is published of `name`, then those that do not.
    fn place(&self, name: &str, parameters: &BTreeMap<String, Value>) -> String {
        let shared = &self.shared[name];
        let own = parameters
            .iter()
            .filter(|(name, _)| !shared.contains(*name));
        let own = words(&own.map(|(k, v)| (k.clone(), v.clone())).collect());
        let every = shared.iter().map(|name| format!("every {name}"));
        let parts = std::iter::once(own).filter(|own| !own.is_empty());
        parts.chain(every).collect::<Vec<_>>().join(", ")
    }
}

fn of_value(value: &PublishedResult) -> String {
    format!(
        "{}: {} of {}",
        value.variant,
        value.statistic.name(),
        value.metric
    )
}

fn of_pair(one: &ComparisonResult) -> String {
    let (statistic, metric) = (one.statistic.name(), &one.metric);
    format!("{} against {}: {statistic} of {metric}", one.a, one.b)
}

/// The rows of cells. The mean and the published values have columns where there are any.
fn cells(results: &Results, metric: &str, known: &Known) -> Vec<Vec<String>> {
    let published = |cell: &CellResult| -> Vec<&PublishedResult> {
        let values = results.published.iter().filter(|value| {
            value.variant == cell.variant
                && value.parameters == cell.parameters
                && value.metric == metric
                && known.is_of_points(&of_value(value))
        });
        values.collect()
    };
    let all: Vec<_> = results.cells.iter().flat_map(published).collect();
    let has_means = all.iter().any(|value| value.statistic == Statistic::Mean);
    let mut head = vec!["variant", "at", "n", "median", "95 % interval"];
    head.extend(has_means.then_some("mean"));
    head.extend(["p95", "CoV"]);
    head.extend((!all.is_empty()).then_some("published"));
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
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
        let number = |value: Option<f64>| value.map_or_else(unknown, units::number);
        let mut row = vec![
            cell.variant.clone(),
            words(&cell.parameters),
            match summary.censored {
                0 => summary.n.to_string(),
                longer => format!("{}, {longer} longer", summary.n),
            },
            number(summary.median),
            interval(cell.deterministic, summary.sure_interval(), units::number),
        ];
        row.extend(has_means.then(|| number(summary.mean)));
        row.push(number(summary.p95));
        row.push(summary.cov.map_or(String::new(), |cov| format!("{cov:.2}")));
        let values = published(cell).into_iter().map(|value| {
            let number = units::number(value.value);
            match value.statistic {
                Statistic::Median => number,
                Statistic::Cov => format!("CoV {number}"),
                other => format!("{} {number}", other.name()),
            }
        });
        row.push(values.collect::<Vec<_>>().join(", "));
        rows.push(row);
    }
    rows
}

/// The rows of comparisons.
fn comparisons(results: &Results, known: &Known) -> Vec<Vec<String>> {
    let published = |one: &ComparisonResult| {
        let percent = one.published_percent;
        percent.filter(|_| known.is_of_points(&of_pair(one)))
    };
    let has_published = results
        .comparisons
        .iter()
        .any(|one| published(one).is_some());
    let mut head = vec!["better by", "95 % interval"];
    head.extend(has_published.then_some("published"));
    head.extend(["", "", "at"]);
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
    for one in &results.comparisons {
        let percent = |value: f64| format!("{value:.1} %");
        let mut row = vec![
            one.improvement_percent.map_or(String::new(), percent),
            interval(one.deterministic, one.sure_interval(), |percent| {
                format!("{percent:.1}")
            }),
        ];
        if has_published {
            row.push(published(one).map_or(String::new(), percent));
        }
        row.extend([
            format!("{} against {}", one.a, one.b),
            format!("{} of {}", one.statistic.name(), one.metric),
            words(&one.parameters),
        ]);
        rows.push(row);
    }
    rows
}

/// Published values of other metrics, and those that stand for several points, once each.
fn others(results: &Results, metric: &str, known: &Known) -> Vec<Vec<String>> {
    let mut found: Vec<Other> = Vec::new();
    let mut add = |other: Other| match found.iter_mut().find(|one| one.is_same(&other)) {
        Some(one) => one.here.extend(other.here),
        None => found.push(other),
    };
    for value in &results.published {
        let name = of_value(value);
        if value.metric == metric && known.is_of_points(&name) {
            continue;
        }
        let is_it = |cell: &&CellResult| {
            cell.variant == value.variant && cell.parameters == value.parameters
        };
        let cell = results.cells.iter().find(is_it);
        let summary = cell.and_then(|cell| cell.metrics.get(&value.metric));
        add(Other {
            published: units::number(value.value),
            here: summary
                .and_then(|summary| value.statistic.of(summary))
                .into_iter()
                .collect(),
            unit: "",
            who: value.variant.clone(),
            what: format!("{} of {}", value.statistic.name(), value.metric),
            place: known.place(&name, &value.parameters),
        });
    }
    for one in &results.comparisons {
        let name = of_pair(one);
        let Some(percent) = one.published_percent.filter(|_| !known.is_of_points(&name)) else {
            continue;
        };
        add(Other {
            published: format!("{percent:.1} %"),
            here: one.improvement_percent.into_iter().collect(),
            unit: " %",
            who: format!("{} against {}", one.a, one.b),
            what: format!("{} of {}", one.statistic.name(), one.metric),
            place: known.place(&name, &one.parameters),
        });
    }
    found.into_iter().map(Other::row).collect()
}

/// A published value that no row of a cell or of a comparison shows.
struct Other {
    published: String,
    /// The measurements at its points.
    here: Vec<f64>,
    unit: &'static str,
    who: String,
    what: String,
    place: String,
}

impl Other {
    fn is_same(&self, other: &Self) -> bool {
        (&self.who, &self.what, &self.place) == (&other.who, &other.what, &other.place)
    }

    fn row(self) -> Vec<String> {
        let low = self.here.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.here.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let here = match self.here.len() {
            0 => "not measured".to_owned(),
            1 => format!("{}{}", units::number(low), self.unit),
            _ => format!(
                "{} to {}{}",
                units::number(low),
                units::number(high),
                self.unit
            ),
        };
        vec![self.published, here, self.who, self.what, self.place]
    }
}

/// Prints claims that do not hold on standard error: they are findings, not failures.
pub(crate) fn warn(results: &Results) {
    for must in results.must.iter().filter(|must| !must.holds) {
        errln!("{}: {}: {}", must.verdict, must.text, must.tally());
    }
}

/// An interval, or that there is none because nothing is random.
fn interval(deterministic: bool, ends: Option<[f64; 2]>, text: impl Fn(f64) -> String) -> String {
    match ends {
        _ if deterministic => "deterministic".to_owned(),
        Some([low, high]) => format!("{} to {}", text(low), text(high)),
        None => String::new(),
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
