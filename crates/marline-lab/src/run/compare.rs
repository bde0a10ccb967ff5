//! The changes between two sets of results.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::differences::{SettingDifference, differences};
use super::must::at;
use super::{CellResult, MustResult, Results, RunFailure};
use crate::scenario::Value;
use crate::stats::{Interval, Summary};

/// The changes between two sets of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// The experiments, if they differ by name, else one.
    pub experiment: String,
    /// The main metric of the first results.
    pub main_metric: Option<String>,
    /// Whether every run has exactly the same metrics.
    pub identical: bool,
    /// The settings in which they differ.
    pub settings: Vec<SettingDifference>,
    /// Every metric of every cell that is in both.
    pub changes: Vec<Change>,
    /// Cells that are only in the first, as variant and parameters.
    pub only_in_a: Vec<String>,
    /// Cells that are only in the second.
    pub only_in_b: Vec<String>,
    /// The claims of either, with their verdicts.
    pub must: Vec<MustChange>,
}

/// The verdicts on a claim, before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MustChange {
    /// The claim, as text.
    pub text: String,
    /// The verdict of the first results; `None` if they do not have the claim.
    pub a: Option<MustResult>,
    /// The verdict of the second results; `None` if they do not have the claim.
    pub b: Option<MustResult>,
}

/// A metric of a cell, before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The variant.
    pub variant: String,
    /// The point.
    pub parameters: BTreeMap<String, Value>,
    /// The name of the metric.
    pub metric: String,
    /// The first median.
    pub a: f64,
    /// Its 95 % confidence interval.
    pub a_ci95: Option<Interval>,
    /// The second median.
    pub b: f64,
    /// Its 95 % confidence interval.
    pub b_ci95: Option<Interval>,
    /// The difference of the second, in percent of the first; `None` if that is 0.
    pub change_percent: Option<f64>,
    /// Whether the median changed: the confidence intervals do not overlap.
    pub apart: bool,
}

/// The changes from the results in directory `a` to those in `b`.
///
/// # Errors
/// Either cannot be read, or they are of different experiments and have no median in common.
pub fn compare(a: &Path, b: &Path) -> Result<Changes, RunFailure> {
    let (a, b) = (Results::read(a)?, Results::read(b)?);
    let mut changes = Vec::new();
    for cell in &a.cells {
        if let Some(other) = find(&b, cell) {
            changes.extend(cell.metrics.iter().filter_map(|(metric, before)| {
                let after = other.metrics.get(metric)?;
                let (a, b) = (before.median?, after.median?);
                let change = 100.0 * (b / a - 1.0);
                let (a_ci95, b_ci95) = (interval(cell, before), interval(other, after));
                Some(Change {
                    variant: cell.variant.clone(),
                    parameters: cell.parameters.clone(),
                    metric: metric.clone(),
                    a,
                    a_ci95,
                    b,
                    b_ci95,
                    change_percent: change.is_finite().then_some(change),
                    apart: match (a_ci95, b_ci95) {
                        (Some(a), Some(b)) => a[1] < b[0] || b[1] < a[0],
                        _ => false,
                    },
                })
            }));
        }
    }
    if changes.is_empty() && a.experiment != b.experiment {
        return Err(RunFailure::NothingInCommon {
            first: a.experiment,
            second: b.experiment,
        });
    }
    let only = |these: &Results, those: &Results| {
        let cells = these
            .cells
            .iter()
            .filter(|cell| find(those, cell).is_none());
        cells
            .map(|cell| name(&cell.variant, &cell.parameters))
            .collect()
    };
    Ok(Changes {
        experiment: if a.experiment == b.experiment {
            a.experiment.clone()
        } else {
            format!("{}, {}", a.experiment, b.experiment)
        },
        main_metric: a.metrics.first().cloned(),
        identical: a.digest == b.digest,
        settings: differences(&a, &b),
        only_in_a: only(&a, &b),
        only_in_b: only(&b, &a),
        must: musts(&a, &b),
        changes,
    })
}

/// The interval of the median; that of an exact one is the value alone.
fn interval(cell: &CellResult, summary: &Summary) -> Option<Interval> {
    match cell.deterministic {
        true => summary.median.map(|exact| [exact; 2]),
        false => summary.sure_interval(),
    }
}

/// The claims of the first results, then those that only the second have.
fn musts(a: &Results, b: &Results) -> Vec<MustChange> {
    let find = |results: &Results, text: &str| {
        let mut musts = results.must.iter();
        musts.find(|must| must.text == text).cloned()
    };
    let mut texts: Vec<&str> = Vec::new();
    for must in a.must.iter().chain(&b.must) {
        if !texts.contains(&must.text.as_str()) {
            texts.push(&must.text);
        }
    }
    let change = |text: &str| MustChange {
        text: text.to_owned(),
        a: find(a, text),
        b: find(b, text),
    };
    texts.into_iter().map(change).collect()
}

