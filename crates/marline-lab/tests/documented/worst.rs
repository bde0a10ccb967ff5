//! The points at which a variant is furthest from the ideal.

use std::collections::BTreeMap;

use marline_lab::scenario::Value;
use marline_lab::stats::Statistic;
use serde::Deserialize;

use super::excerpt::{Excerpt, Wanted};
use super::table::{Unit, line};

/// The points at which a metric in seconds is the largest multiple of another, which is its ideal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Worst {
    /// The ID of the experiment.
    pub(crate) results: String,
    variant: String,
    metric: String,
    ideal: String,
    count: usize,
}

impl Worst {
    /// Adds what it shows.
    pub(crate) fn add_to(&self, wanted: &mut Wanted) {
        wanted.variants.insert(self.variant.clone());
        for metric in [&self.metric, &self.ideal] {
            wanted.metrics.insert((metric.clone(), Statistic::Median));
        }
    }

    /// The list in Markdown, those furthest from the ideal first.
    pub(crate) fn text(&self, excerpt: &Excerpt) -> String {
        let median =
            |metric: &str, point| excerpt.value(&self.variant, metric, Statistic::Median, point);
        let mut points: Vec<_> = (0..excerpt.points.len())
            .map(|point| {
                let took = median(&self.metric, point);
                (took / median(&self.ideal, point), took, point)
            })
            .collect();
        points.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        let mut text = line(["point", "median", "times the ideal"].into_iter());
        text += &line(["---"; 3].into_iter());
        for (ratio, took, point) in points.into_iter().take(self.count) {
            let took = format!("{}{}", Unit::Seconds.text(took), Unit::Seconds.name());
            let cells = [words(&excerpt.points[point]), took, format!("{ratio:.2}")];
            text += &line(cells.iter().map(String::as_str));
        }
        text
    }
}

/// The parameters of a point.
fn words(parameters: &BTreeMap<String, Value>) -> String {
    let each = parameters.iter();
    let each = each.map(|(name, value)| format!("`{name}={value}`"));
    each.collect::<Vec<_>>().join(" ")
}
