//! Published values compared with the measured ones.

use std::collections::{BTreeMap, BTreeSet};

use marline_link::Seed;
use marline_report::Report;
use marline_report::chart::Unit;
use marline_report::units;

use crate::run::{
    ComparisonResult, CorrelationResult, PublishedAt, PublishedResult, shared_parameters,
};
use crate::scenario::Value;
use crate::stats::{Interval, Statistic, Summary, interval};

use super::data::ReportData;
use super::names::{self, Quantity};
use super::{comparisons, correlations, improvements};

/// Measured values that differ by at most this, in percent of the published value, count as near.
const NEAR: f64 = 10.0;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let results = &data.results;
    let values = results.published.iter();
    let values = values.map(|value| Row::of_value(data, value));
    let comparisons = results.comparisons.iter();
    let comparisons = comparisons.filter_map(|result| Row::of_comparison(data, result));
    let correlations = results.correlations.iter();
    let correlations = correlations.filter_map(|result| Row::of_correlation(data, result));
    let rows = values.chain(comparisons).chain(correlations);
    let rows = once_each(rows.collect());
    if rows.is_empty() {
        return page;
    }
    let mut table = data
        .points
        .table("variant")
        .column("what")
        .number_column("measured")
        .number_column("95 % interval")
        .published_column("published");
    let has_ratios = rows.iter().any(|row| row.ratio().is_some());
    if has_ratios {
        table = table.number_column("ratio");
    }
    table = table.column("comparison").column("source");
    for row in &rows {
        let cells = [
            row.what(),
            match row.spread {
                None => row.quantity.maybe(row.measured),
                Some(ends) => ends.map(|end| row.quantity.text(end)).join(" to "),
            },
            row.quantity
                .interval_unless(row.deterministic, row.interval),
            row.quantity.text(row.published),
        ];
        let mut cells = data.points.row(&row.who, &row.point, cells);
        if has_ratios {
            let ratio = row.ratio().map(|ratio| format!("{ratio:.2}"));
            cells.push(ratio.unwrap_or_else(names::nothing));
        }
        cells.extend([row.verdict(), names::source(&row.source)]);
        table.row(cells);
    }
    let page = page
        .section("Comparison with published values")
        .text(&summary(&rows));
    let page = match improvements::reached(data) {
        Some(text) => page.text(&text),
        None => page,
    };
    let pictures = improvements::pictures(data);
    pictures
        .iter()
        .fold(page, |page, picture| page.chart(picture))
        .table(&table)
        .note(&format!(
            "{}Intervals: 95 %, of the measured values. The published values have no known intervals, so a small distance is \
             weak data.",
            match has_ratios {
                true => "Ratio: the measured value divided by the published one. ",
                false => "",
            }
        ))
}

/// The rows, of which those that show one published value at several points become one.
fn once_each(rows: Vec<Row>) -> Vec<Row> {
    let mut values: BTreeMap<String, Vec<PublishedAt<'_>>> = BTreeMap::new();
    for row in &rows {
        values.entry(row.name()).or_default().push(PublishedAt {
            parameters: &row.parameters,
            value: row.published,
        });
    }
    let shared = values.into_iter();
    let shared: BTreeMap<_, _> = shared
        .map(|(name, values)| (name, shared_parameters(&values)))
        .collect();
    let mut once: Vec<Row> = Vec::new();
    for mut row in rows {
        let shared = &shared[&row.name()];
        if shared.is_empty() {
            once.push(row);
            continue;
        }
        row.parameters.retain(|name, _| !shared.contains(name));
        let place = &row.parameters;
        let same = once.iter_mut();
        let mut same = same.filter(|one| one.is_shared && one.parameters == *place);
        match same.find(|one| one.name() == row.name()) {
            Some(one) => one.spread = widened(one.spread, row.measured),
            None => {
                row.point = place_of(&row.parameters, shared);
                row.spread = widened(None, row.measured);
                row.is_shared = true;
                row.measured = None;
                row.interval = None;
                row.deterministic = false;
                once.push(row);
            }
        }
    }
    once
}

/// `ends`, with `value` between them.
fn widened(ends: Option<[f64; 2]>, value: Option<f64>) -> Option<[f64; 2]> {
    let Some(value) = value else { return ends };
    let [low, high] = ends.unwrap_or([value; 2]);
    Some([low.min(value), high.max(value)])
}