fn find<'a>(results: &'a Results, cell: &CellResult) -> Option<&'a CellResult> {
    results
        .cells
        .iter()
        .find(|other| other.variant == cell.variant && other.parameters == cell.parameters)
}

fn name(variant: &str, parameters: &BTreeMap<String, Value>) -> String {
    match at(parameters).as_str() {
        "" => variant.to_owned(),
        at => format!("{variant} {at}"),
    }
}

/// A median, and the interval in which it lies.
fn with_interval(median: f64, interval: Option<Interval>) -> String {
    match interval {
        Some([from, to]) => {
            let [median, from, to] = [median, from, to].map(significant);
            format!("{median} [{from}, {to}]")
        }
        None => significant(median).to_string(),
    }
}

/// `value` with four significant digits.
fn significant(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// A change in percent, with a decimal if that makes at most four digits.
fn signed(percent: f64) -> String {
    let percent = significant((percent * 10.0).round() / 10.0);
    format!("{percent:+} %")
}

/// The settings that differ, and a table for a terminal; medians that changed are marked with `*`.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.identical {
            writeln!(f, "{}: every run is the same", self.experiment)?;
            self.settings(f)?;
            return self.musts(f);
        }
        self.settings(f)?;
        self.answer(f)?;
        let head = ["cell", "metric", "before", "after", "change", ""].map(str::to_owned);
        let mut rows = vec![head];
        rows.extend(self.changes.iter().map(|change| {
            let percent = change.change_percent;
            [
                name(&change.variant, &change.parameters),
                change.metric.clone(),
                with_interval(change.a, change.a_ci95),
                with_interval(change.b, change.b_ci95),
                percent.map_or_else(String::new, signed),
                if change.apart { "*" } else { "" }.to_owned(),
            ]
        }));
        let mut widths = [0; 6];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for [cell, metric, before, after, change, mark] in &rows {
            let [first, second, third, fourth, fifth, _] = widths;
            let line = format!(
                "{cell:first$}  {metric:second$}  {before:>third$}  {after:>fourth$}  \
                 {change:>fifth$}  {mark}"
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        if self.changes.iter().any(|change| change.a_ci95.is_some()) {
            let legend =
                "medians [95 % confidence intervals]; *: changed, the intervals do not overlap";
            writeln!(f, "{legend}")?;
        }
        for (cells, which) in [(&self.only_in_a, "first"), (&self.only_in_b, "second")] {
            for cell in cells {
                writeln!(f, "{cell}  only in the {which}")?;
            }
        }
        self.musts(f)
    }
}

impl Changes {
    /// The number of medians that changed, and the largest change: of the main metric, if any of it
    /// changed.
    fn answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let apart = || self.changes.iter().filter(|change| change.apart);
        let size = |change: &Change| change.change_percent.map_or(0.0, f64::abs);
        let is_main = |change: &Change| self.main_metric.as_ref() == Some(&change.metric);
        let (count, total) = (apart().count(), self.changes.len());
        let most = apart().max_by(|a, b| {
            let by_size = size(a).total_cmp(&size(b));
            is_main(a).cmp(&is_main(b)).then(by_size)
        });
        let is_known = |change: &&Change| change.a_ci95.is_some() && change.b_ci95.is_some();
        if total > 0 && !self.changes.iter().any(|change| is_known(&change)) {
            return writeln!(
                f,
                "too few runs to tell whether a median changed: repeat each cell, at best 30 times, with --repeats"
            );
        }
        match most {
            None => writeln!(
                f,
                "none of {total} medians changed: no two 95 % confidence intervals are apart"
            ),
            Some(most) => writeln!(
                f,
                "{count} of {total} medians changed (their 95 % confidence intervals do not overlap), the most {} of {}: {}",
                most.metric,
                name(&most.variant, &most.parameters),
                most.change_percent
                    .map_or_else(|| "from 0".to_owned(), signed)
            ),
        }
    }

    /// A line for each setting that differs.
    fn settings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.settings {
            writeln!(f, "{difference}")?;
        }
        Ok(())
    }

    /// A line for each verdict.
    fn musts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |must: &Option<MustResult>| match must {
            Some(must) => format!("{} ({} of {})", must.verdict, must.met, must.of),
            None => "no such claim".to_owned(),
        };
        for MustChange { text, a, b } in &self.must {
            let (before, after) = (words(a), words(b));
            match before == after {
                true => writeln!(f, "{text}: {after}, as before")?,
                false => writeln!(f, "{text}: {before} before, {after} now")?,
            }
        }
        Ok(())
    }
}
