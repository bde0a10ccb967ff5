//! Tables of results.

use std::collections::{BTreeMap, BTreeSet};

use marline_lab::run::Verdict;
use marline_lab::scenario::Value;
use marline_lab::stats::Statistic;
use serde::Deserialize;

use super::excerpt::{Excerpt, Measure, Pair, Wanted};

/// A table: a row for each variant, then one for each `row`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// The ID of the experiment.
    pub(crate) results: String,
    #[serde(default)]
    rows: Vec<String>,
    #[serde(default, rename = "row")]
    named: Vec<NamedRow>,
    #[serde(rename = "column")]
    columns: Vec<Column>,
    /// The condition on points for every column.
    #[serde(default, rename = "where")]
    place: BTreeMap<String, Value>,
}

/// A row of a variant at some points.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedRow {
    name: String,
    variant: String,
    #[serde(default, rename = "where")]
    place: BTreeMap<String, Value>,
}

/// A column of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    metric: String,
    #[serde(default = "median")]
    statistic: Statistic,
    #[serde(default)]
    unit: Unit,
    /// The variant whose value it shows, if not the row's.
    #[serde(default)]
    variant: Option<String>,
    #[serde(default, rename = "where")]
    place: BTreeMap<String, Value>,
    /// The quantity that it shows instead of the values.
    #[serde(default)]
    of: Option<Of>,
}

const fn median() -> Statistic {
    Statistic::Median
}

/// Units, in which a value is shown with three digits.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) enum Unit {
    /// As it is measured.
    #[default]
    #[serde(rename = "")]
    Plain,
    #[serde(rename = "s")]
    Seconds,
    /// Of seconds.
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "Mb/s")]
    Megabits,
    /// Of bytes.
    #[serde(rename = "kB")]
    Kilobytes,
    /// Of a share.
    #[serde(rename = "%")]
    Percent,
}

/// A quantity over the values at several points, of a metric whose smaller values are better.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Of {
    /// The percentage of points at which it is better than this variant.
    BetterThan(String),
    /// The median over the points of its ratio to this variant.
    RatioTo(String),
    /// Its ratios to this variant, from the smallest to the largest.
    RatiosTo(String),
    /// The percentages by which it is less than this variant, from the smallest to the largest.
    LessThan(String),
    /// The percentages by which it is more than this variant, from the smallest to the largest.
    MoreThan(String),
    /// The number of points at which the better of these variants takes less than this part of its
    /// time.
    SlowerThan { best: Vec<String>, times: f64 },
    /// The smallest part of its time that the better of these variants takes.
    Worst { best: Vec<String> },
    /// The ratio of the statistic to the median.
    Spread,
    /// The median over the points of its ratio to this metric, which all variants have.
    RatioToMetric(String),
    /// The harm that it does to a flow whose throughput this is, over the points.
    Harm {
        /// The variant in which the flow is alone.
        alone: String,
        /// The variant in which it competes with one of its own kind.
        own_kind: String,
        shown: Shown,
    },
    /// The improvement over this variant at one point, with its 95 % interval. The experiment has to compare them.
    GainOver(String),
    /// The paper's value at one point.
    Published,
    /// The paper's improvement over this variant at one point.
    PublishedGainOver(String),
}

/// The quantity that is shown of the harm at several points: the flow's loss of throughput, as a multiple of its loss
/// when it competes with one of its own kind.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shown {
    Median,
    Largest,
    /// The number of points at which it is above this.
    Above(f64),
}

/// A value in a sentence: the cell of a table of one row and one column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Single {
    /// The ID of the experiment.
    pub(crate) results: String,
    variant: String,
    #[serde(default = "completion")]
    metric: String,
    #[serde(default = "median")]
    statistic: Statistic,
    #[serde(default)]
    unit: Unit,
    #[serde(default, rename = "where")]
    place: BTreeMap<String, Value>,
    #[serde(default)]
    of: Option<Of>,
}

