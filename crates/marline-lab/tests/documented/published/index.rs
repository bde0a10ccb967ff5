//! The published numbers, and the index that says where ours are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use marline_lab::scenario::Value;
use marline_lab::stats::Statistic;
use serde::Deserialize;

use super::super::excerpt::{Measure, Pair, Wanted};
use super::super::root;
use super::flows::OfConfusion;

/// The index of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    /// The paper as it is cited.
    paper: String,
    /// Cells in words.
    #[serde(default)]
    words: BTreeMap<String, String>,
    #[serde(rename = "table")]
    tables: Vec<TableIndex>,
}

/// Some rows of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableIndex {
    file: String,
    /// The figure, table or section of the paper.
    place: String,
    /// The cells that rows have; all rows without it.
    #[serde(default)]
    rows: BTreeMap<String, OneOf>,
    /// Columns that are settings of the paper, or its keys.
    #[serde(default)]
    settings: Vec<String>,
    #[serde(default, rename = "number")]
    numbers: Vec<Entry>,
}

/// One cell, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOf {
    One(String),
    Any(Vec<String>),
}

impl OneOf {
    fn has(&self, cell: &str) -> bool {
        match self {
            Self::One(one) => one == cell,
            Self::Any(any) => any.iter().any(|one| one == cell),
        }
    }
}

/// A column of numbers: where ours are, and how the verdict is reached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The column of the table; none of choices.
    #[serde(default)]
    pub(crate) column: String,
    pub(crate) quantity: String,
    #[serde(default)]
    pub(crate) unit: String,
    /// The ID of the experiment.
    pub(crate) results: Option<String>,
    pub(crate) variant: Option<String>,
    pub(crate) metric: Option<String>,
    pub(crate) statistic: Option<Statistic>,
    /// The points; several, if it does not select one.
    #[serde(default, rename = "where")]
    pub(crate) place: BTreeMap<String, Value>,
    /// The variant against which ours is an improvement in percent.
    pub(crate) gain_over: Option<String>,
    /// The variant against which ours is an increase in percent.
    pub(crate) increase_over: Option<String>,
    /// The variant by which ours is divided.
    pub(crate) divided_by: Option<String>,
    /// The metric by which ours is divided.
    pub(crate) divided_by_metric: Option<String>,
    /// The statistic by which ours is divided.
    pub(crate) divided_by_statistic: Option<Statistic>,
    /// The points from which ours is an increase in percent, or, with `divided_by`, a growth as a multiple of the other's
    /// growth; as many as those of `where`.
    #[serde(default)]
    pub(crate) increase_from: BTreeMap<String, Value>,
    /// The points whose values are subtracted, as many as those of `where`.
    #[serde(default)]
    pub(crate) less_where: BTreeMap<String, Value>,
    /// The variant whose value is subtracted.
    pub(crate) less_variant: Option<String>,
    /// The metric whose value is subtracted.
    pub(crate) less_metric: Option<String>,
    /// The metric with which ours is the correlation.
    pub(crate) correlated_with: Option<String>,
    /// The variant than which ours is faster at a share of the points, which is the number in percent.
    pub(crate) share_ahead_of: Option<String>,
    /// The variant of whose points that share counts the quarter with the longest times.
    pub(crate) slowest_of: Option<String>,
    /// Whether the value does not vary between runs, so that it is its own interval.
    #[serde(default)]
    pub(crate) exact: bool,
    /// Whether it is the mean over the points.
    #[serde(default)]
    pub(crate) averaged: bool,
    /// Whether it is the mean of what it is at each point, rather than of means over the points.
    #[serde(default)]
    pub(crate) mean_of_each: bool,
    /// The factor from the unit of the results to that of the paper.
    pub(crate) scale: Option<f64>,
    /// The claim whose verdict counts.
    pub(crate) claim: Option<String>,
    /// A file of results of the flow analysis.
    pub(crate) file: Option<String>,
    /// A JSON pointer into it.
    pub(crate) pointer: Option<String>,
    /// The text of which ours is the share in percent among the values of `pointer`, which has a `*` in it.
    pub(crate) is: Option<String>,
    /// The bound, instead of a text.
    pub(crate) above: Option<f64>,
    /// Another, against which ours is an increase in percent.
    pub(crate) against: Option<String>,
    /// Another, which is subtracted.
    pub(crate) less: Option<String>,
    /// The bounds between which ours is the share in percent of the observations whose quantiles are at `pointer`, and
    /// whose number is at `share_of`.
    pub(crate) between: Option<[f64; 2]>,
    /// The statistic of the table of confusion at `confusion` that ours is.
    pub(crate) of_confusion: Option<OfConfusion>,
    /// A pointer to a table of confusion.
    pub(crate) confusion: Option<String>,
    /// A pointer to the interval.
    pub(crate) interval: Option<String>,
    /// A pointer to the interval of what is subtracted.
    pub(crate) less_interval: Option<String>,
    /// A pointer to the number of observations of which ours is the share in percent.
    pub(crate) share_of: Option<String>,
    /// A pointer to the table of confusion of whose errors ours is the share in percent.
    pub(crate) among_errors_of: Option<String>,
    /// A pointer to the number of observations of which ours is a correlation.
    pub(crate) correlation_of: Option<String>,
    /// The command that writes the file.
    pub(crate) command: Option<String>,
    #[serde(default)]
    pub(crate) rule: Rule,
    /// The number of a statement that is published without one.
    pub(crate) bound: Option<f64>,
    /// The tolerance in the unit of the paper; 10 % of the published number without it.
    pub(crate) tolerance: Option<f64>,
    pub(crate) not_comparable: Option<String>,
    pub(crate) not_reproduced: Option<String>,
    pub(crate) not_run: Option<String>,
    /// A remark for readers.
    pub(crate) note: Option<String>,
}