/// The name of the points with `parameters` and every value of the `shared` ones.
fn place_of(parameters: &BTreeMap<String, Value>, shared: &BTreeSet<String>) -> String {
    let own = parameters.iter();
    let own = own.map(|(name, value)| names::value(name, value));
    let every = shared.iter();
    let every = every.map(|name| format!("every {}", names::parameter(name)));
    own.chain(every).collect::<Vec<_>>().join(", ")
}

/// A published value and the measured one.
struct Row {
    who: String,
    parameters: BTreeMap<String, Value>,
    point: String,
    quantity: Quantity,
    /// The statistic of the quantity, where the quantity alone does not name it.
    statistic: Option<Statistic>,
    measured: Option<f64>,
    /// Whether the published value stands for several points, of which none alone is compared with it.
    is_shared: bool,
    /// The smallest and the largest measured value of these points.
    spread: Option<[f64; 2]>,
    /// Whether the measured value is exact.
    deterministic: bool,
    interval: Option<Interval>,
    published: f64,
    source: String,
}

/// The nearness of the measured value to the published one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nearness {
    /// The published value lies in the confidence interval.
    Inside,
    /// The published value lies outside of the interval, and within [`NEAR`].
    Near,
    Far,
    NotMeasured,
    /// The published value stands for several points.
    OfSeveralPoints,
}

impl Row {
    fn of_value(data: &ReportData, value: &PublishedResult) -> Self {
        let place = data
            .points
            .find(&value.parameters)
            .zip(data.variant(&value.variant));
        let cell = place.and_then(|(point, variant)| data.cell(point, variant));
        let summary = cell.and_then(|cell| cell.metrics.get(&value.metric));
        let deterministic = cell.is_some_and(|cell| cell.deterministic);
        let drawn = || {
            let (point, variant) = place?;
            let values = data.values(point, variant, &value.metric);
            let is_enough = values.len() >= value.statistic.fewest_values();
            let seed = Seed::new(data.plan.seed).of("report").of(&value.metric);
            let cell = point * data.plan.variants.len() + variant;
            let seed = seed.nth(cell as u64);
            interval(&values, value.statistic, data.plan.resamples, seed).filter(|_| is_enough)
        };
        Self {
            who: value.variant.clone(),
            parameters: value.parameters.clone(),
            point: data.points.name_of(&value.parameters).to_owned(),
            is_shared: false,
            spread: None,
            quantity: Quantity::of_statistic(&value.metric, value.statistic),
            statistic: Some(value.statistic),
            measured: summary.and_then(|summary| value.statistic.of(summary)),
            deterministic,
            interval: match value.statistic {
                _ if deterministic => None,
                Statistic::Median => summary.and_then(Summary::sure_interval),
                _ => drawn(),
            },
            published: value.value,
            source: value.source.clone(),
        }
    }

    fn of_comparison(data: &ReportData, result: &ComparisonResult) -> Option<Self> {
        let what = names::of(result.statistic, &Quantity::of(&result.metric).name);
        let name = format!("improvement of {what}");
        Some(Self {
            who: comparisons::pair(result),
            parameters: result.parameters.clone(),
            point: data.points.name_of(&result.parameters).to_owned(),
            is_shared: false,
            spread: None,
            quantity: Quantity::plain(&name, Unit::Percent),
            statistic: None,
            measured: result.improvement_percent,
            deterministic: result.deterministic,
            interval: result.sure_interval().filter(|_| !result.deterministic),
            published: result.published_percent?,
            source: result.source.clone().unwrap_or_default(),
        })
    }

    fn of_correlation(data: &ReportData, result: &CorrelationResult) -> Option<Self> {
        Some(Self {
            who: result.variant.clone(),
            parameters: result.parameters.clone(),
            point: data.points.name_of(&result.parameters).to_owned(),
            is_shared: false,
            spread: None,
            quantity: correlations::quantity(result),
            statistic: None,
            measured: result.r,
            deterministic: false,
            interval: result.r.and_then(|r| correlations::interval(r, result.n)),
            published: result.published?,
            source: result.source.clone().unwrap_or_default(),
        })
    }

    /// Who and what: rows with the same name differ by their points.
    fn name(&self) -> String {
        format!("{}: {}", self.who, self.what())
    }