fn completion() -> String {
    "completion_s".to_owned()
}

impl Single {
    fn column(&self) -> Column {
        Column {
            name: self.variant.clone(),
            metric: self.metric.clone(),
            statistic: self.statistic,
            unit: self.unit,
            variant: None,
            place: BTreeMap::new(),
            of: self.of.clone(),
        }
    }

    /// Adds what it shows.
    pub(crate) fn add_to(&self, wanted: &mut Wanted) {
        let table = Table {
            results: self.results.clone(),
            rows: vec![self.variant.clone()],
            named: Vec::new(),
            columns: vec![self.column()],
            place: self.place.clone(),
        };
        table.add_to(wanted);
    }

    pub(crate) fn text(&self, excerpt: &Excerpt) -> String {
        let points = excerpt.select(&self.place);
        self.column().text(excerpt, &self.variant, &points)
    }
}

impl Table {
    /// Adds what it shows.
    pub(crate) fn add_to(&self, wanted: &mut Wanted) {
        let rows = self.rows();
        for column in &self.columns {
            let mut metrics = vec![column.statistic];
            let shown: BTreeSet<_> = rows.iter().map(|row| column.variant(row)).collect();
            wanted
                .variants
                .extend(shown.iter().map(|&variant| variant.to_owned()));
            match &column.of {
                None => {}
                Some(
                    Of::BetterThan(other)
                    | Of::RatioTo(other)
                    | Of::RatiosTo(other)
                    | Of::LessThan(other)
                    | Of::MoreThan(other),
                ) => {
                    wanted.variants.insert(other.clone());
                }
                Some(Of::SlowerThan { best, .. } | Of::Worst { best }) => {
                    wanted.variants.extend(best.iter().cloned());
                }
                Some(Of::Spread) => metrics.push(Statistic::Median),
                Some(Of::RatioToMetric(other)) => {
                    wanted.metrics.insert((other.clone(), Statistic::Median));
                }
                Some(Of::Harm {
                    alone, own_kind, ..
                }) => {
                    wanted.variants.extend([alone.clone(), own_kind.clone()]);
                }
                Some(Of::GainOver(other)) => {
                    wanted.gains.extend(column.pairs(&shown, other));
                    continue;
                }
                Some(Of::PublishedGainOver(other)) => {
                    wanted.published_gains.extend(column.pairs(&shown, other));
                    continue;
                }
                Some(Of::Published) => {
                    let measures = shown.iter().map(|variant| column.measure(variant));
                    wanted.published.extend(measures);
                    continue;
                }
            }
            for statistic in metrics {
                wanted.metrics.insert((column.metric.clone(), statistic));
            }
        }
    }

    /// All rows: those of variants, then the others.
    fn rows(&self) -> Vec<NamedRow> {
        let variants = self.rows.iter().map(|variant| NamedRow {
            name: format!("`{variant}`"),
            variant: variant.clone(),
            place: BTreeMap::new(),
        });
        variants.chain(self.named.iter().cloned()).collect()
    }

    /// The table in Markdown.
    pub(crate) fn text(&self, excerpt: &Excerpt) -> String {
        let names = self.columns.iter().map(|column| column.name.as_str());
        let mut text = line(std::iter::once("").chain(names));
        text += &line(std::iter::once("---").chain(self.columns.iter().map(|_| "---:")));
        for row in &self.rows() {
            let cells = self.columns.iter().map(|column| {
                let mut place = self.place.clone();
                place.extend(row.place.clone());
                place.extend(column.place.clone());
                column.text(excerpt, column.variant(row), &excerpt.select(&place))
            });
            let cells: Vec<_> = std::iter::once(row.name.clone()).chain(cells).collect();
            text += &line(cells.iter().map(String::as_str));
        }
        text
    }
}

pub(crate) fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<_> = cells.collect();
    format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |")
}

impl Column {
    fn variant<'a>(&'a self, row: &'a NamedRow) -> &'a str {
        self.variant.as_deref().unwrap_or(&row.variant)
    }