/// The condition on ours for a number to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    /// The number, within the tolerance.
    #[default]
    Near,
    /// At least the number.
    AtLeast,
    /// More than the number.
    MoreThan,
    /// At most the number.
    AtMost,
}

/// A published number, or a statement.
#[derive(Debug)]
pub(crate) struct Number {
    /// The paper's number, such as `000`.
    pub(crate) paper: String,
    /// The paper as it is cited.
    pub(crate) title: String,
    pub(crate) place: String,
    pub(crate) quantity: String,
    /// As it is published.
    pub(crate) text: String,
    /// Whether the paper has it as an approximation.
    pub(crate) is_about: bool,
    pub(crate) unit: String,
    pub(crate) ours: Entry,
}

/// The papers' numbers in the order of their indexes.
///
/// # Panics
/// If a cell of a table is neither a number of an index nor one of its settings, or is both.
pub(crate) fn numbers() -> Vec<Number> {
    let directory = root().join("experiments/published");
    let mut paths = files(&directory.join("index"), "toml");
    paths.sort();
    let mut numbers = Vec::new();
    let mut seen = BTreeMap::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let index: Index =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let paper = path.file_stem().unwrap().to_string_lossy().into_owned();
        for table in &index.tables {
            let rows = rows(&directory.join(&table.file));
            let known: &mut BTreeSet<(usize, String)> = seen.entry(table.file.clone()).or_default();
            let selected: Vec<_> = table.of(&rows).collect();
            assert!(!selected.is_empty(), "{paper}: no row for {table:?}");
            for (at, row) in selected {
                for column in &table.settings {
                    assert!(row.contains_key(column), "{}: no {column}", table.file);
                    known.insert((at, column.clone()));
                }
                for number in &table.numbers {
                    let name = &number.column;
                    let cell = row.get(name);
                    let cell = cell.unwrap_or_else(|| panic!("{}: no {name}", table.file));
                    if cell.is_empty() {
                        continue;
                    }
                    let is_new = known.insert((at, name.clone()));
                    assert!(
                        is_new,
                        "{}, row {at}: {name} is twice in the index",
                        table.file
                    );
                    numbers.push(number.of(&paper, &index, table, row));
                }
            }
        }
    }
    let mut unknown = Vec::new();
    for path in files(&directory, "csv") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let known = seen.remove(&name).unwrap_or_default();
        for (at, row) in rows(&path).iter().enumerate() {
            let numbers = row.iter().filter(|(_, cell)| cell.parse::<f64>().is_ok());
            let others = numbers.filter(|(column, _)| !known.contains(&(at, (*column).clone())));
            unknown.extend(others.map(|(column, cell)| format!("{name}: {column} = {cell}")));
        }
    }
    assert!(
        unknown.is_empty(),
        "neither numbers of an index nor settings:\n{}",
        unknown.join("\n")
    );
    numbers
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == extension))
        .collect()
}

type Row = BTreeMap<String, String>;

fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_path(path)
        .unwrap();
    let columns = reader.headers().unwrap().clone();
    let records = reader.records().map(|record| {
        let record = record.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let cells = columns.iter().zip(&record);
        cells
            .map(|(name, cell)| (name.to_owned(), cell.to_owned()))
            .collect()
    });
    records.collect()
}

impl TableIndex {
    fn of<'a>(&'a self, rows: &'a [Row]) -> impl Iterator<Item = (usize, &'a Row)> {
        rows.iter().enumerate().filter(|(_, row)| {
            self.rows
                .iter()
                .all(|(column, cells)| row.get(column).is_some_and(|cell| cells.has(cell)))
        })
    }
}

