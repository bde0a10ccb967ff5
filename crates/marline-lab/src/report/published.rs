//! Every published value beside ours, without flattery.

use marline_link::Seed;
use marline_report::Report;
use marline_report::chart::Unit;
use marline_report::units;

use crate::run::{ComparisonResult, CorrelationResult, PublishedResult};
use crate::stats::{Interval, Statistic, interval};

use super::data::Evidence;
use super::names::{self, Quantity};
use super::{comparisons, correlations, improvements};

/// Values no further apart than this, in percent of the published one, are near.
const NEAR: f64 = 10.0;

pub(super) fn add(page: Report, evidence: &Evidence) -> Report {
    let results = &evidence.results;
    let values = results.published.iter();
    let values = values.map(|value| Row::of_value(evidence, value));
    let comparisons = results.comparisons.iter();
    let comparisons = comparisons.filter_map(|result| Row::of_comparison(evidence, result));
    let correlations = results.correlations.iter();
    let correlations = correlations.filter_map(|result| Row::of_correlation(evidence, result));
    let rows: Vec<_> = values.chain(comparisons).chain(correlations).collect();
    if rows.is_empty() {
        return page;
    }
    let mut table = evidence
        .points
        .table("variant")
        .column("what")
        .number_column("ours")
        .number_column("95 % interval")
        .published_column("published");
    let has_ratios = rows.iter().any(|row| row.ratio().is_some());
    if has_ratios {
        table = table.number_column("ratio");
    }
    table = table.column("ours is").column("source");
    for row in &rows {
        let cells = [
            row.what(),
            row.quantity.maybe(row.ours),
            row.quantity.interval(row.interval),
            row.quantity.text(row.published),
        ];
        let mut cells = evidence.points.row(&row.who, &row.point, cells);
        if has_ratios {
            let ratio = row.ratio().map(|ratio| format!("{ratio:.2}"));
            cells.push(ratio.unwrap_or_else(names::nothing));
        }
        cells.extend([row.verdict(), names::source(&row.source)]);
        table.row(cells);
    }
    let page = page.section("Beside the paper").text(&summary(&rows));
    let page = match improvements::reached(evidence) {
        Some(text) => page.text(&text),
        None => page,
    };
    let pictures = improvements::pictures(evidence);
    pictures
        .iter()
        .fold(page, |page, picture| page.chart(picture))
        .table(&table)
        .note(&format!(
            "{}Intervals: 95 %, of ours. How sure others were of theirs is not known: nearness proves little.",
            match has_ratios {
                true => "Ratio: ours divided by what was published. ",
                false => "",
            }
        ))
}

/// A published value and ours.
struct Row {
    who: String,
    point: String,
    quantity: Quantity,
    /// What of the quantity, if it needs to be said.
    statistic: Option<Statistic>,
    ours: Option<f64>,
    interval: Option<Interval>,
    published: f64,
    source: String,
}

/// How near ours is to what was published.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nearness {
    /// The published value lies in our interval.
    Inside,
    /// It lies outside, and not further away than [`NEAR`].
    Near,
    Far,
    NotMeasured,
}

impl Row {
    fn of_value(evidence: &Evidence, value: &PublishedResult) -> Self {
        let place = evidence
            .points
            .find(&value.parameters)
            .zip(evidence.variant(&value.variant));
        let summary = place.and_then(|(point, variant)| {
            let cell = evidence.cell(point, variant)?;
            cell.metrics.get(&value.metric)
        });
        let drawn = || {
            let (point, variant) = place?;
            let values = evidence.values(point, variant, &value.metric);
            let seed = Seed::new(evidence.plan.seed).of("report").of(&value.metric);
            let cell = point * evidence.plan.variants.len() + variant;
            let seed = seed.nth(cell as u64);
            interval(&values, value.statistic, evidence.plan.resamples, seed)
        };
        Self {
            who: value.variant.clone(),
            point: evidence.points.name_of(&value.parameters).to_owned(),
            quantity: Quantity::of_statistic(&value.metric, value.statistic),
            statistic: Some(value.statistic),
            ours: summary.and_then(|summary| value.statistic.of(summary)),
            interval: match value.statistic {
                Statistic::Median => summary.and_then(|summary| summary.ci95),
                _ => drawn(),
            },
            published: value.value,
            source: value.source.clone(),
        }
    }

    fn of_comparison(evidence: &Evidence, result: &ComparisonResult) -> Option<Self> {
        let what = names::of(result.statistic, &Quantity::of(&result.metric).name);
        let name = format!("improvement of {what}");
        Some(Self {
            who: comparisons::pair(result),
            point: evidence.points.name_of(&result.parameters).to_owned(),
            quantity: Quantity::plain(&name, Unit::Percent),
            statistic: None,
            ours: result.improvement_percent,
            interval: result.ci95,
            published: result.published_percent?,
            source: result.source.clone().unwrap_or_default(),
        })
    }

    fn of_correlation(evidence: &Evidence, result: &CorrelationResult) -> Option<Self> {
        Some(Self {
            who: result.variant.clone(),
            point: evidence.points.name_of(&result.parameters).to_owned(),
            quantity: correlations::quantity(result),
            statistic: None,
            ours: result.r,
            interval: result.r.and_then(|r| correlations::interval(r, result.n)),
            published: result.published?,
            source: result.source.clone().unwrap_or_default(),
        })
    }

    fn what(&self) -> String {
        match self.statistic {
            Some(statistic) => names::of(statistic, &self.quantity.name),
            None => self.quantity.name.clone(),
        }
    }

    /// Differences have no ratio that means anything.
    fn ratio(&self) -> Option<f64> {
        let ratio = self.ours? / self.published;
        (self.statistic.is_some() && ratio.is_finite()).then_some(ratio)
    }

    /// How far ours is above what was published: in percent of it, or in the unit where there is no
    /// ratio.
    fn distance(&self) -> Option<f64> {
        match self.ratio() {
            Some(ratio) => Some(100.0 * (ratio - 1.0)),
            None => Some(self.ours? - self.published),
        }
    }

    fn nearness(&self) -> Nearness {
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

    /// Whether only a wide interval, which holds much, holds what was published.
    fn is_inside_by_width(&self) -> bool {
        let is_far = self.ratio().is_some() && self.distance().is_some_and(|far| far.abs() > NEAR);
        is_far && self.nearness() == Nearness::Inside
    }

    /// The distance in words, such as `12 % above`.
    fn apart(&self) -> String {
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
            Nearness::Inside if self.is_inside_by_width() => {
                format!("inside the interval, but {}", self.apart())
            }
            Nearness::Inside => "inside the interval".to_owned(),
            Nearness::Near => format!("within 10 %: {}", self.apart()),
            Nearness::Far => self.apart(),
        }
    }
}

/// How many values are how near.
fn summary(rows: &[Row]) -> String {
    let count = |nearness| rows.iter().filter(|row| row.nearness() == nearness).count();
    let mut parts = vec![format!(
        "{} published {}",
        rows.len(),
        if rows.len() == 1 { "value" } else { "values" }
    )];
    for (nearness, words) in [
        (Nearness::Inside, "inside our 95 % interval"),
        (Nearness::Near, "outside of it, but within 10 %"),
        (Nearness::Far, "further away"),
        (Nearness::NotMeasured, "not measured"),
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
            " For {wide} of those inside it is the interval that is wide: they are more than 10 % apart."
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
        let apart = row.apart();
        text.push_str(&format!(
            " The furthest is the {} of {}{point}: {apart}.",
            row.what(),
            row.who
        ));
    }
    text
}