    fn pair(&self, variant: &str, other: &str) -> Pair {
        Pair {
            a: variant.to_owned(),
            b: other.to_owned(),
            metric: self.metric.clone(),
            statistic: self.statistic,
        }
    }

    /// The point for columns that need exactly one.
    fn one(&self, points: &[usize]) -> usize {
        let [point] = points else {
            panic!(
                "{} is shown at one point, not at {}",
                self.name,
                points.len()
            );
        };
        *point
    }

    /// The comparisons of variants that it shows with another.
    fn pairs(&self, shown: &BTreeSet<&str>, other: &str) -> Vec<Pair> {
        let others = shown.iter().filter(|&&variant| variant != other);
        others.map(|variant| self.pair(variant, other)).collect()
    }

    fn measure(&self, variant: &str) -> Measure {
        Measure {
            variant: variant.to_owned(),
            metric: self.metric.clone(),
            statistic: self.statistic,
        }
    }

    fn text(&self, excerpt: &Excerpt, row: &str, points: &[usize]) -> String {
        let value = |variant: &str, point: usize| {
            excerpt.value(variant, &self.metric, self.statistic, point)
        };
        let best = |best: &[String], point: usize| {
            let values = best.iter().map(|variant| value(variant, point));
            values.fold(f64::INFINITY, f64::min)
        };
        let over = |what: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let mut values: Vec<_> = points.iter().map(|&point| what(point)).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        match &self.of {
            None => {
                let values = over(&|point| value(row, point));
                range(&values, |value| self.unit.text(value)) + self.unit.name()
            }
            Some(Of::BetterThan(other) | Of::GainOver(other)) if other == row => String::new(),
            Some(Of::Published) => {
                let published = excerpt.published(&self.measure(row), self.one(points));
                let text = |value| format!("{}{}", self.unit.text(value), self.unit.name());
                published.map(text).unwrap_or_default()
            }
            Some(Of::PublishedGainOver(other)) => {
                let published = excerpt.published_gain(&self.pair(row, other), self.one(points));
                let text = |percent: f64| format!("{:.0} %", percent.round()).replace('-', "−");
                published.map(text).unwrap_or_default()
            }
            Some(Of::GainOver(other)) => {
                // Adding 0 turns -0 into 0.
                let rounded = excerpt
                    .gain(&self.pair(row, other), self.one(points))
                    .map(|percent| percent.round() + 0.0);
                let [percent, low, high] = rounded;
                format!("{percent:.0} % ({low:.0} to {high:.0})").replace('-', "−")
            }
            Some(Of::BetterThan(other)) => {
                let is_better = |point: &&usize| value(row, **point) < value(other, **point);
                let better = points.iter().filter(is_better).count();
                format!("{:.0} %", 100.0 * better as f64 / points.len() as f64)
            }
            Some(Of::RatioTo(other)) => {
                let ratios = over(&|point| value(row, point) / value(other, point));
                format!("{:.2}", middle(&ratios))
            }
            Some(Of::RatiosTo(other)) => range(
                &over(&|point| value(row, point) / value(other, point)),
                |ratio| format!("{ratio:.2}"),
            ),
            Some(Of::LessThan(other)) => percentages(&over(&|point| {
                100.0 * (1.0 - value(row, point) / value(other, point))
            })),
            Some(Of::MoreThan(other)) => percentages(&over(&|point| {
                100.0 * (value(row, point) / value(other, point) - 1.0)
            })),
            Some(Of::RatioToMetric(other)) => {
                let other = |point| excerpt.value(row, other, Statistic::Median, point);
                let ratios = over(&|point| value(row, point) / other(point));
                format!("{:.2}", middle(&ratios))
            }
            Some(Of::Harm {
                alone,
                own_kind,
                shown,
            }) => {
                let harm = over(&|point| {
                    let alone = value(alone, point);
                    (alone - value(row, point)) / (alone - value(own_kind, point))
                });
                match shown {
                    Shown::Median => format!("{:.2}", middle(&harm)),
                    Shown::Largest => format!("{:.2}", harm[harm.len() - 1]),
                    Shown::Above(most) => {
                        let above = harm.iter().filter(|&harm| harm > most).count();
                        format!("{above} of {}", harm.len())
                    }
                }
            }
            Some(Of::SlowerThan { best: of, times }) => {
                let is_slower = |point: &&usize| best(of, **point) < times * value(row, **point);
                let slower = points.iter().filter(is_slower).count();
                format!("{slower} of {}", points.len())
            }
            Some(Of::Worst { best: of }) => {
                let ratios = over(&|point| best(of, point) / value(row, point));
                format!("{:.2}", ratios[0])
            }
            Some(Of::Spread) => {
                let median = |point| excerpt.value(row, &self.metric, Statistic::Median, point);
                let ratios = over(&|point| value(row, point) / median(point));
                range(&ratios, |ratio| format!("{ratio:.1}"))
            }
        }
    }
}