impl Entry {
    fn of(&self, paper: &str, index: &Index, table: &TableIndex, row: &Row) -> Number {
        let words = |text: &str| {
            fill(text, row, |cell| match index.words.get(cell) {
                Some(words) => words.clone(),
                None => cell.replace('_', " "),
            })
        };
        let mut ours = self.clone();
        let texts = [
            &mut ours.results,
            &mut ours.variant,
            &mut ours.metric,
            &mut ours.gain_over,
            &mut ours.increase_over,
            &mut ours.divided_by,
            &mut ours.pointer,
            &mut ours.against,
            &mut ours.interval,
            &mut ours.share_of,
        ];
        for text in texts.into_iter().flatten() {
            *text = fill(text, row, str::to_owned);
        }
        let places = [
            &mut ours.place,
            &mut ours.increase_from,
            &mut ours.less_where,
        ];
        for value in places.into_iter().flat_map(BTreeMap::values_mut) {
            if let Value::String(text) = value {
                *text = fill(text, row, str::to_owned);
            }
        }
        let is_about = ["approx".to_owned(), approx_of(&self.column)]
            .iter()
            .any(|name| row.get(name).is_some_and(|cell| cell == "true"));
        let text = row[&self.column].clone();
        if let Ok(published) = text.parse::<f64>() {
            ours.rule = ours.rule.of_number(published);
            if is_about || published == 0.0 {
                ours.tolerance.get_or_insert(NOTHING);
            }
        }
        Number {
            paper: paper.to_owned(),
            title: index.paper.clone(),
            place: words(&table.place),
            quantity: words(&self.quantity),
            text,
            is_about,
            unit: words(&self.unit),
            ours,
        }
    }
}

impl Rule {
    /// The rule for a number that is published itself. A larger gain contradicts that there is none, or a loss.
    fn of_number(self, published: f64) -> Self {
        match self {
            Self::AtLeast if published <= 0.0 => Self::Near,
            rule => rule,
        }
    }
}

/// Ours is as a published gain of none, or of "about 0 %", within this, in points.
const NOTHING: f64 = 3.0;

#[test]
fn a_larger_gain_contradicts_that_there_is_none() {
    assert_eq!(Rule::AtLeast.of_number(0.0), Rule::Near);
    assert_eq!(Rule::AtLeast.of_number(-20.8), Rule::Near);
    assert_eq!(Rule::AtLeast.of_number(7.5), Rule::AtLeast);
    assert_eq!(Rule::AtMost.of_number(0.0), Rule::AtMost);
}

/// The column that says whether the number in `column` is about 0.
fn approx_of(column: &str) -> String {
    match column.strip_suffix("_percent") {
        Some(name) => format!("{name}_approx"),
        None => String::new(),
    }
}

fn fill(text: &str, row: &Row, words: impl Fn(&str) -> String) -> String {
    let mut text = text.to_owned();
    for (name, cell) in row {
        let mark = format!("{{{name}}}");
        if text.contains(&mark) {
            text = text.replace(&mark, &words(cell));
        }
    }
    assert!(!text.contains('{'), "no column for {text}");
    text
}

impl Entry {
    /// The statistic of the metric, by default the median.
    pub(crate) fn statistic(&self) -> Statistic {
        self.statistic.unwrap_or(Statistic::Median)
    }

    /// The variants of whose values ours is made.
    fn variants(&self) -> impl Iterator<Item = &String> {
        let others = [
            &self.gain_over,
            &self.increase_over,
            &self.divided_by,
            &self.less_variant,
            &self.share_ahead_of,
            &self.slowest_of,
        ];
        self.variant.iter().chain(others.into_iter().flatten())
    }

    fn measure(&self, variant: &str, metric: &str, statistic: Statistic) -> Measure {
        Measure {
            variant: variant.to_owned(),
            metric: metric.to_owned(),
            statistic,
        }
    }

    /// The comparison of which ours is the improvement. An increase is one where more is better.
    pub(crate) fn pair(&self) -> Option<Pair> {
        let metric = self.metric.clone()?;
        let increase = self.increase_over.clone();
        let increase = increase.filter(|_| metric.ends_with("mbps"));
        Some(Pair {
            a: self.variant.clone()?,
            b: self.gain_over.clone().or(increase)?,
            metric,
            statistic: self.statistic(),
        })
    }

    /// The two metrics of a variant whose correlation is ours.
    pub(crate) fn correlation(&self) -> Option<String> {
        let variant = self.variant.as_ref()?;
        Some(format!("{variant}, {}", self.correlated_with.as_ref()?))
    }

    /// Adds what is needed from the results.
    pub(crate) fn add_to(&self, wanted: &mut Wanted) {
        if let Some(correlation) = self.correlation() {
            wanted.variants.extend(self.variant.clone());
            wanted.correlations.insert(correlation);
            return;
        }
        wanted.gains.extend(self.pair());
        if let Some(metric) = &self.less_metric {
            wanted.gains.extend(self.pair().map(|pair| Pair {
                metric: metric.clone(),
                ..pair
            }));
        }
        let others = self.divided_by_metric.iter().chain(&self.less_metric);
        let metrics = self.metric.iter().chain(others);
        let mut statistics = vec![self.statistic()];
        statistics.extend(self.divided_by_statistic);
        for metric in metrics {
            for &statistic in &statistics {
                wanted.metrics.insert((metric.clone(), statistic));
                for variant in self.variants() {
                    wanted.variants.insert(variant.clone());
                    let measure = self.measure(variant, metric, statistic);
                    wanted.intervals.insert(measure);
                }
            }
        }
    }
}
