//! Charts above each other.

use std::fmt::Write;

use super::canvas::{self, PLOT_WIDTH, TICK_WIDTH};
use super::draw::{self, View};
use super::strip::Strip;
use super::{Axis, Chart, Picture};
use crate::html::escape;

/// Height of the plots, in pixels.
const HEIGHT: f64 = 116.0;

/// Charts above each other that share their horizontal axis, such as the window, the RTT and the
/// queue of one transfer; moments go through all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    title: String,
    note: String,
    x: Axis,
    charts: Vec<Chart>,
    moments: Vec<(String, Vec<f64>)>,
}

impl Stack {
    /// An empty picture; `x` is the axis of all charts.
    pub fn new(title: impl Into<String>, x: Axis) -> Self {
        Self {
            title: title.into(),
            note: String::new(),
            x,
            charts: Vec::new(),
            moments: Vec::new(),
        }
    }

    /// Says below the picture what to know about it.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Adds a chart below the others, unless it is empty. Its horizontal axis and its note do not
    /// matter.
    #[must_use]
    pub fn chart(mut self, chart: Chart) -> Self {
        if !chart.is_empty() {
            self.charts.push(chart);
        }
        self
    }

    /// Marks moments, such as losses: a line across every chart, and a strip at the bottom.
    #[must_use]
    pub fn moments(mut self, name: impl Into<String>, mut times: Vec<f64>) -> Self {
        times.retain(|time| time.is_finite());
        if !times.is_empty() {
            self.moments.push((name.into(), times));
        }
        self
    }

    fn picture(&self, html: &mut String) {
        let points = self.charts.iter().flat_map(|chart| &chart.plots);
        let xs = points.flat_map(|plot| &plot.points).map(|point| point.0);
        let moments = self
            .moments
            .iter()
            .flat_map(|(_, times)| times.iter().copied());
        let x = self.x.scale(xs.chain(moments), PLOT_WIDTH, TICK_WIDTH);
        let rules: Vec<&[f64]> = self
            .moments
            .iter()
            .map(|(_, times)| times.as_slice())
            .collect();
        let last = self.charts.len().saturating_sub(1);
        html.push_str("<div class=\"scroll\">");
        for (at, chart) in self.charts.iter().enumerate() {
            let mut chart = chart.clone();
            if at == last {
                let strips = self.moments.iter();
                let strips =
                    strips.filter_map(|(name, times)| Strip::moments(name.clone(), times.clone()));
                chart.strips.extend(strips);
            }
            let _ = write!(html, "<div class=\"panel\"><b>{}</b>", escape(&chart.title));
            draw::key(&chart, html);
            html.push_str("</div>");
            let view = View {
                x: &x,
                height: HEIGHT,
                numbers: at == last,
                rules: &rules,
            };
            draw::picture(&chart, &view, html);
        }
        html.push_str("</div>");
    }
}

impl Picture for Stack {
    fn is_empty(&self) -> bool {
        self.charts.is_empty()
    }

    fn to_html(&self) -> String {
        let mut html = String::new();
        canvas::figure(&self.title, &self.note, &mut html, |html| {
            self.picture(html);
        });
        html
    }
}

#[cfg(test)]
mod tests;