/// The smallest and the largest of sorted values.
fn range(values: &[f64], text: impl Fn(f64) -> String) -> String {
    let [low, high] = [values[0], values[values.len() - 1]].map(text);
    match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }
}

/// The smallest and the largest of sorted percentages.
fn percentages(values: &[f64]) -> String {
    // Adding 0 turns -0 into 0.
    let text = range(values, |percent| format!("{:.0}", percent.round() + 0.0));
    format!("{text} %").replace('-', "−")
}

/// The median of sorted values.
fn middle(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

impl Unit {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Seconds => " s",
            Self::Milliseconds => " ms",
            Self::Megabits => " Mb/s",
            Self::Kilobytes => " kB",
            Self::Percent => " %",
        }
    }

    pub(crate) fn text(self, value: f64) -> String {
        let value = match self {
            Self::Plain | Self::Seconds | Self::Megabits => value,
            Self::Milliseconds => value * 1e3,
            Self::Kilobytes => value * 1e-3,
            Self::Percent => value * 100.0,
        };
        match self {
            Self::Percent => format!("{value:.1}"),
            Self::Milliseconds | Self::Kilobytes => format!("{value:.0}"),
            _ if value.abs() >= 100.0 => format!("{value:.0}"),
            _ if value.abs() >= 10.0 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        }
    }
}

/// The verdicts on all claims of an experiment, in Markdown.
pub(crate) fn verdicts(excerpt: &Excerpt) -> String {
    let mut text = line(["claim", "", "comparisons"].into_iter());
    text += &line(["---"; 3].into_iter());
    for claim in &excerpt.claims {
        let is_met = claim.met >= claim.needed;
        let verdict = match (claim.verdict, claim.corrected) {
            (None, _) => by_value(is_met).to_owned(),
            (Some(verdict), Some(corrected)) if corrected != verdict => {
                format!("{}, corrected: {corrected}", emphasized(verdict))
            }
            (Some(verdict), _) => emphasized(verdict),
        };
        let mut met = match claim.needed == claim.of {
            true => format!("{} of {}", claim.met, claim.of),
            false => format!("{} of {}, {} needed", claim.met, claim.of, claim.needed),
        };
        if let (Some(sure), Some(not_met)) = (claim.sure, claim.not_met) {
            met += &format!(
                "; sure: {sure} met, {not_met} not, {} open",
                claim.of.saturating_sub(sure + not_met)
            );
        }
        text += &line([claim.text.as_str(), &verdict, &met].into_iter());
    }
    text
}

/// Of runs of which no intervals are kept.
const fn by_value(is_met: bool) -> &'static str {
    match is_met {
        true => "holds by value",
        false => "**does not hold** by value",
    }
}

fn emphasized(verdict: Verdict) -> String {
    match verdict {
        Verdict::DoesNotHold => format!("**{verdict}**"),
        _ => verdict.to_string(),
    }
}