    fn what(&self) -> String {
        match self.statistic {
            Some(statistic) => names::of(statistic, &self.quantity.name),
            None => self.quantity.name.clone(),
        }
    }

    /// The measured value divided by the published one; `None` for differences.
    fn ratio(&self) -> Option<f64> {
        let ratio = self.measured? / self.published;
        (self.statistic.is_some() && ratio.is_finite()).then_some(ratio)
    }

    /// The excess of the measured value over the published one: in percent of it, or in the unit where there is no
    /// ratio.
    fn distance(&self) -> Option<f64> {
        match self.ratio() {
            Some(ratio) => Some(100.0 * (ratio - 1.0)),
            None => Some(self.measured? - self.published),
        }
    }

    fn nearness(&self) -> Nearness {
        if self.is_shared {
            return Nearness::OfSeveralPoints;
        }
        let Some(distance) = self.distance() else {
            return Nearness::NotMeasured;
        };
        let holds = |[low, high]: Interval| (low..=high).contains(&self.published);
        if self.interval.is_some_and(holds) {
            Nearness::Inside
        } else if self.ratio().is_some() && distance.abs() <= NEAR {
            Nearness::Near
        } else {
            Nearness::Far
        }
    }

    /// Whether the interval contains the published value only because it is wide.
    fn is_inside_by_width(&self) -> bool {
        let is_far = self.ratio().is_some() && self.distance().is_some_and(|far| far.abs() > NEAR);
        is_far && self.nearness() == Nearness::Inside
    }

    /// The distance as text, such as `12 % above`.
    fn distance_text(&self) -> String {
        let Some(distance) = self.distance() else {
            return "not measured".to_owned();
        };
        let number = units::number(distance.abs());
        let unit = match (self.ratio(), self.quantity.unit) {
            (Some(_), _) => "\u{a0}%",
            (None, Unit::Percent) if number == "1" => "\u{a0}point",
            (None, Unit::Percent) => "\u{a0}points",
            (None, _) => "",
        };
        let side = if distance < 0.0 { "below" } else { "above" };
        format!("{number}{unit}\u{a0}{side}")
    }

    fn verdict(&self) -> String {
        match self.nearness() {
            Nearness::NotMeasured => "not measured".to_owned(),
            Nearness::OfSeveralPoints => "one value for several points".to_owned(),
            Nearness::Inside if self.is_inside_by_width() => {
                format!("inside the interval, but {}", self.distance_text())
            }
            Nearness::Inside => "inside the interval".to_owned(),
            Nearness::Near => format!("within 10 %: {}", self.distance_text()),
            Nearness::Far => self.distance_text(),
        }
    }
}

/// Counts the values by nearness.
fn summary(rows: &[Row]) -> String {
    let count = |nearness| rows.iter().filter(|row| row.nearness() == nearness).count();
    let mut parts = vec![format!(
        "{} published {}",
        rows.len(),
        if rows.len() == 1 { "value" } else { "values" }
    )];
    for (nearness, words) in [
        (Nearness::Inside, "inside the 95 % interval"),
        (Nearness::Near, "outside of the interval, but within 10 %"),
        (Nearness::Far, "more than 10 % apart"),
        (Nearness::NotMeasured, "not measured"),
        (Nearness::OfSeveralPoints, "for several points together"),
    ] {
        let count = count(nearness);
        if count > 0 {
            parts.push(format!("{count} {words}"));
        }
    }
    let (first, rest) = parts.split_at(1);
    let mut text = format!("{}: {}.", first.concat(), rest.join(", "));
    let wide = rows.iter().filter(|row| row.is_inside_by_width()).count();
    if wide > 0 {
        text.push_str(&format!(
            " {wide} of those inside are more than 10 % apart: their intervals are wide."
        ));
    }
    let distance = |row: &Row| row.distance().map_or(0.0, f64::abs);
    let furthest = rows
        .iter()
        .filter(|row| row.ratio().is_some() && distance(row) > NEAR)
        .max_by(|a, b| distance(a).total_cmp(&distance(b)));
    if let Some(row) = furthest {
        let point = match row.point.as_str() {
            "" => String::new(),
            point => format!(" at {point}"),
        };
        let distance = row.distance_text();
        text.push_str(&format!(
            " The largest distance is that of the {} of {}{point}: {distance}.",
            row.what(),
            row.who
        ));
    }
    text
}
