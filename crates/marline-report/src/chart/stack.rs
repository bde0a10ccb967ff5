//! Charts in a column.

use std::fmt::Write;

use super::canvas::{self, PLOT_WIDTH, TICK_WIDTH};
use super::draw::{self, View};
use super::strip::Strip;
use super::{Axis, Chart, Picture};
use crate::html::escape;

/// Height of the plots, in pixels.
const HEIGHT: f64 = 116.0;

/// Charts in a column that share their horizontal axis, such as window, RTT and queue of one transfer;
/// events are marked across all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    title: String,
    note: String,
    x: Axis,
    charts: Vec<Chart>,
    events: Vec<(String, Vec<f64>)>,
}

impl Stack {
    /// An empty column of charts with the common axis `x`.
    pub fn new(title: impl Into<String>, x: Axis) -> Self {
        Self {
            title: title.into(),
            note: String::new(),
            x,
            charts: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Sets the note below the charts.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Adds a chart at the bottom, unless it is empty. Its own horizontal axis and note are ignored.
    #[must_use]
    pub fn chart(mut self, chart: Chart) -> Self {
        if !chart.is_empty() {
            self.charts.push(chart);
        }
        self
    }

    /// Marks events, such as losses, by a line across every chart, and a strip at the bottom.
    #[must_use]
    pub fn events(mut self, name: impl Into<String>, mut times: Vec<f64>) -> Self {
        times.retain(|time| time.is_finite());
        if !times.is_empty() {
            self.events.push((name.into(), times));
        }
        self
    }

    fn picture(&self, html: &mut String) {
        let points = self.charts.iter().flat_map(|chart| &chart.plots);
        let xs = points.flat_map(|plot| &plot.points).map(|point| point.0);
        let events = self
            .events
            .iter()
            .flat_map(|(_, times)| times.iter().copied());
        let x = self.x.scale(xs.chain(events), PLOT_WIDTH, TICK_WIDTH);
        let rules: Vec<&[f64]> = self
            .events
            .iter()
            .map(|(_, times)| times.as_slice())
            .collect();
        let last = self.charts.len().saturating_sub(1);
        html.push_str("<div class=\"scroll\">");
        for (at, chart) in self.charts.iter().enumerate() {
            let mut chart = chart.clone();
            if at == last {
                let strips = self.events.iter();
                let strips =
                    strips.filter_map(|(name, times)| Strip::events(name.clone(), times.clone()));
                chart.strips.extend(strips);
            }
            let _ = write!(html, "<div class=\"panel\"><b>{}</b>", escape(&chart.title));
            draw::legend(&chart, html);
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
